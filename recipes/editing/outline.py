"""Outline of a recipe: the effective tree as rows, each with where it comes from and where it is written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from recipes.editing.own_lines import LineRange, WrittenKey, written_keys
from recipes.inheritance import Origin
from recipes.interpolation import is_interpolation
from recipes.keys import KeyPath, Step, format_key, format_step
from recipes.lint import unknown_way
from recipes.values import Leaf, Map, Seq, Value
from recipes.yaml.comment_out import CommentedEntry, commented_entries
from recipes.yaml.typed import writable
from recipes.yaml.write import flow_text, scalar_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.inheritance import EffectiveRecipe
    from recipes.known_keys import KeyTree
    from recipes.yaml.nodes import Tree

RowKind = Literal["section", "list", "value"]
RowState = Literal["own", "inherited", "override", "commented"]
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of several values of a key that are commented out."""

    line: int
    value: str


@dataclass(frozen=True, slots=True)
class OutlineRow:
    """One key of the effective recipe.

    `state`: written in the own text, inherited (from a parent, or by `<<` and aliases), given by an
    override of the command line, or commented out in the own text. `written` is the value as text, as it is
    spelled; `effective` what NeMo-RL gets. Both are one line, and empty for sections and lists with
    content. `lines` are those of the own text. `size` counts the keys right below.
    """

    key: str
    path: KeyPath
    name: str
    depth: int
    kind: RowKind
    state: RowState
    written: str = ""
    effective: str = ""
    interpolated: bool = False
    replaces: bool = False
    """Whether the own text gives another value than a parent's."""
    unknown: bool = False
    """Whether NeMo-RL knows no such key."""
    origin: Origin | None = None
    lines: LineRange | None = None
    size: int = 0
    alternatives: tuple[Alternative, ...] = ()
    """Values of a commented-out key where several lines have it, this one's first."""


class Outline:
    """Rows of a recipe in the order of the effective tree, with look-ups."""

    def __init__(self, rows: tuple[OutlineRow, ...]) -> None:
        self.rows = rows

    @cached_property
    def _indexes(self) -> dict[str, int]:
        indexes: dict[str, int] = {}
        for index, row in enumerate(self.rows):
            indexes.setdefault(row.key, index)
        return indexes

    @cached_property
    def _by_line(self) -> tuple[list[int], list[tuple[int, int]]]:
        """First lines of the rows in ascending order, and the last line and index that belong to each."""
        spans = sorted(
            (row.lines.first, -row.lines.last, index)
            for index, row in enumerate(self.rows)
            if row.lines is not None
        )
        return [first for first, _, _ in spans], [(-last, index) for _, last, index in spans]

    def row(self, key: str) -> OutlineRow | None:
        """Return the row of a key."""
        index = self.index(key)
        return None if index is None else self.rows[index]

    def index(self, key: str) -> int | None:
        """Return the index of a key's row."""
        return self._indexes.get(key)

    def at_line(self, line: int) -> int | None:
        """Return the index of the deepest row that is written on a line; None where none is."""
        firsts, spans = self._by_line
        for position in range(bisect_right(firsts, line) - 1, -1, -1):
            last, index = spans[position]
            if last >= line:
                return index
        return None

    def below(self, index: int) -> range:
        """Return the indexes of all rows below a row, at any depth."""
        depth = self.rows[index].depth
        end = index + 1
        while end < len(self.rows) and self.rows[end].depth > depth:
            end += 1
        return range(index + 1, end)

    def parent(self, index: int) -> int | None:
        """Return the index of the row around a row; None at the top."""
        depth = self.rows[index].depth
        return next((above for above in range(index - 1, -1, -1) if self.rows[above].depth < depth), None)


def outline_of(recipe: EffectiveRecipe, tree: Tree, key_tree: KeyTree | None = None) -> Outline:
    """Return the outline of a recipe whose own text is `tree`; `key_tree` has the keys that NeMo-RL knows."""
    builder = _OutlineBuilder(recipe, written_keys(tree), key_tree)
    rows = list(builder.mapping(recipe.merged, recipe.values, (), 0))
    return Outline(tuple(_with_commented(rows, commented_entries(tree), recipe, key_tree)))


