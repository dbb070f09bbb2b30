"""The lines of a log that match a filter.

In memory: the number of matching lines in each stride of the file, and the offsets of the last 65,536 that
were read. A stride whose offsets were dropped is filtered again when it is shown. Filtering begins at the
file's end, so that the newest lines are there at once.
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

CACHED_OFFSETS = 65_536
"""Offsets of lines in memory: half a megabyte."""
GROWTH = 8
"""Strides of a log's growth that are filtered before the screen gets the first of them."""


class FilteredText:
    """The lines of a log that match all terms. Every method may block on the file system."""

    def __init__(self, source: LogSource, terms: Sequence[LineFilterTerm]) -> None:
        self._source = source
        self._terms = tuple(terms)
        self._inode: int | None = None
        self._generation = 0
        self._counts = array("Q")
        """Matching lines in each stride."""
        self._low = 0
        """The first stride that was filtered; all later ones were."""
        self._sums: list[int] | None = None
        self._offsets: OrderedDict[int, array[int]] = OrderedDict()
        """Offsets of the matching lines of a stride, least recently used first."""
        self._cached = 0
        self._size = 0
        self._shift = 0
        self._block = (0, b"")

    def refresh(self) -> Extent:
        """Filter the lines added to the file.

        Raises:
            TransportError: the file system does not answer or refuses.
        """
        entry = self._source.stat()
        if entry is None:
            return Extent(generation=self._generation, problem="the file does not exist (yet)")
        if entry.inode != self._inode or entry.size < self._size:
            self._begin(entry.inode, entry.size)
        if entry.size > self._size:
            first = max(max(self._size - 1, 0) // STRIDE, self._low)  # its last line may have been unfinished
            self._size = min(entry.size, (first + GROWTH) * STRIDE)
            self._block = (0, b"")
            for stride in range(first, -(-self._size // STRIDE)):
                self._drop(stride)
                self._filter(stride)
        return replace(self._extent(), behind=entry.size - self._size)

    def count(self, budget: int) -> Extent:
        """Continue towards the file's beginning, over at most `budget` bytes."""
        for _ in range(budget // STRIDE):
            if self._low == 0:
                break
            self._low -= 1
            self._filter(self._low)
            self._shift += self._counts[self._low]
        return self._extent()

    def window(self, first: int, count: int) -> list[Line]:
        """Return up to `count` matching lines from matching line `first` on."""
        sums = self._lines_before()
        lines: list[Line] = []
        line = max(first, 0)
        while len(lines) < count and line < sums[-1]:
            stride = bisect_right(sums, line) - 1
            start = line - sums[stride]
            offsets = self._offsets_in(self._low + stride)[start : start + count - len(lines)]
            if not offsets:  # the file has changed: the next refresh notices
                break
            lines += [self._line(offset) for offset in offsets]
            line += len(offsets)
        return lines

    @property
    def strides(self) -> int:
        """Number of strides that have been filtered."""
        return len(self._counts) - self._low

    def stride_of(self, line: int) -> int:
        """Return the stride in which a matching line begins."""
        return min(bisect_right(self._lines_before(), max(line, 0)) - 1, max(self.strides - 1, 0))

    def hits(self, stride: int, term: LineFilterTerm) -> list[int]:
        """Return the matching lines of a stride that match another term as well."""
        if stride >= self.strides or not self._counts[self._low + stride]:
            return []
        preceding = self._lines_before()[stride]
        start = (self._low + stride) * STRIDE
        data, begin = stride_lines(self._read, start, self._size, first=start == 0)
        if data is None:
            return []
        numbers = {offset: number for number, offset in enumerate(self._offsets_in(self._low + stride))}
        offsets = _line_offsets(data, begin, matching(data, (*self._terms, term)))
        return [preceding + numbers[offset] for offset in offsets if offset in numbers]

    def line_at(self, offset: int) -> int | None:
        """Return the first matching line at or after an offset; None while unknown."""
        stride = min(offset, max(self._size - 1, 0)) // STRIDE
        if stride < self._low or not self._counts:
            return None
        preceding = self._lines_before()[stride - self._low]
        return preceding + sum(1 for start in self._offsets_in(stride) if start < offset)

    def _filter(self, stride: int) -> None:
        while len(self._counts) <= stride:
            self._counts.append(0)
        self._counts[stride] = len(self._offsets_in(stride))
        self._sums = None

    def _offsets_in(self, stride: int) -> array[int]:
        """Return the offsets of the matching lines of a stride."""
        cached = self._offsets.get(stride)
        if cached is not None:
            self._offsets.move_to_end(stride)
            return cached
        data, begin = stride_lines(self._read, stride * STRIDE, self._size, first=stride == 0)
        lines = matching(data, self._terms) if data is not None else []
        offsets = array("Q", _line_offsets(data, begin, lines) if data is not None else ())
        self._offsets[stride] = offsets
        self._cached += len(offsets)
        while self._cached > CACHED_OFFSETS and len(self._offsets) > 1:
            self._drop(next(iter(self._offsets)))
        return offsets

    def _drop(self, stride: int) -> None:
        dropped = self._offsets.pop(stride, None)
        self._cached -= len(dropped) if dropped is not None else 0

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
        return Line(f"{line.text} …", offset, line.spans)

    def _lines_before(self) -> list[int]:
        """Return the number of matching lines before each stride, and in all."""
        if self._sums is None:
            self._sums = list(accumulate(self._counts[self._low :], initial=0))
        return self._sums

    def _read(self, offset: int, size: int) -> bytes:
        return self._source.read(offset, size) if size > 0 else b""

    def _begin(self, inode: int, size: int) -> None:
        self._generation += 1 if self._inode is not None else 0
        self._inode = inode
        self._offsets.clear()
        self._cached = self._size = self._shift = 0
        self._sums = None
        self._block = (0, b"")
        self._low = max(-(-size // STRIDE) - 1, 0)
        self._counts = array("Q", [0] * self._low)

    def _extent(self) -> Extent:
        return Extent(
            lines=self._lines_before()[-1],
            bytes=self._size,
            counted=self._low == 0,
            counted_bytes=self._size - min(self._low * STRIDE, self._size),
            generation=self._generation,
            shift=self._shift,
        )


def _line_offsets(data: bytes, begin: int, lines: Sequence[int]) -> list[int]:
    """Return the offsets in the file of some lines of `data`, which begins at `begin` in it."""
    offsets = []
    position = skipped = 0
    for line in lines:
        while skipped < line:
            position = data.find(b"\n", position) + 1
            skipped += 1
        offsets.append(begin + position)
    return offsets
