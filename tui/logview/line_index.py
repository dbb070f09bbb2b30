"""The lines of a log of any size, read when they are shown.

In memory is only the number of newlines before each block of the file: 8 bytes for 64 KiB. A log of a
gigabyte opens at its end; its lines are counted afterwards, and only then have numbers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from launcher.logs.lines import count_newlines
from tui.logview.line import Line, display_text, line_of
from tui.logview.match import LineFilterTerm, matching
from tui.logview.source import LogSource

BLOCK = 64 * 1024
TAIL = 256 * 1024
"""Bytes shown of a long log before its lines are counted."""
LINE_SHOWN = 16 * 1024
"""Bytes shown of one line."""
STRIDE_BLOCKS = 16
STRIDE = STRIDE_BLOCKS * BLOCK
GROWTH = 64 * STRIDE
"""Bytes of a log's growth that are indexed before the screen gets the first of them."""

Read = Callable[[int, int], bytes]


class LineIndex:
    """Newlines per block of a growing file, from `start` on, which must be the beginning of a line."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.size = start
        """Bytes of the file that are indexed."""
        self.newlines = 0
        self.newlines_before = array("Q", [0])
        """Newlines before each block."""
        self._line_end = start

    def grow(self, read: Read, end: int, budget: int) -> None:
        """Count the newlines up to `end`, at most `budget` bytes."""
        stop = min(end, self.size + budget)
        while self.size < stop:
            data = read(self.size, min(STRIDE, stop - self.size))
            if not data:
                return
            self._add(data)

    def _add(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            room = BLOCK - (self.size - self.start) % BLOCK
            stop = min(position + room, len(data))
            count = count_newlines(data, position, stop)
            if count:
                self._line_end = self.size + data.rfind(b"\n", position, stop) + 1 - position
            self.newlines += count
            self.size += stop - position
            position = stop
            if (self.size - self.start) % BLOCK == 0:
                self.newlines_before.append(self.newlines)

    @property
    def strides(self) -> int:
        """Number of strides; the last one may be partial."""
        return -((self.start - self.size) // STRIDE)

    @property
    def lines(self) -> int:
        """Number of lines, including an unfinished last one."""
        return self.newlines + (1 if self.size > self._line_end else 0)

    def start_of(self, line: int, read: Read) -> int:
        """Return the offset of a line, counted from 0; the end for a line after the last."""
        if line <= 0:
            return self.start
        if line > self.newlines:
            return self.size
        block = bisect_left(self.newlines_before, line) - 1
        offset = self.start + block * BLOCK
        data = read(offset, min(BLOCK, self.size - offset))
        newline = -1
        for _ in range(line - self.newlines_before[block]):
            newline = data.find(b"\n", newline + 1)
        return offset + newline + 1

    def line_at(self, offset: int, read: Read) -> int:
        """Return the line that holds a byte, counted from 0."""
        block = (min(max(offset, self.start), self.size) - self.start) // BLOCK
        begin = self.start + block * BLOCK
        return self.newlines_before[block] + read(begin, min(offset, self.size) - begin).count(b"\n")


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of a log, as far as it has been read."""

    lines: int = 0
    bytes: int = 0
    counted: bool = True
    """Whether line 0 is the file's first; otherwise the lines are those of its tail."""
    counted_bytes: int = 0
    generation: int = 0
    """Incremented when the file was truncated or replaced, so that lines read before are void."""
    shift: int = 0
    """Lines of this generation counted before the tail; the former line 0 is now line `shift`."""
    problem: str = ""
    """Reason why nothing can be read; empty where it can."""
    behind: int = 0
    """Bytes at the file's end that are not indexed yet."""
    prepared: float = 1.0
    """Progress of the source's preparation, from 0 to 1."""


class LineSource(Protocol):
    """Lines that can be shown and searched; every method may block on the file system."""

    def refresh(self) -> Extent:
        """Index the lines added to the log."""
        ...

    def count(self, budget: int) -> Extent:
        """Continue counting, over at most `budget` bytes; does nothing once `counted`."""
        ...

    def window(self, first: int, count: int) -> list[Line]:
        """Return up to `count` lines from line `first` on."""
        ...

    @property
    def strides(self) -> int:
        """Number of pieces that a search goes through."""
        ...

    def stride_of(self, line: int) -> int:
        """Return the piece in which a line begins."""
        ...

    def hits(self, stride: int, term: LineFilterTerm) -> list[int]:
        """Return the lines of a piece that match."""
        ...

    def line_at(self, offset: int) -> int | None:
        """Return the line at an offset, or the next one that is shown; None while unknown."""
        ...


