"""Files, standard input and output, and JSON values of the recipe commands."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.chain import decode, read_bytes, refuse_unreadable
from recipes.document import Document
from recipes.errors import RecipeError
from recipes.files import AttributesError
from recipes.keys import KeyMissingError, format_key, nearest_key
from recipes.limits import RECIPE_BYTES
from recipes.locks import RecipeLock
from recipes.remote_path import RemotePath, environment_at, on_machine_of, prefetch
from recipes.schema.algorithms import holding_checkout
from recipes.values import leaves
from recipes.yaml.typed import writable
from tui.headless.hosts import path_of
from tui.headless.output import ask, say, write_document

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from recipes.files import Saved
    from recipes.inheritance import EffectiveRecipe, Resolver

STANDARD_INPUT = "-"
STANDARD_NAME = "<stdin>"


def open_document(file: str) -> Document:
    """Open a recipe, or read it from standard input."""
    if file != STANDARD_INPUT:
        return Document.open(path_of(file))
    data = sys.stdin.buffer.read(RECIPE_BYTES.value + 1)
    if len(data) > RECIPE_BYTES.value:
        raise RecipeError(f"Not a recipe: larger than {RECIPE_BYTES}", where=STANDARD_NAME)
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
    recipe = document.path or Path.cwd() / STANDARD_NAME
    named = given or environment_at(recipe).get("NEMO_RL_ROOT")
    checkout = on_machine_of(recipe, named).expanduser().absolute() if named else holding_checkout(recipe)
    prefetch(checkout)
    return checkout


@dataclass(frozen=True, slots=True)
class EditedFile:
    """Recipe that a command edits, and how it is saved."""

    document: Document
    lock: RecipeLock | None
    dry_run: bool
    accept_changes: bool

    def save(self) -> None:
        """Save the document, write it to standard output, or print what would change.

        Raises:
            AttributesError: the file's owner or other attributes would change, and nobody agreed to that.
            SaveError: the file system refuses.
            ChangedOnDiskError: somebody else changed the file.
        """
        document = self.document
        if self.dry_run:
            write_document(document.diff())
        elif document.path is None:
            write_document(document.to_bytes())
        elif document.changed:
            saved = self._saved()
            if saved.other_names:
                say(f"{saved.path} had other names (hard links); they keep the old text.")

    def _saved(self) -> Saved:
        try:
            return self.document.save(lock=self.lock, accept_changes=self.accept_changes)
        except AttributesError as error:
            question = f"{error.where}: {', '.join(error.changes)}. Save all the same?"
            if not sys.stdin.isatty() or not ask(question):
                raise
        return self.document.save(lock=self.lock, accept_changes=True)


def written_keys(document: Document) -> Iterator[str]:
    """Yield every key with a value of a document itself, without its parents'."""
    values = document.revision.values
    return (format_key(path) for path, _ in leaves(values)) if values is not None else iter(())


def similar_key_fix(key: str, keys: Iterable[str]) -> str:
    """Return a question whether another key was meant; empty where none is similar."""
    similar = nearest_key(key, keys)
    return f"Did you mean {similar}?" if similar else ""


def save_document(document: Document) -> None:
    """Save an edited document; `EditedFile.save` says what is raised."""
    EditedFile(document, None, dry_run=False, accept_changes=False).save()


@contextmanager
def edited_file(options: argparse.Namespace) -> Iterator[EditedFile]:
    """Open a recipe for an edit, locked until the edit is saved: two commands at once lose nothing.

    Raises:
        RecipeError: it cannot be read.
        LockedError: somebody else is editing it.
    """
    file: str = options.file
    accept = bool(getattr(options, "accept_changes", False))
    if file == STANDARD_INPUT or options.dry_run:
        yield EditedFile(open_document(file), None, options.dry_run, accept)
        return
    path = path_of(file)
    read_bytes(path)  # what cannot be read is not locked
    if isinstance(path, RemotePath):  # locked there while it is saved, if it is still as it was
        yield EditedFile(open_document(file), None, options.dry_run, accept)
        return
    with RecipeLock(path) as lock:
        edited = EditedFile(open_document(file), lock, options.dry_run, accept)
        try:
            yield edited
        except KeyMissingError as error:
            key = getattr(options, "key", None)
            error.fix = error.fix or (similar_key_fix(key, written_keys(edited.document)) if key else "")
            raise


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
