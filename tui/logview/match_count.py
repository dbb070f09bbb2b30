"""Number of matches of a query, and the position of one among them."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from tui.logview.line_index import LineSource
from tui.logview.match import Query
from tui.logview.read_requests import MatchPosition


class MatchCount:
    """Matching lines in each stride of a log, counted one stride at a time."""

    def __init__(self, lines: LineSource, query: Query) -> None:
        self.query = query
        self._lines = lines
        self._counts = array("Q")

    @property
    def complete(self) -> bool:
        """Whether all strides are counted."""
        return len(self._counts) >= self._lines.strides

    def reopen(self) -> None:
        """Count the last stride again: the log may have grown in it."""
        if self._counts:
            self._counts.pop()

    def step(self) -> bool:
        """Count one stride; True when all are counted."""
        if not self.complete:
            self._counts.append(len(self._lines.hits(len(self._counts), self.query)))
        return self.complete

    def position(self, line: int) -> MatchPosition:
        """Return the position of the match at a line."""
        stride = self._lines.stride_of(line)
        number = None
        if stride < len(self._counts):
            number = sum(self._counts[:stride]) + bisect_right(self._lines.hits(stride, self.query), line)
        return MatchPosition(number, sum(self._counts), self.complete)
