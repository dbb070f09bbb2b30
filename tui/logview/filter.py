"""The lines of a log that match a filter.

What is kept: how many lines match in each stride of the file, and the places of the last 65,536 that were
found. A stride whose places were given up is looked at again when it is shown. A filter is gone through from
the file's end, so that what matters now is there at once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from tui.logview.line import Line, line_of
from tui.logview.line_index import BLOCK, LINE_SHOWN, STRIDE, Extent, stride_lines
from tui.logview.match import LineFilterTerm, matching
from tui.logview.source import LogSource

KEPT = 65_536
"""Places of lines that are kept: half a megabyte."""
GROWTH = 8
"""Strides of a log's growth that are taken in before the screen gets something."""


class FilteredText:
    """What of a log matches all of some terms. Every method may block on the file system."""

    def __init__(self, source: LogSource, terms: Sequence[LineFilterTerm]) -> None:
        self._source = source
        self._terms = tuple(terms)
        self._inode: int | None = None
        self._generation = 0
        self._counts = array("Q")
        """Matching lines in each stride."""
        self._low = 0
        """The first stride that was gone through; all behind it were."""
        self._before: list[int] | None = None
        self._places: OrderedDict[int, array[int]] = OrderedDict()
        self._kept = 0
        self._size = 0
        self._shift = 0
        self._block = (0, b"")

    def refresh(self) -> Extent:
        """Look at the file, go through what is new at its end.

        Raises:
            TransportError: the file system does not answer or refuses.
        """
        entry = self._source.stat()
        if entry is None:
            return Extent(generation=self._generation, problem="the file is not there (yet)")
        if entry.inode != self._inode or entry.size < self._size:
            self._begin(entry.inode, entry.size)
        if entry.size > self._size:
            first = max(max(self._size - 1, 0) // STRIDE, self._low)  # its last line may have been unfinished
            self._size = min(entry.size, (first + GROWTH) * STRIDE)
            self._block = (0, b"")
            for stride in range(first, -(-self._size // STRIDE)):
                self._forget(stride)
                self._take(stride)
        return replace(self._extent(), behind=entry.size - self._size)

    def count(self, budget: int) -> Extent:
        """Go on towards the file's beginning, over at most `budget` bytes."""
        for _ in range(budget // STRIDE):
            if self._low == 0:
                break
            self._low -= 1
            self._take(self._low)
            self._shift += self._counts[self._low]
        return self._extent()

    def window(self, first: int, count: int) -> list[Line]:
        """Return up to `count` matching lines from matching line `first` on."""
        before = self._sums()
        found: list[Line] = []
        line = max(first, 0)
        while len(found) < count and line < before[-1]:
            place = bisect_right(before, line) - 1
            places = self._places_in(self._low + place)
            start = line - before[place]
            wanted = places[start : start + count - len(found)]
            if not wanted:  # the file is not what it was: the next look sees it
                break
            found += [self._line(offset) for offset in wanted]
            line += len(wanted)
        return found

    @property
    def strides(self) -> int:
        """How many strides have been gone through."""
        return len(self._counts) - self._low

    def stride_of(self, line: int) -> int:
        """Return the stride in which a matching line begins."""
        return min(bisect_right(self._sums(), max(line, 0)) - 1, max(self.strides - 1, 0))

    def hits(self, stride: int, term: LineFilterTerm) -> list[int]:
        """Return the matching lines of a stride that match another term as well."""
        if stride >= self.strides or not self._counts[self._low + stride]:
            return []
        before = self._sums()[stride]
        start = (self._low + stride) * STRIDE
        data, begin = stride_lines(self._read, start, self._size, first=start == 0)
        if data is None:
            return []
        places = {place: number for number, place in enumerate(self._places_in(self._low + stride))}
        both = _offsets(data, begin, matching(data, (*self._terms, term)))
        return [before + places[place] for place in both if place in places]

    def line_at(self, offset: int) -> int | None:
        """Return the first matching line at or behind an offset; None while that is not known."""
        stride = min(offset, max(self._size - 1, 0)) // STRIDE
        if stride < self._low or not self._counts:
            return None
        before = self._sums()[stride - self._low]
        return before + sum(1 for place in self._places_in(stride) if place < offset)

    def _take(self, stride: int) -> None:
        while len(self._counts) <= stride:
            self._counts.append(0)
        self._counts[stride] = len(self._places_in(stride))
        self._before = None

    def _places_in(self, stride: int) -> array[int]:
        """Return where the matching lines of a stride begin."""
        known = self._places.get(stride)
        if known is not None:
            self._places.move_to_end(stride)
            return known
        data, begin = stride_lines(self._read, stride * STRIDE, self._size, first=stride == 0)
        found = array("Q", _offsets(data, begin, matching(data, self._terms)) if data is not None else ())
        self._places[stride] = found
        self._kept += len(found)
        while self._kept > KEPT and len(self._places) > 1:
            self._forget(next(iter(self._places)))
        return found

    def _forget(self, stride: int) -> None:
        given_up = self._places.pop(stride, None)
        self._kept -= len(given_up) if given_up is not None else 0

    def _line(self, offset: int) -> Line:
        """Read one line; neighbours come from the same read."""
        start, block = self._block
        end = block.find(b"\n", offset - start) if start <= offset < start + len(block) else -1
        if end < 0:
            start, block = offset, self._read(offset, min(max(BLOCK, LINE_SHOWN + 1), self._size - offset))
            self._block = (start, block)
            end = block.find(b"\n")
        raw = block[offset - start : end if end >= 0 else len(block)]
        if len(raw) <= LINE_SHOWN:
            return line_of(raw, offset)
        line = line_of(raw[:LINE_SHOWN], offset)
        return Line(f"{line.text} …", offset, line.paints)

    def _sums(self) -> list[int]:
        """Return how many lines match before each stride, and in all."""
        if self._before is None:
            self._before = list(accumulate(self._counts[self._low :], initial=0))
        return self._before

    def _read(self, offset: int, size: int) -> bytes:
        return self._source.read(offset, size) if size > 0 else b""

    def _begin(self, inode: int, size: int) -> None:
        self._generation += 1 if self._inode is not None else 0
        self._inode = inode
        self._places.clear()
        self._kept = self._size = self._shift = 0
        self._before = None
        self._block = (0, b"")
        self._low = max(-(-size // STRIDE) - 1, 0)
        self._counts = array("Q", [0] * self._low)

    def _extent(self) -> Extent:
        return Extent(
            lines=self._sums()[-1],
            bytes=self._size,
            counted=self._low == 0,
            counted_bytes=self._size - min(self._low * STRIDE, self._size),
            generation=self._generation,
            shift=self._shift,
        )


def _offsets(data: bytes, begin: int, lines: Sequence[int]) -> list[int]:
    """Return where some lines of `data`, which begins at `begin`, begin."""
    found = []
    position = walked = 0
    for line in lines:
        while walked < line:
            position = data.find(b"\n", position) + 1
            walked += 1
        found.append(begin + position)
    return found
