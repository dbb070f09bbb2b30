"""Lines in which a text differs from the saved one. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from recipes.yaml.offsets import LINE_BREAK

_LONGEST = 2000
"""Lines between the first and the last change that are compared one by one; beyond it all of them count."""


class LineChanges(NamedTuple):
    """`lines` of the later text, from 1, that the earlier one has not so; `total` has removed ones, too."""

    lines: frozenset[int]
    total: int


def line_changes(before: str, after: str) -> LineChanges:
    """Compare two texts; what they begin and end with in common is skipped first."""
    old, new = LINE_BREAK.split(before), LINE_BREAK.split(after)
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    room = shorter - start
    end = next((index for index in range(room) if old[-1 - index] != new[-1 - index]), room)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    lines: set[int] = set()
    count = 0
    for first_old, last_old, first, last in _differences(old, new):
        lines.update(range(start + first + 1, start + last + 1))
        count += max(last_old - first_old, last - first)
    return LineChanges(frozenset(lines), count)


def _differences(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    if max(len(old), len(new)) > _LONGEST:
        return [(0, len(old), 0, len(new))]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
