"""The lines of a log of any size, read through a transport as they are looked at.

Nothing of the file is kept but how many newlines come before each block of it: 8 bytes for 64 KiB. A log of a
gigabyte opens at its end; its lines are counted afterwards, and only then have numbers.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from launcher.text import clean
from launcher.transports.base import Transport

BLOCK = 64 * 1024
TAIL = 256 * 1024
"""What is shown of a long log before its lines are counted."""
LINE_SHOWN = 16 * 1024
"""Bytes shown of one line."""
STRIDE_BLOCKS = 16
STRIDE = STRIDE_BLOCKS * BLOCK
_COLOURS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")

Read = Callable[[int, int], bytes]


def shown(raw: bytes) -> str:
    """Return a line as it is shown: cleaned, and of a progress bar the last state only."""
    text = raw.decode("utf-8", errors="replace")
    states = [part for part in re.split(r"\r+", text) if part]
    for part in reversed(states):
        if cleaned := clean(part).rstrip():
            return cleaned
    return ""


class LineIndex:
    """Newlines per block of a file that grows, from `start` on, which is where a line begins."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.size = start
        """Bytes of the file taken into account."""
        self.newlines = 0
        self.before = array("Q", [0])
        """Newlines before each block."""
        self._line_end = start

    def grow(self, read: Read, end: int, budget: int) -> None:
        """Count the newlines up to `end`, at most `budget` bytes."""
        stop = min(end, self.size + budget)
        while self.size < stop:
            data = read(self.size, min(STRIDE, stop - self.size))
            if not data:
                return
            self._take(data)

    def _take(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            room = BLOCK - (self.size - self.start) % BLOCK
            piece = data[position : position + room]
            count = piece.count(b"\n")
            if count:
                self._line_end = self.size + piece.rfind(b"\n") + 1
            self.newlines += count
            self.size += len(piece)
            position += len(piece)
            if (self.size - self.start) % BLOCK == 0:
                self.before.append(self.newlines)

    @property
    def strides(self) -> int:
        """How many strides the bytes fill, the last one in part."""
        return -((self.start - self.size) // STRIDE)

    @property
    def lines(self) -> int:
        """Lines there are, an unfinished last one included."""
        return self.newlines + (1 if self.size > self._line_end else 0)

    def start_of(self, line: int, read: Read) -> int:
        """Return the offset where a line begins, counted from 0; the end for a line behind the last."""
        if line <= 0:
            return self.start
        if line > self.newlines:
            return self.size
        block = bisect_left(self.before, line) - 1
        offset = self.start + block * BLOCK
        data = read(offset, min(BLOCK, self.size - offset))
        place = -1
        for _ in range(line - self.before[block]):
            place = data.find(b"\n", place + 1)
        return offset + place + 1


@dataclass(frozen=True, slots=True)
class Extent:
    """What can be looked at of a log."""

    lines: int = 0
    bytes: int = 0
    counted: bool = True
    """Whether line 0 is the file's first; else the lines are those of its tail."""
    counted_bytes: int = 0
    generation: int = 0
    """Grows when the file was truncated or replaced, and what was read no longer counts."""
    shift: int = 0
    """Lines of this generation that came before the tail; what was line 0 is now line `shift`."""
    problem: str = ""
    """Why there is nothing to read; empty when there is."""


class LogText:
    """One log's lines. Every method may block on the file system: call it from a thread of its own."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path
        self._inode: int | None = None
        self._generation = 0
        self._full: LineIndex | None = None
        self._index: LineIndex | None = None
        self._shift = 0

    def refresh(self) -> Extent:
        """Look at the file, take new lines at its end into account.

        Raises:
            TransportError: the file system does not answer or refuses.
        """
        entry = self._transport.stat(self._path)
        if entry is None:
            return Extent(generation=self._generation, problem="the file is not there (yet)")
        index = self._index
        if index is None or entry.inode != self._inode or entry.size < index.size:
            self._begin(entry.inode, entry.size)
        assert self._index is not None
        self._index.grow(self._read, entry.size, entry.size)
        return self._extent()

    def count(self, budget: int) -> Extent:
        """Count on from the file's beginning, at most `budget` bytes; nothing to do once it is `counted`."""
        if self._full is not None and self._index is not None:
            self._full.grow(self._read, self._index.size, budget)
            if self._full.size >= self._index.size:
                self._shift = self._full.newlines - self._index.newlines
                self._index, self._full = self._full, None
        return self._extent()

    def window(self, first: int, count: int) -> list[str]:
        """Return up to `count` lines from line `first` on, as they are shown."""
        index = self._index
        if index is None or count <= 0:
            return []
        found: list[str] = []
        position = index.start_of(first, self._read)
        while len(found) < count and first + len(found) < index.lines:
            data = self._read(position, min(BLOCK, index.size - position))
            whole = data.rfind(b"\n") + 1
            if whole:
                found += [shown(piece) for piece in data[: whole - 1].split(b"\n", count)[:count]]
                position += whole
            else:
                line = first + len(found)
                end = index.start_of(line + 1, self._read)
                if not data or end <= position:
                    break
                found.append(self._long_line(position, end - (1 if line < index.newlines else 0)))
                position = end
        return found[:count]

    def _long_line(self, start: int, end: int) -> str:
        """Show a line that no read holds: its beginning, or the last state of a progress bar."""
        if end - start <= LINE_SHOWN:
            return shown(self._read(start, end - start))
        last = self._read(max(end - LINE_SHOWN, start), LINE_SHOWN)
        if b"\r" in last.rstrip(b"\r"):
            return shown(last)
        return f"{shown(self._read(start, LINE_SHOWN))} … ({end - start:,} bytes)"

    def find(self, needle: Needle, line: int, *, backwards: bool, going: Callable[[], bool]) -> int | None:
        """Return the next line from `line` on that shows the needle, or None; `going` false ends it."""
        index = self._index
        if index is None:
            return None
        place = (index.start_of(line, self._read) - index.start) // STRIDE
        stride = max(min(place, index.strides - 1), 0)
        strides = range(stride, -1, -1) if backwards else range(stride, index.strides)
        for stride in strides:
            if not going():
                return None
            hits: Iterable[int] = self._hits(index, stride, needle)
            if backwards:
                hits = reversed([number for number in hits if number <= line])
            for number in hits:
                if backwards or number >= line:
                    return number
        return None

    def _hits(self, index: LineIndex, place: int, needle: Needle) -> Iterator[int]:
        """Yield the numbers of the lines that begin in a stride and show the needle."""
        start = index.start + place * STRIDE
        stop = min(start + STRIDE, index.size)
        lead = 1 if place else 0  # the byte before tells whether a line begins at `start`
        data = self._read(start - lead, min(stop + LINE_SHOWN, index.size) - start + lead)
        begin = data.find(b"\n") + 1 if lead else 0
        if lead and not begin:
            return
        end = data.find(b"\n", stop - start + lead - 1)
        number = index.before[place * STRIDE_BLOCKS] + (1 if begin > 1 else 0)
        for relative in needle.lines_in(data[begin : end if end >= 0 else len(data)]):
            yield number + relative

    def _read(self, offset: int, size: int) -> bytes:
        return self._transport.read(self._path, offset, size) if size > 0 else b""

    def _begin(self, inode: int, size: int) -> None:
        """Start anew: at the tail of a long file, else at the beginning."""
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


class Needle:
    """What is searched for in a log: text, without regard to case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded = text.lower()
        # Bytes are folded for ASCII only, so only an ASCII part can be searched for in them.
        self._literal = max(re.split(r"[^\x00-\x7f]+", self._folded), key=len).encode()

    def places(self, line: str) -> list[tuple[int, int]]:
        """Return where it stands in a line as shown: start and end."""
        folded = line.lower()
        if not self._folded or len(folded) != len(line):
            return []
        return [(found.start(), found.end()) for found in re.finditer(re.escape(self._folded), folded)]

    def lines_in(self, data: bytes) -> Iterator[int]:
        """Yield the lines of `data`, counted from 0, that show it."""
        folded = _COLOURS.sub(b"", data).lower() if b"\x1b" in data else data.lower()
        line = position = 0
        while (hit := folded.find(self._literal, position)) >= 0:
            line += folded.count(b"\n", position, hit)
            start = folded.rfind(b"\n", 0, hit) + 1
            end = folded.find(b"\n", hit)
            end = len(folded) if end < 0 else end
            if self._folded in shown(folded[start:end]).lower():
                yield line
            line, position = line + 1, end + 1
            if position > len(folded):
                return
