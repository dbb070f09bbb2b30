"""Handlers of `recipe new` and `recipe derive`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.fields.assignments import assign
from recipes.editing.starting import copied_text, create, derived_text, stock_recipe
from recipes.schema.algorithms import holding_checkout
from tui.headless.output import say, write_document
from tui.headless.saving import child_of, chosen_values

if TYPE_CHECKING:
    import argparse


def new(options: argparse.Namespace) -> int:
    """Write a copy of a stock recipe."""
    target = Path(options.file)
    stock = stock_recipe(options.stock, _checkout(options.checkout, target))
    return _write(target, copied_text(stock, target), stock, dry_run=options.dry_run)


def derive(options: argparse.Namespace) -> int:
    """Write a recipe that inherits from another one."""
    target = Path(options.child)
    checkout = _checkout(options.checkout, target)
    parent = stock_recipe(options.parent, checkout)
    assigned = assign(
        parent,
        options.override,
        options.assignments,
        for_both=options.assignments_both,
        checkout=checkout or holding_checkout(parent),
    )
    overrides = (*options.override, *assigned.overrides)
    if not overrides:
        return _write(target, derived_text(parent, target), parent, dry_run=options.dry_run)
    made = child_of(chosen_values(parent, overrides), target)
    if options.dry_run:
        write_document(made.text)
        return 0
    made.write()
    say(f"wrote {made.path} (from {parent})")
    return 0


def _checkout(given: str | None, path: Path) -> Path | None:
    """Return the checkout: the given one, else $NEMO_RL_ROOT, else the one around the new file."""
    named = given or os.environ.get("NEMO_RL_ROOT")
    return Path(named).expanduser().absolute() if named else holding_checkout(path)


def _write(path: Path, text: str, like: Path, *, dry_run: bool) -> int:
    if dry_run:
        write_document(text)
        return 0
    create(path, text, like)
    say(f"wrote {path} (from {like})")
    return 0
