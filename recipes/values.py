"""Values of a recipe, with where each is written.

Values are immutable; merging shares whatever it does not change, so a parent's values are made once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from recipes.keys import KeyPath, Step, find_step, list_index
from recipes.yaml.scalars import Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Plain = Scalar | dict[Step, "Plain"] | list["Plain"]
"""Plain Python data."""


class Mark(NamedTuple):
    """Position of a value's text. `merged`: it is written for another key and came by `<<` or an alias."""

    file: str
    line: int
    start: int
    merged: bool = False
    override: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """Scalar. `under` is the value it replaced, if it replaced one."""

    value: Scalar
    mark: Mark
    under: Value | None = None


@dataclass(frozen=True, slots=True)
class Seq:
    """List."""

    items: tuple[Value, ...]
    mark: Mark
    under: Value | None = None


@dataclass(frozen=True, slots=True)
class Map:
    """Mapping; `items` is never changed once made."""

    items: Mapping[Step, Value]
    mark: Mark
    under: Value | None = None


Value = Leaf | Seq | Map

EMPTY = Map({}, Mark("", 0, 0))
"""Value of an empty file."""


def plain(value: Value) -> Plain:
    """Return a value as plain Python data, interpolations as they are written."""
    if isinstance(value, Leaf):
        return value.value
    if isinstance(value, Seq):
        return [plain(item) for item in value.items]
    return {key: plain(item) for key, item in value.items.items()}


def as_merged(value: Value) -> Value:
    """Return a value as it arrives through `<<` or an alias."""
    mark = value.mark._replace(merged=True)
    if isinstance(value, Leaf):
        return Leaf(value.value, mark, value.under)
    if isinstance(value, Seq):
        return Seq(tuple(as_merged(item) for item in value.items), mark, value.under)
    return Map({key: as_merged(item) for key, item in value.items.items()}, mark, value.under)


def on_top(value: Value, under: Value | None) -> Value:
    """Return a value that replaces another one, remembering it."""
    return value if under is None else replace(value, under=under)


def child(value: Value, step: Step) -> tuple[Step, Value] | None:
    """Return the child that a step means, with the step as it is typed there; None if there is none."""
    if isinstance(value, Map):
        key = find_step(value.items, step)
        return None if key is None else (key, value.items[key])
    if isinstance(value, Seq):
        index = item_index(step, len(value.items))
        return None if index is None else (index, value.items[index])
    return None


def item_index(step: Step, length: int) -> int | None:
    """Return the list index that a step means, None if it is none or out of range."""
    if isinstance(step, str):
        step = list_index(step)
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < length:
        return None
    return step


def find(value: Value, path: KeyPath) -> Value | None:
    """Return the value at a path, None if there is none. Interpolations are not followed."""
    for step in path:
        match = child(value, step)
        if match is None:
            return None
        value = match[1]
    return value


def leaves(value: Value, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Value]]:
    """Yield every scalar and every empty collection with its path."""
    waiting = [(path, value)]  # a generator in a generator takes each leaf through every level again
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Leaf) or not value.items:
            yield path, value
        elif isinstance(value, Map):
            waiting += [((*path, key), item) for key, item in reversed([*value.items.items()])]
        else:
            waiting += reversed([((*path, index), item) for index, item in enumerate(value.items)])


class Measure(NamedTuple):
    """Measure of a value: how many values it is, their characters, and the levels of nesting (scalars: 0)."""

    values: int
    characters: int
    height: int


def measure(value: Value) -> Measure:
    """Measure a value, interpolations as they are written."""
    if isinstance(value, Leaf):
        return Measure(1, len(value.value) if isinstance(value.value, str) else 0, 0)
    items = value.items if isinstance(value, Seq) else value.items.values()
    return around(value, (measure(item) for item in items))


def around(value: Map | Seq, inner: Iterable[Measure]) -> Measure:
    """Return the measure of a collection, from those of what it holds."""
    values, characters, height = 1, 0, 0
    if isinstance(value, Map):
        characters = sum(len(key) for key in value.items if isinstance(key, str))
    for size in inner:
        values, characters, height = (
            values + size.values,
            characters + size.characters,
            max(height, size.height),
        )
    return Measure(values, characters, height + 1)
