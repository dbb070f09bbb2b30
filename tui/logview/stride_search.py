"""A search through a log, stride by stride."""

from __future__ import annotations

from collections.abc import Sequence

from tui.logview.line_index import LineSource
from tui.logview.match import LineFilterTerm


class StrideSearch:
    """A search under way: from a line to one end of the log, then once from the other end."""

    def __init__(self, lines: LineSource, term: LineFilterTerm, line: int, *, backwards: bool) -> None:
        self._lines = lines
        self._term = term
        self._line = line
        self._backwards = backwards
        self._stride = max(min(lines.stride_of(line), lines.strides - 1), 0)
        self._searched = 0
        self.wrapped = False
        """Whether it continued from the other end."""
        self.match: int | None = None

    @property
    def progress(self) -> float:
        """Searched part of the log, from 0 to 1."""
        return min(self._searched / max(self._lines.strides, 1), 1.0)

    def step(self) -> bool:
        """Search one stride; True when the search is over."""
        if not self._lines.strides:
            return True
        hits = self._hits()
        if hits:
            self.match = hits[-1] if self._backwards else hits[0]
            return True
        self._searched += 1
        self._stride += -1 if self._backwards else 1
        if 0 <= self._stride < self._lines.strides:
            # The stride where it began is searched twice: the other part of it at the very end.
            return self.wrapped and self._searched > self._lines.strides
        if self.wrapped:
            return True
        self.wrapped = True
        self._stride = self._lines.strides - 1 if self._backwards else 0
        return False

    def _hits(self) -> Sequence[int]:
        hits = self._lines.hits(self._stride, self._term)
        if self.wrapped:
            return hits
        return [hit for hit in hits if (hit <= self._line if self._backwards else hit >= self._line)]
