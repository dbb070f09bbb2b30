"""Files, standard input and output, and JSON values of the recipe commands."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.chain import decode, refuse_unreadable
from recipes.document import Document
from recipes.schema.algorithms import holding_checkout
from recipes.yaml.typed import writable
from tui.headless.output import say, write_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recipes.inheritance import EffectiveRecipe, Resolver

STANDARD_INPUT = "-"
STANDARD_NAME = "<stdin>"


def open_document(file: str) -> Document:
    """Open a recipe, or read it from standard input."""
    if file != STANDARD_INPUT:
        return Document.open(Path(file))
    data = sys.stdin.buffer.read()
    return Document(decode(data, STANDARD_NAME), STANDARD_NAME)


def open_readable(file: str) -> Document:
    """Open a recipe to read its values; raises `RecipeError` where NeMo-RL's loader refuses it."""
    document = open_document(file)
    refuse_unreadable(document.revision.tree, document.revision.composed)
    return document


def resolve_document(document: Document, overrides: Sequence[str], resolver: Resolver) -> EffectiveRecipe:
    """Resolve a document; parents of standard input count from the working directory."""
    path = document.path or Path(STANDARD_NAME)
    revision = document.revision
    return resolver.resolve(path, overrides, tree=revision.tree, composed=revision.composed)


def checkout_of(given: str | None, document: Document) -> Path | None:
    """Return the checkout whose classes and recipes count for a recipe; None where there is none.

    It is the given one, else $NEMO_RL_ROOT, else the one that holds the file.
    """
    named = given or os.environ.get("NEMO_RL_ROOT")
    if named:
        return Path(named).expanduser().absolute()
    return holding_checkout(document.path or Path.cwd() / STANDARD_NAME)


def save_document(document: Document, *, dry_run: bool) -> None:
    """Save an edited document, write it to standard output, or print what would change."""
    if dry_run:
        write_document(document.diff())
    elif document.path is None:
        write_document(document.to_bytes())
    elif document.changed:
        saved = document.save()
        if saved.other_names:
            say(f"{saved.path} had other names (hard links); they keep the old text.")


def jsonable(value: object) -> Any:  # noqa: ANN401 - JSON holds anything
    """Return a value as JSON can hold it: keys as strings, infinities and nan spelled as in YAML."""
    if isinstance(value, dict):
        from recipes.keys import step_text

        return {
            key if isinstance(key, str) else step_text(key): jsonable(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return writable(value)
