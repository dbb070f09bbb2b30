"""One pass over new bytes: find the few lines that mean something, and hand them to the log's reader.

A log of many gigabytes holds few such lines. Each reader names literals; a chunk is searched for them as a
whole (`bytes.find` runs at memory speed), and only lines that hold one are decoded and matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from launcher.logs.events import Event
from launcher.logs.lines import LineSplitter, RawLine

Clock = Callable[[int], float | None]
"""Tells when the byte at an offset was written, in seconds since the epoch, where that is known."""


class Reader(Protocol):
    """Understands the lines of one log, in their order."""

    @property
    def literals(self) -> tuple[bytes, ...]:
        """A line without any of these is skipped, unless `wants_all` is set."""
        ...

    @property
    def wants_all(self) -> bool:
        """Whether the reader is inside something whose lines have no literal (a traceback)."""
        ...

    def read(self, line: RawLine, time: float | None) -> Iterator[Event]:
        """Yield what the line tells; `time` is when it was written, where known."""
        ...


class Scanner:
    """Feeds the meaningful lines of a byte stream to a reader. Holds at most one unfinished line."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.splitter = LineSplitter()

    def feed(self, data: bytes, clock: Clock) -> Iterator[Event]:
        """Yield the events in the lines that `data` completes."""
        for line in self._candidates(data):
            if self._wanted(line.data):
                yield from self.reader.read(line, clock(line.offset))

    def finish(self, clock: Clock) -> Iterator[Event]:
        """Yield the events of an unfinished last line; only when nothing more will be appended to it."""
        line = self.splitter.pending()
        if line is not None and self._wanted(line.data):
            yield from self.reader.read(line, clock(line.offset))

    def _wanted(self, data: bytes) -> bool:
        return self.reader.wants_all or any(literal in data for literal in self.reader.literals)

    def _candidates(self, data: bytes) -> Iterator[RawLine]:
        hits = _Hits(self.reader.literals, data)
        start = 0
        while start < len(data):
            if not self.splitter.holding and not self.reader.wants_all:
                line_start = data.rfind(b"\n", start, hits.first(start)) + 1
                if line_start > start:
                    self.splitter.skip(data.count(b"\n", start, line_start), line_start - start)
                    start = line_start
            stop = data.find(b"\n", start) + 1 or len(data)
            yield from self.splitter.feed(data[start:stop])
            start = stop


class _Hits:
    """Positions of literals in a chunk; each literal's search goes over the chunk once."""

    def __init__(self, literals: tuple[bytes, ...], data: bytes) -> None:
        self._data = data
        self._next = {literal: data.find(literal) for literal in literals}

    def first(self, start: int) -> int:
        """Return the first position >= start that holds a literal, or the chunk's length."""
        first = len(self._data)
        for literal, position in self._next.items():
            if 0 <= position < start:
                position = self._next[literal] = self._data.find(literal, start)
            if 0 <= position < first:
                first = position
        return first