@dataclass(slots=True)
class _OutlineBuilder:
    recipe: EffectiveRecipe
    written: Mapping[KeyPath, WrittenKey]
    key_tree: KeyTree | None

    def mapping(self, value: Map, data: Any, path: KeyPath, depth: int) -> Iterator[OutlineRow]:  # noqa: ANN401
        for key, item in value.items.items():
            below = data.get(key, _ABSENT) if isinstance(data, dict) else _ABSENT
            yield from self.rows(key, item, below, (*path, key), depth)

    def rows(
        self,
        step: Step,
        value: Value,
        data: Any,  # noqa: ANN401
        path: KeyPath,
        depth: int,
    ) -> Iterator[OutlineRow]:
        """Yield the row of a key and those below it."""
        row = self.row(step, value, data, path, depth)
        yield row
        if isinstance(value, Map):
            yield from self.mapping(value, data, path, depth + 1)
        elif isinstance(value, Seq):
            for index, item in enumerate(value.items):
                below = data[index] if isinstance(data, list) and index < len(data) else _ABSENT
                yield from self.rows(index, item, below, (*path, index), depth + 1)
        elif row.kind != "value":
            yield from self.followed(data, row)

    def row(
        self,
        step: Step,
        value: Value,
        data: Any,  # noqa: ANN401
        path: KeyPath,
        depth: int,
    ) -> OutlineRow:
        here = self.written.get(path)
        interpolated = isinstance(value, Leaf) and is_interpolation(value.value)
        content = data if interpolated and data is not _ABSENT else value
        kind: RowKind = "value"
        size = 0
        if isinstance(content, dict | Map):
            kind = "section"
            size = len(content if isinstance(content, dict) else content.items)
        elif isinstance(content, list | Seq):
            kind = "list"
            size = len(content if isinstance(content, list) else content.items)
        state: RowState = "inherited"
        if value.mark.override:
            state = "override"
        elif here is not None:
            state = "own"
        written = one_line(value) if kind == "value" or interpolated or not size else ""
        if state == "own" and here is not None and here.spelling.isprintable():
            # What cannot be painted, such as U+202E, is escaped: in a field it would get lost.
            written = here.spelling or written
        return OutlineRow(
            format_key(path), path, format_step(step), depth, kind, state, written,
            effective=one_line(data) if kind == "value" and data is not _ABSENT else "" if size else written,
            interpolated=interpolated,
            replaces=state == "own" and kind == "value" and value.under is not None,
            unknown=state == "own" and is_unknown(self.recipe, path, self.key_tree),
            origin=self.recipe.origin_of(value),
            lines=here.lines if here is not None else None,
            size=size,
        )  # fmt: skip

    def followed(self, data: Any, around: OutlineRow) -> Iterator[OutlineRow]:  # noqa: ANN401
        """Yield the keys of a section or list that stands where it is by an interpolation."""
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for step, item in pairs:
            path = (*around.path, step)
            kind: RowKind = (
                "section" if isinstance(item, dict) else "list" if isinstance(item, list) else "value"
            )
            size = len(item) if isinstance(item, dict | list) else 0
            text = "" if size else one_line(item)
            row = OutlineRow(
                format_key(path), path, format_step(step), around.depth + 1, kind, "inherited", text, text,
                interpolated=True, origin=around.origin, size=size,
            )  # fmt: skip
            yield row
            if size:
                yield from self.followed(item, row)


def is_unknown(recipe: EffectiveRecipe, path: KeyPath, key_tree: KeyTree | None) -> bool:
    """Return whether NeMo-RL knows no key of a path's last step, where it knows the section around it."""
    if key_tree is None or not isinstance(path[-1], str):
        return False
    return unknown_way(recipe, path, key_tree) == path


def one_line(value: object) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Leaf):
        value = value.value
    elif isinstance(value, Map | Seq):
        return "{}" if isinstance(value, Map) else "[]"
    if value is None or isinstance(value, bool | int | float | str):
        return _scalar_line(value)
    return flow_text(writable(value))


_MOST_COMMENTED = 2000
"""Keys that are commented out and shown; a stock recipe has up to 100, and each is put into its section."""


@lru_cache(maxsize=8192, typed=True)
def _scalar_line(value: bool | float | str | None) -> str:
    """Write a scalar on one line; writing reads it back twice, and the same values come at each change."""
    text = scalar_text(value)
    return text if text.isprintable() else " ".join(text.split())


def _with_commented(
    rows: list[OutlineRow],
    entries: list[CommentedEntry],
    recipe: EffectiveRecipe,
    key_tree: KeyTree | None,
) -> list[OutlineRow]:
    """Add the rows of commented-out keys at the ends of their sections; sentences with a colon are none."""
    set_keys = {row.key for row in rows}
    alternatives: dict[str, list[Alternative]] = {}
    for entry in entries:
        key = format_key(entry.path)
        if entry.prose and (key in set_keys or not _is_known(recipe, entry.path, key_tree)):
            continue
        alternative = Alternative(entry.first_line, entry.value)
        if key in alternatives:
            alternatives[key].append(alternative)
            continue
        if len(alternatives) == _MOST_COMMENTED:
            continue
        at, depth = _end_of_section(rows, entry.path[:-1])
        if at is None:
            continue
        lines = LineRange(entry.first_line, entry.last_line)
        kind: RowKind = "value" if entry.value or entry.first_line == entry.last_line else "section"
        text = entry.value
        row = OutlineRow(
            key, entry.path, format_step(entry.path[-1]), depth, kind, "commented", text, lines=lines
        )
        rows.insert(at, row)
        alternatives[key] = [alternative]
    return [
        replace(row, alternatives=tuple(alternatives[row.key]))
        if row.state == "commented" and len(alternatives[row.key]) > 1
        else row
        for row in rows
    ]


def _is_known(recipe: EffectiveRecipe, path: KeyPath, key_tree: KeyTree | None) -> bool:
    return key_tree is not None and unknown_way(recipe, path, key_tree) is None


def _end_of_section(rows: list[OutlineRow], path: KeyPath) -> tuple[int | None, int]:
    if not path:
        return len(rows), 0
    key = format_key(path)
    index = next((number for number, row in enumerate(rows) if row.key == key), None)
    if index is None:
        return None, 0
    end = index + 1
    while end < len(rows) and rows[end].depth > rows[index].depth:
        end += 1
    return end, rows[index].depth + 1
