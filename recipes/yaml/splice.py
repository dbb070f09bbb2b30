"""Splices: the only way in which a recipe's text changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Splice:
    """Replacement of the text from `start` to `end` (code points) by `new`."""

    start: int
    end: int
    new: str


def splice(text: str, splices: Sequence[Splice]) -> str:
    """Apply splices that do not overlap; those at one offset come in the order given."""
    parts, position = [], 0
    for part in sorted(splices, key=lambda part: part.start):
        parts += [text[position : part.start], part.new]
        position = part.end
    return "".join(parts) + text[position:]
