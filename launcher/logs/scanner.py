"""One pass over new bytes: find the few lines that mean something, and hand them to the log's reader.

A log of many gigabytes holds few such lines. Each reader names literals; a chunk is searched for them as a
whole (`search.py`), and only lines that hold one are decoded and matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from launcher.logs.events import Event
from launcher.logs.lines import LINE_LIMIT, LineSplitter, RawLine
from launcher.logs.newlines import count_newlines
from launcher.logs.search import Finder, finder_for

PIECE = 128 * 1024
"""Bytes looked at in one go: they stay in the processor's cache, which makes it a sixth faster."""

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

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        """Yield what the line tells.

        `time` is when it was written, where known; `hits` are the numbers of the literals that it holds.
        """
        ...


class Scanner:
    """Feeds the meaningful lines of a byte stream to a reader. Holds at most one unfinished line."""

    def __init__(self, reader: Reader, finder: Finder | None = None) -> None:
        self.reader = reader
        self.splitter = LineSplitter()
        self._finder = finder or finder_for(reader.literals)

    def feed(self, data: bytes, clock: Clock) -> Iterator[Event]:
        """Yield the events in the lines that `data` completes."""
        for start in range(0, len(data), PIECE):
            yield from self._feed(data[start : start + PIECE], clock)

    def _feed(self, data: bytes, clock: Clock) -> Iterator[Event]:
        places = self._finder.places(data)
        end = (len(data), -1)
        place, literal = next(places, end)
        start = 0
        while start < len(data):
            if not self.splitter.holding and not self.reader.wants_all:
                line_start = data.rfind(b"\n", start, place) + 1
                if line_start > start:
                    self.splitter.skip(count_newlines(data, start, line_start), line_start - start)
                    start = line_start
            newline = data.find(b"\n", start)
            stop = newline + 1 or len(data)
            hits: list[int] = []
            while place < stop and literal >= 0:
                hits.append(literal)
                place, literal = next(places, end)
            # A literal in a line that is whole here is in what is kept of it, unless the line is too long.
            if newline >= 0 and stop - start <= LINE_LIMIT and not self.splitter.holding:
                line = self.splitter.take(data[start:newline])
                if hits or self.reader.wants_all:
                    yield from self.reader.read(line, clock(line.offset), hits)
            else:
                for line in self.splitter.feed(data[start:stop]):
                    yield from self._hand_over(line, clock, None)
            start = stop

    def finish(self, clock: Clock) -> Iterator[Event]:
        """Yield the events of an unfinished last line; only when nothing more will be appended to it."""
        line = self.splitter.pending()
        if line is not None:
            yield from self._hand_over(line, clock, None)

    def _hand_over(self, line: RawLine, clock: Clock, hits: list[int] | None) -> Iterator[Event]:
        if hits is None:
            hits = [literal for _, literal in self._finder.places(line.data)]
        if hits or self.reader.wants_all:
            yield from self.reader.read(line, clock(line.offset), hits)
