"""Edits of a recipe's own text, for keys that it may only inherit: each makes one step of the document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from recipes.keys import KeyMissingError, KeyPath, format_key, parse_key
from recipes.lint import STUDENT, TEACHER
from recipes.values import Leaf, Map, Seq, find, item_index, plain
from recipes.yaml.check import EditRefusedError
from recipes.yaml.typed import writable

if TYPE_CHECKING:
    from recipes.document import Document
    from recipes.inheritance import EffectiveRecipe
    from recipes.planning import RecipeEdit
    from recipes.yaml.write import Writable


def counterpart_of(key: str) -> str:
    """Return the teacher's key of a student's and the other way round; "" for other keys."""
    section, dot, rest = key.partition(".")
    other = {STUDENT: TEACHER, TEACHER: STUDENT}.get(section)
    return f"{other}.{rest}" if other and dot else ""


def set_here(
    document: Document,
    key: str,
    value: Writable,
    *,
    spelling: str = "",
    write_out: bool = False,
    inherited: EffectiveRecipe | None = None,
) -> None:
    """Set a value in a recipe's own text.

    An item of a list that a parent has: the whole list is written here first, for lists are inherited
    whole. With `write_out`, so is a section on the way that follows an anchor or another key.

    Raises:
        RecipeError: the value cannot stand there; nothing was changed.
    """
    path = parse_key(key)
    with document.group():
        if inherited is not None:
            _write_lists(document, path[:-1], inherited, write_out=write_out)
            _check_followed(document, path, inherited, write_out=write_out)
        document.set(path, value, spelling=spelling, copy=write_out)


def add_here(
    document: Document,
    key: str,
    value: Writable,
    *,
    spelling: str = "",
    write_out: bool = False,
    inherited: EffectiveRecipe | None = None,
) -> None:
    """Add a key, or an item of a list by its number; the items from there on move up.

    Raises:
        EditRefusedError: the key is written here already.
        RecipeError: the value cannot stand there; nothing was changed.
    """
    path = parse_key(key)
    if not path:
        raise EditRefusedError("A new key needs a name", where=document.name, fix="Write it as a.b.c.")
    with document.group():
        if inherited is not None:
            _write_lists(document, path[:-1], inherited, write_out=write_out)
        if document.has(path[:-1]) and isinstance(held := document.get(path[:-1]), list):
            index = item_index(path[-1], len(held) + 1)
            if index is None:
                fix = f"Give a number from 0 to {len(held)}."
                raise EditRefusedError(f"'{format_key(path[:-1])}' is a list", where=document.name, fix=fix)
            document.insert_item(path[:-1], index, value, spelling=spelling)
            return
        if document.has(path):
            raise EditRefusedError(
                f"'{format_key(path)}' already exists", where=document.name, fix="Set it instead."
            )
        set_here(document, key, value, spelling=spelling, write_out=write_out, inherited=inherited)


def remove_here(document: Document, key: str, *, inherited: EffectiveRecipe | None = None) -> None:
    """Remove a key from a recipe's own text, and the sections that this leaves empty and a parent has.

    Raises:
        EditRefusedError: the key is written elsewhere; the message says where.
    """
    path = parse_key(key)
    if not document.is_written(path) and not document.has(path):
        if inherited is not None:
            _write_lists(document, path[:-1], inherited)
        if not document.is_written(path):
            raise _not_here(document, path, inherited)
    with document.group():
        document.delete(path)
        above = path[:-1]
        while above and inherited is not None and document.get(above) == {}:
            if not isinstance(find(inherited.inherited, above), Map):
                return
            document.delete(above)
            above = above[:-1]


def apply_edits(
    document: Document, edits: Iterable[RecipeEdit], inherited: EffectiveRecipe | None = None
) -> None:
    """Apply edits as one step; raises `RecipeError` for one that cannot be made, and then makes none."""
    with document.group():
        for edit in edits:
            if edit.remove:
                remove_here(document, edit.key, inherited=inherited)
            else:
                set_here(document, edit.key, writable(edit.after), write_out=True, inherited=inherited)


def _not_here(document: Document, path: KeyPath, inherited: EffectiveRecipe | None) -> RecipeError:
    key = format_key(path)
    origin = inherited.origin(key) if inherited is not None else None
    if origin is None:
        return KeyMissingError(f"There is no key '{key}'", where=document.name)
    where = f"{origin.file}:{origin.line}"
    if origin.how == "override":
        return EditRefusedError(f"'{key}' is not set here: an override gives it", where=document.name)
    fix = "Remove it there, or set another value here."
    return EditRefusedError(f"'{key}' is not set here but inherited", where=where, fix=fix)


def _write_lists(
    document: Document, path: KeyPath, inherited: EffectiveRecipe, *, write_out: bool = False
) -> None:
    """Write the inherited lists on a path into the recipe's own text."""
    for depth in range(1, len(path) + 1):
        way = path[:depth]
        value = find(inherited.merged, way)
        if not isinstance(value, Seq) or document.is_written(way):
            continue
        if document.has(way) and not write_out:
            fix = "Write the section out here first, or edit the list where it is written."
            where = document.revision.tree.position(value.mark.start)
            raise EditRefusedError(
                f"'{format_key(way)}' comes from a merge or an alias", where=where, fix=fix
            )
        document.set(way, writable(plain(value)), copy=write_out)


def _check_followed(
    document: Document, path: KeyPath, inherited: EffectiveRecipe, *, write_out: bool
) -> None:
    """Write out, or refuse to replace, a section on the way that follows another key by interpolation."""
    for depth in range(1, len(path)):
        way = path[:depth]
        value = find(inherited.merged, way)
        if not isinstance(value, Leaf):
            continue
        settled = inherited.locate(path[: depth + 1])
        if settled is None or not document.is_written(way):
            return
        if not write_out:
            fix = "Set it there, or write the section out here first."
            raise EditRefusedError(
                f"'{format_key(way)}' follows another key: {value.value}",
                where=document.revision.tree.position(value.mark.start),
                fix=fix,
            )
        target, _ = inherited.evaluator.settle(value, way)
        document.set(way, writable(plain(target)))
        return
