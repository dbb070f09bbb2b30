"""Handlers of `recipe new` and `recipe derive`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.editing.starting import copied_text, create, derived_text, stock_recipe
from recipes.schema.algorithms import holding_checkout
from tui.headless.output import say, write_document

if TYPE_CHECKING:
    import argparse


def new(options: argparse.Namespace) -> int:
    """Write a copy of a stock recipe."""
    target = Path(options.file)
    stock = stock_recipe(options.stock, _checkout(options.checkout, target))
    return _write(target, copied_text(stock, target), stock, dry_run=options.dry_run)


def derive(options: argparse.Namespace) -> int:
    """Write a recipe that inherits from another one."""
    child = Path(options.child)
    parent = stock_recipe(options.parent, _checkout(options.checkout, child))
    return _write(child, derived_text(parent, child), parent, dry_run=options.dry_run)


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
