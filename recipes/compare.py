"""Comparison of recipes by their effective values, and removal of values that they inherit anyway."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.chain import DEFAULTS
from recipes.errors import RecipeError
from recipes.keys import KeyPath, format_key
from recipes.merge import OVERRIDE_KEY
from recipes.values import Map, Plain, Value, plain
from recipes.yaml.check import EditRefusedError
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.document import Document
    from recipes.inheritance import Resolver


@dataclass(frozen=True, slots=True)
class Absent:
    """Marker for the value of a key that is not there."""


ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """A key whose values differ; `a` or `b` is `ABSENT` where only the other recipe has it."""

    key: str
    a: Any
    b: Any


def differences(a: object, b: object, path: KeyPath = ()) -> Iterator[ValueDifference]:
    """Compare two recipes' data key by key; lists are compared whole."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from differences(a.get(key, ABSENT), b.get(key, ABSENT), (*path, key))
    elif not _equal(a, b):
        yield ValueDifference(format_key(path), a, b)


def _equal(a: object, b: object) -> bool:
    """Compare with types, but without the order of keys."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return same(a, b)


def minimise(document: Document, resolver: Resolver, *, with_comments: bool = False) -> list[str]:
    """Remove the values that a recipe would inherit anyway; returns the removed keys.

    The recipe means the same afterwards: that is checked, and a removal that would change it is not made.
    Sections with `_override_: true` are left alone. It is one step of the document's history.

    Raises:
        EditRefusedError: the recipe has no file, or no parent.
        RecipeError: the recipe or a parent cannot be read.
    """
    path = _file_of(document)
    revision = document.revision
    chain = resolver.reader.chain(path, revision.tree, revision.composed)
    if not chain.parents:
        raise EditRefusedError("The recipe has no parent: there is nothing to leave out", where=path)
    base = resolver.reader.base(chain, strict=False)
    own = chain.source.values
    redundant = [key for key in _redundant(own, base, ()) if document.is_written(key)]
    before = _meaning(document, resolver, path)
    with document.group():
        for key in redundant:
            document.delete(key, with_comments=with_comments)
        if _equal(_meaning(document, resolver, path), before):
            return [format_key(key) for key in redundant]
        while document.revision is not revision:
            document.undo()
        return _one_by_one(document, resolver, path, redundant, before, with_comments=with_comments)


def _one_by_one(
    document: Document,
    resolver: Resolver,
    path: Path,
    redundant: list[KeyPath],
    before: Plain,
    *,
    with_comments: bool,
) -> list[str]:
    removed = []
    for key in redundant:
        try:
            document.delete(key, with_comments=with_comments)
        except RecipeError:
            continue
        if _equal(_meaning(document, resolver, path), before):
            removed.append(format_key(key))
        else:
            document.undo()
    return removed


def _meaning(document: Document, resolver: Resolver, path: Path) -> Plain:
    """Return the merged values before interpolation: equal ones resolve to equal recipes."""
    chain = resolver.reader.chain(path, document.revision.tree, document.revision.composed)
    return plain(resolver.reader.merged(chain, strict=False))


def _redundant(own: Map, base: Map, path: KeyPath) -> Iterator[KeyPath]:
    for key, value in own.items.items():
        inherited = base.items.get(key)
        if inherited is None or (isinstance(value, Map) and OVERRIDE_KEY in value.items):
            continue
        if _is_redundant(value, inherited):
            yield (*path, key)
        elif isinstance(value, Map) and isinstance(inherited, Map):
            yield from _redundant(value, inherited, (*path, key))


def _is_redundant(value: Value, inherited: Value) -> bool:
    if isinstance(value, Map) and isinstance(inherited, Map):
        return OVERRIDE_KEY not in value.items and all(
            key in inherited.items and _is_redundant(item, inherited.items[key])
            for key, item in value.items.items()
        )
    return _equal(plain(value), plain(inherited))


def rebase(document: Document, resolver: Resolver, parent: Path) -> None:
    """Change a recipe's parent while its effective values stay the same.

    Keys that the new parent has otherwise are written into the recipe. Raises `EditRefusedError` if the
    parent has keys that the recipe must not have: inheriting cannot take a key away.
    """
    path = _file_of(document)
    before = _meaning(document, resolver, path)
    name = os.path.relpath(str(parent.resolve()), str(path.resolve().parent))
    with document.group():
        document.set((DEFAULTS,), name)
        after = _meaning(document, resolver, path)
        missing = list(differences(before, after))
        surplus = [item.key for item in missing if item.a is ABSENT]
        if surplus:
            what = f"{parent} has keys that the recipe does not have: {', '.join(surplus[:5])}"
            fix = "Choose another parent, or set these keys in the recipe first."
            raise EditRefusedError(what, where=parent, fix=fix)
        for item in missing:
            document.set(item.key, item.a)


def _file_of(document: Document) -> Path:
    if document.path is None:
        raise EditRefusedError("A text without a file has no parents", where=document.name)
    return document.path
