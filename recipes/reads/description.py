"""The reads of one driver as data: what is kept, shipped and evaluated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from recipes.reads.read_conditions import AllOf, Always, AnyOf, Condition, Negation, Path, Test, Undecided

FORMAT = 2
"""Raised with each change of what is found or how it is written: older descriptions are made again."""
Node: TypeAlias = "tuple[Any, ...]"
"""A condition whose parts are numbers of earlier nodes: ("t", operator, path, operand, default), ("u",
number), ("n", part), ("a", parts…) for all of them, ("o", parts…) for any of them, ("c", holds)."""


@dataclass(frozen=True, slots=True)
class Read:
    """A place that reads a key without a default, where the condition of this number holds."""

    file: str
    line: int
    condition: int


@dataclass(frozen=True, slots=True)
class Reads:
    """All reads that a driver makes, by key; `nodes` are their conditions.

    `complete` is false where the walk through the sources was cut short. `files` are the sources that it
    depends on, relative to the checkout.
    """

    nodes: tuple[Node, ...]
    by_path: Mapping[Path, tuple[Read, ...]]
    files: tuple[str, ...] = ()
    complete: bool = True

    def to_json(self) -> str:
        """Return the description as text."""
        names = sorted({read.file for reads in self.by_path.values() for read in reads})
        number = {name: index for index, name in enumerate(names)}
        return json.dumps(
            {
                "format": FORMAT,
                "complete": self.complete,
                "files": self.files,
                "names": names,
                "nodes": self.nodes,
                "reads": [
                    [list(path), [[number[read.file], read.line, read.condition] for read in reads]]
                    for path, reads in self.by_path.items()
                ],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Reads | None:
        """Return a description from its text; None if it is of another format, or damaged."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                return None
            names = data["names"]
            return cls(
                tuple(tuple(node) for node in data["nodes"]),
                {
                    tuple(path): tuple(Read(names[file], line, condition) for file, line, condition in reads)
                    for path, reads in data["reads"]
                },
                tuple(data["files"]),
                bool(data["complete"]),
            )
        except (ValueError, KeyError, TypeError, IndexError):
            return None


def described(
    reads: Mapping[tuple[Path, str, int], Condition], files: Iterable[str], *, complete: bool
) -> Reads:
    """Return the description of what a walk has found, without reads that an earlier one implies."""
    table = _Table()
    by_path: dict[Path, list[tuple[str, int, Condition]]] = {}
    for (path, file, line), condition in reads.items():
        places = by_path.setdefault(path, [])
        if condition != Always(holds=False) and not any(_implies(condition, known) for _, _, known in places):
            places.append((file, line, condition))
    found = {
        path: tuple(Read(file, line, table.number(condition)) for file, line, condition in places)
        for path, places in by_path.items()
        if places
    }
    return Reads(tuple(table.nodes), found, tuple(files), complete)


def _implies(condition: Condition, other: Condition) -> bool:
    """Tell whether a condition surely holds only where another one does."""
    if condition == other:
        return True
    parts = set(condition.parts) if isinstance(condition, AllOf) else {condition}
    wanted = other.parts if isinstance(other, AllOf) else (other,)
    return all(part in parts or part == Always(holds=True) for part in wanted)


class _Table:
    """Numbers conditions, each different one once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._numbers: dict[Condition, int] = {}

    def number(self, condition: Condition) -> int:
        """Return the number of a condition, after those of its parts."""
        if condition not in self._numbers:
            node = self._node(condition)
            self._numbers[condition] = len(self.nodes)
            self.nodes.append(node)
        return self._numbers[condition]

    def _node(self, condition: Condition) -> Node:
        if isinstance(condition, Always):
            return ("c", condition.holds)
        if isinstance(condition, Undecided):
            return ("u", condition.number)
        if isinstance(condition, Test):
            return ("t", condition.operator, condition.path, condition.operand, condition.default)
        if isinstance(condition, Negation):
            return ("n", self.number(condition.inner))
        kind = "a" if isinstance(condition, AllOf) else "o"
        assert isinstance(condition, AllOf | AnyOf)
        return (kind, *(self.number(part) for part in condition.parts))
