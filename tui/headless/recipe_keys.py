"""Handlers of `recipe find` and `recipe explain`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.editing import EditState, RecipeAnalyser
from recipes.editing.known_schema import KnownSchema
from recipes.editing.stock_comments import HelpText, StockComments
from recipes.editing.units import unit_of
from recipes.errors import RecipeError
from recipes.inheritance import Resolver
from recipes.keys import KeyMissingError, format_key, parse_key
from recipes.lint import suggestion
from recipes.remote_path import environment_at
from recipes.schema.algorithms import algorithm_of, holding_checkout
from recipes.schema.checkout_schema import Schemas
from recipes.schema.key_info import KeyInfo, key_info, keys_below
from tui.headless.output import SCHEMA, print_json, show
from tui.headless.recipe_files import (
    STANDARD_NAME,
    checkout_of,
    jsonable,
    open_document,
    open_readable,
    resolve_document,
)

if TYPE_CHECKING:
    import argparse

    from recipes.editing import Analysis, KeyMatch

_LONGEST = 100
"""Characters of a value or a help text on one line."""


def find(options: argparse.Namespace) -> int:
    """Print the keys that a text is found in; exit code 1 if there is none."""
    document = open_document(options.file)
    path = document.path or Path(STANDARD_NAME)
    analyser = RecipeAnalyser(
        path,
        checkout=checkout_of(options.checkout, document),
        environment=environment_at(path),
        overrides=options.override,
    )
    analysis = analyser.read(EditState(path, document.text, document.revision))
    if analysis.resolution.error is not None and not analysis.resolution.complete:
        raise analysis.resolution.error
    matches = analyser.find(analysis, options.text, limit=options.limit)
    if options.json:
        print_json(SCHEMA | {"matches": [_match_json(analysis, match) for match in matches]})
    else:
        for match in matches:
            show(_match_line(analysis, match))
    return 0 if matches else 1


def _match_json(analysis: Analysis, match: KeyMatch) -> dict[str, object]:
    row = analysis.outline.rows[match.row] if match.row is not None else None
    origin = row.origin if row is not None else None
    commented = row is not None and row.state == "commented"
    return {
        "key": match.key,
        "value": None if row is None or commented else jsonable(analysis.recipe.get(match.key)),
        "written": row.written if row is not None else None,
        "state": row.state if row is not None else "unset",
        "reason": match.reason,
        "file": origin.file if origin is not None else str(analysis.state.path) if commented else None,
        "line": origin.line if origin is not None else row.lines.first if row and row.lines else None,
        "help": match.help,
    }


def _match_line(analysis: Analysis, match: KeyMatch) -> str:
    row = analysis.outline.rows[match.row] if match.row is not None else None
    if row is None:
        text = f"{match.key}: (not set)"
    elif row.state == "commented":
        text = f"{match.key}: (commented out) {row.written}"
    else:
        text = f"{match.key}: {_short(row.effective)}".rstrip()
        if row.interpolated and row.written != row.effective:
            text += f" (from {_short(row.written)})"
        if row.state != "own" and row.origin is not None:
            text += f"  [{row.origin.file}:{row.origin.line}]"
    return f"{text}  # {_short(match.help)}" if match.help else text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def explain(options: argparse.Namespace) -> int:
    """Print what a key takes, and what NeMo-RL's classes and recipes say of it."""
    key = format_key(parse_key(options.key))
    checkout, algorithm = _checkout(options.checkout), options.algorithm
    if options.file:
        document = open_readable(options.file)
        checkout = checkout or checkout_of(None, document)
        algorithm = algorithm or algorithm_of(resolve_document(document, [], Resolver()).values)
    algorithm = algorithm or "distillation"
    schema = KnownSchema(Schemas(), checkout)
    description, tree = schema.description(algorithm), schema.key_tree(algorithm)
    info = key_info(description, key) if description is not None and key and '"' not in key else None
    stock = StockComments(checkout)
    examples = stock.values(key) if key else []
    below = keys_below(description, key) if description is not None else []
    if info is None and not examples and not (below or key in schema.known_texts(algorithm)):
        guess = suggestion(parse_key(key), tree) if tree is not None and key else ""
        fix = f"Did you mean {guess}?" if guess else "`recipe find FILE TEXT` finds keys by a part of them."
        raise KeyMissingError(f"NeMo-RL knows no key '{key}'", fix=fix)
    help_texts = [HelpText(info.doc, info.where)] if info is not None and info.doc else []
    help_texts += stock.of(key)
    if options.json:
        print_json(SCHEMA | _explanation(key, info, help_texts, examples, below))
    else:
        _print_explanation(key, info, help_texts, examples, below)
    return 0


def _checkout(given: str | None) -> Path | None:
    """Return the checkout: the given one, else $NEMO_RL_ROOT, else the one around this directory."""
    named = given or os.environ.get("NEMO_RL_ROOT")
    if not named:
        return holding_checkout(Path.cwd() / STANDARD_NAME)
    directory = Path(named).expanduser().absolute()
    if not directory.is_dir():
        source = "--checkout" if given else "NEMO_RL_ROOT"
        raise RecipeError("no such NeMo-RL checkout", where=str(directory), fix=f"Correct {source}.")
    return directory


def _explanation(
    key: str, info: KeyInfo | None, help_texts: list[HelpText], examples: list[HelpText], below: list[str]
) -> dict[str, object]:
    return {
        "key": key,
        "type": info.type if info is not None else None,
        "allowed": list(info.allowed) if info is not None else [],
        "required": info.required if info is not None else None,
        "default": info.default or None if info is not None else None,
        "unit": _unit(key, info) or None,
        "where": info.where or None if info is not None else None,
        "help": [{"text": item.text, "source": item.source} for item in help_texts],
        "examples": [{"value": item.text, "source": item.source} for item in examples],
        "keys": below,
    }


def _unit(key: str, info: KeyInfo | None) -> str:
    numeric = info is None or any(name in info.type for name in ("int", "float"))
    return unit_of(str(parse_key(key)[-1])) if key and numeric else ""


def _print_explanation(
    key: str, info: KeyInfo | None, help_texts: list[HelpText], examples: list[HelpText], below: list[str]
) -> None:
    show(key or "(the whole recipe)")
    rows: list[tuple[str, str]] = []
    if info is not None:
        rows += [("type", info.type), ("allowed", ", ".join(info.allowed))]
        rows += [("required", "yes" if info.required else "no"), ("default", info.default)]
    rows += [("unit", _unit(key, info)), ("declared", info.where if info is not None else "")]
    rows += [("keys", ", ".join(below))]
    rows += [("help", f"{item.text} ({item.source})" if item.source else item.text) for item in help_texts]
    rows += [("example", f"{' '.join(item.text.split())} ({item.source})") for item in examples]
    for name, text in rows:
        if text:
            show(f"  {name:9} {text}")