class LogText:
    """One log's lines. Every method may block on the file system: call it from a thread of its own."""

    def __init__(self, source: LogSource) -> None:
        self.source = source
        self._inode: int | None = None
        self._generation = 0
        self._full: LineIndex | None = None
        self._index: LineIndex | None = None
        self._shift = 0

    def refresh(self) -> Extent:
        """Index the lines added to the file.

        Raises:
            TransportError: the file system does not answer or refuses.
        """
        entry = self.source.stat()
        if entry is None:
            return Extent(generation=self._generation, problem="the file does not exist (yet)")
        index = self._index
        if index is None or entry.inode != self._inode or entry.size < index.size:
            self._begin(entry.inode, entry.size)
        assert self._index is not None
        self._index.grow(self._read, entry.size, GROWTH)
        return replace(self._extent(), behind=entry.size - self._index.size)

    def count(self, budget: int) -> Extent:
        """Continue counting from the file's beginning, at most `budget` bytes."""
        if self._full is not None and self._index is not None:
            self._full.grow(self._read, self._index.size, budget)
            if self._full.size >= self._index.size:
                self._shift = self._full.newlines - self._index.newlines
                self._index, self._full = self._full, None
        return self._extent()

    def window(self, first: int, count: int) -> list[Line]:
        """Return up to `count` lines from line `first` on, as they are shown."""
        index = self._index
        if index is None or count <= 0:
            return []
        lines: list[Line] = []
        position = index.start_of(first, self._read)
        while len(lines) < count and first + len(lines) < index.lines:
            data = self._read(position, min(BLOCK, index.size - position))
            whole = data.rfind(b"\n") + 1
            if whole:
                missing = count - len(lines)
                for piece in data[: whole - 1].split(b"\n", missing)[:missing]:
                    lines.append(line_of(piece, position))
                    position += len(piece) + 1
            else:
                line = first + len(lines)
                end = index.start_of(line + 1, self._read)
                if not data or end <= position:
                    break
                lines.append(long_line(self._read, position, end - (1 if line < index.newlines else 0)))
                position = end
        return lines

    @property
    def strides(self) -> int:
        """Number of strides of the log."""
        return self._index.strides if self._index is not None else 0

    def stride_of(self, line: int) -> int:
        """Return the stride in which a line begins."""
        index = self._index
        if index is None:
            return 0
        return (index.start_of(line, self._read) - index.start) // STRIDE

    def hits(self, stride: int, term: LineFilterTerm) -> list[int]:
        """Return the numbers of the lines that begin in a stride and match."""
        index = self._index
        if index is None or stride >= index.strides:
            return []
        start = index.start + stride * STRIDE
        data, begin = stride_lines(self._read, start, index.size, first=stride == 0)
        if data is None:
            return []
        number = index.newlines_before[stride * STRIDE_BLOCKS] + (1 if begin > start else 0)
        return [number + relative for relative in matching(data, (term,))]

    def line_at(self, offset: int) -> int | None:
        """Return the line that holds a byte; None for a byte before the counted part."""
        if self._index is None or offset < self._index.start:
            return None
        return min(self._index.line_at(offset, self._read), max(self._index.lines - 1, 0))

    def offset_of(self, line: int) -> int | None:
        """Return the offset of a line of the file, counted from 0; None until the lines are counted."""
        if self._index is None or self._full is not None:
            return None
        return self._index.start_of(line, self._read)

    def _read(self, offset: int, size: int) -> bytes:
        return self.source.read(offset, size) if size > 0 else b""

    def _begin(self, inode: int, size: int) -> None:
        """Start over: at the tail of a long file, else at the beginning."""
        self._generation += 1 if self._inode is not None else 0
        self._inode = inode
        self._shift = 0
        self._full = None
        start = 0
        if size > 2 * TAIL:
            offset = size - TAIL
            start = offset + self._read(offset, TAIL).find(b"\n") + 1
            self._full = LineIndex()
        self._index = LineIndex(start)

    def _extent(self) -> Extent:
        index = self._index
        if index is None:
            return Extent()
        counted = self._full is None
        counted_bytes = index.size if self._full is None else self._full.size
        return Extent(index.lines, index.size, counted, counted_bytes, self._generation, self._shift)


def long_line(read: Read, start: int, end: int) -> Line:
    """Return a line longer than one read: its beginning, or the last state of a progress bar."""
    if end - start <= LINE_SHOWN:
        return line_of(read(start, end - start), start)
    last = read(max(end - LINE_SHOWN, start), LINE_SHOWN)
    if b"\r" in last.rstrip(b"\r"):
        return Line(display_text(last), start)
    return Line(f"{display_text(read(start, LINE_SHOWN))} … ({end - start:,} bytes)", start)


def stride_lines(read: Read, start: int, size: int, *, first: bool) -> tuple[bytes | None, int]:
    """Return the lines that begin in the stride at `start`, and the offset of the first of them.

    A last line that extends far beyond the stride is cut. None where no line begins in it.
    """
    stop = min(start + STRIDE, size)
    lead = 0 if first else 1  # the byte before tells whether a line begins at `start`
    data = read(start - lead, min(stop + LINE_SHOWN, size) - start + lead)
    begin = data.find(b"\n", 0, stop - start + lead - 1) + 1 if lead else 0
    if (lead and not begin) or start >= stop:
        return None, start
    end = data.find(b"\n", stop - start + lead - 1)
    return data[begin : end if end >= 0 else len(data)], start - lead + begin
