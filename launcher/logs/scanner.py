"""Scanner of new bytes: finds the few lines that mean something and passes them to the log's reader.

A log of many gigabytes holds few such lines. Each reader names literals; a chunk is searched for them as a
whole (`search.py`), and only lines that hold one are decoded and matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from launcher.logs.events import Event
from launcher.logs.lines import LINE_LIMIT, LineSplitter, RawLine, count_newlines
from launcher.logs.search import Finder, finder_for

BATCH = 1024 * 1024
"""Bytes in which all matching lines are located before the first of them is read: alternating between search
and interpreter at each such line evicts both from the processor's cache, which costs a quarter."""
PIECE = 128 * 1024
"""Bytes searched at once: they stay in the cache until their newlines are counted, a sixth faster. In MB per
CPU second, best of 16 turns on a core with 512 KiB of cache: 64 KiB 392, 128 KiB 421, 192 KiB 419."""

Clock = Callable[[int], float | None]
"""Returns the time when the byte at an offset was written, in seconds since the epoch; None where unknown."""


class Reader(Protocol):
    """Reader of the lines of one log, in their order."""

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Texts to search for; a line without any of them is skipped, unless it is awaited."""
        ...

    def awaited(self, number: int) -> tuple[bytes, ...]:
        """Return texts of which each line that matters besides holds one (the rest of a traceback).

        Empty where none matters; an empty text is in every line. `number`: that of the next line.
        """
        ...

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        """Yield the events of a line.

        `time`: when it was written, None where unknown; `hits`: indices of the literals that it holds.
        """
        ...


@dataclass(slots=True)
class _Marked:
    """Line that holds literals: its start, the start of the next line, and its index among the lines."""

    start: int
    stop: int
    index: int
    literals: list[int]


class Scanner:
    """Feeder of a byte stream's matching lines to a reader. Holds at most one unfinished line."""

    def __init__(self, reader: Reader, finder: Finder | None = None) -> None:
        self.reader = reader
        self.splitter = LineSplitter()
        self._finder = finder or finder_for(reader.literals)

    def feed(self, data: bytes, clock: Clock) -> Iterator[Event]:
        """Yield the events in the lines that `data` completes."""
        start = 0
        while start < len(data):
            stop = 0 if self.splitter.has_unfinished else data.rfind(b"\n", start, start + BATCH) + 1
            if stop:
                yield from self._read_batch(data, start, stop, clock)
            else:  # the rest of a line, the beginning of one, or one that is longer than a batch
                stop = data.find(b"\n", start) + 1 or len(data)
                for line in self.splitter.feed(data[start:stop]):
                    yield from self._read(line, clock)
            start = stop

    def finish(self, clock: Clock) -> Iterator[Event]:
        """Yield the events of an unfinished last line; only when nothing more will be appended to it."""
        line = self.splitter.pending()
        if line is not None:
            yield from self._read(line, clock)

    def _read(self, line: RawLine, clock: Clock) -> Iterator[Event]:
        hits = [literal for _, literal in self._finder.hits(line.data)]
        if hits or any(text in line.data for text in self.reader.awaited(line.number)):
            yield from self.reader.read(line, clock(line.offset), hits)

    def _read_batch(self, data: bytes, start: int, stop: int, clock: Clock) -> Iterator[Event]:
        """Read `data[start:stop]`, which consists of whole lines."""
        number, shift = self.splitter.lines + 1, self.splitter.offset - start
        marked, lines = self._mark(data, start, stop)
        self.splitter.skip(lines, stop - start)
        at, index = start, 0
        for item in (*marked, _Marked(stop, stop, lines, [])):
            while at < item.start and (texts := self.reader.awaited(number + index)):
                position = _first_of(texts, data, at, item.start)
                if position < 0:
                    break
                begin = data.rfind(b"\n", at, position) + 1 or at
                index += count_newlines(data, at, begin)
                end = data.find(b"\n", position)
                line = RawLine(number + index, begin + shift, data[begin : min(end, begin + LINE_LIMIT)])
                yield from self.reader.read(line, clock(line.offset), ())
                at, index = end + 1, index + 1
            if not item.literals:
                continue
            at, index = item.stop, item.index + 1
            line = RawLine(number + item.index, item.start + shift, data[item.start : at - 1][:LINE_LIMIT])
            if at - item.start > LINE_LIMIT:  # the match may lie beyond what is kept of it
                yield from self._read(line, clock)
            else:
                yield from self.reader.read(line, clock(line.offset), item.literals)

    def _mark(self, data: bytes, start: int, stop: int) -> tuple[list[_Marked], int]:
        """Return the lines of `data[start:stop]` that hold literals, and its number of lines."""
        marked: list[_Marked] = []
        lines = 0
        while start < stop:
            end = data.rfind(b"\n", start, min(start + PIECE, stop)) + 1 or data.find(b"\n", start) + 1
            piece, at = data[start:end], 0
            for position, literal in self._finder.hits(piece):
                if position < at:  # in the line that was marked last
                    marked[-1].literals.append(literal)
                    continue
                begin = piece.rfind(b"\n", at, position) + 1 or at
                lines += count_newlines(piece, at, begin)
                at = piece.find(b"\n", position) + 1
                marked.append(_Marked(start + begin, start + at, lines, [literal]))
                lines += 1
            lines += count_newlines(piece, at, len(piece))
            start = end
        return marked, lines


def _first_of(texts: tuple[bytes, ...], data: bytes, start: int, stop: int) -> int:
    """Return the position of the first of some texts in `data[start:stop]`, -1 where none is there."""
    first = -1
    for text in texts:
        position = data.find(text, start, stop)
        if position >= 0:
            first, stop = position, position
    return first
