"""One pass over new bytes: find the few lines that mean something, and hand them to the log's reader.

A log of many gigabytes holds few such lines. Each reader names literals; a chunk is searched for them as a
whole (`search.py`), and only lines that hold one are decoded and matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from launcher.logs.events import Event
from launcher.logs.lines import LINE_LIMIT, LineSplitter, RawLine
from launcher.logs.search import Finder, finder_for

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

    def __init__(self, reader: Reader, finder: Finder | None = None) -> None:
        self.reader = reader
        self.splitter = LineSplitter()
        self._finder = finder or finder_for(reader.literals)

    def feed(self, data: bytes, clock: Clock) -> Iterator[Event]:
        """Yield the events in the lines that `data` completes."""
        places = self._finder.places(data)
        place = next(places, len(data))
        start = 0
        while start < len(data):
            while place < start:
                place = next(places, len(data))
            if not self.splitter.holding and not self.reader.wants_all:
                line_start = data.rfind(b"\n", start, place) + 1
                if line_start > start:
                    self.splitter.skip(data.count(b"\n", start, line_start), line_start - start)
                    start = line_start
            held = self.splitter.holding
            stop = data.find(b"\n", start) + 1 or len(data)
            # A literal in a line that is whole here is in what is kept of it, unless the line is too long.
            told = not held and place < stop and stop - start <= LINE_LIMIT
            for line in self.splitter.feed(data[start:stop]):
                if told or self._wanted(line.data):
                    yield from self.reader.read(line, clock(line.offset))
            start = stop

    def finish(self, clock: Clock) -> Iterator[Event]:
        """Yield the events of an unfinished last line; only when nothing more will be appended to it."""
        line = self.splitter.pending()
        if line is not None and self._wanted(line.data):
            yield from self.reader.read(line, clock(line.offset))

    def _wanted(self, data: bytes) -> bool:
        return self.reader.wants_all or self._finder.holds(data)
