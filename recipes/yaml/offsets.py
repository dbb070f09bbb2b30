"""Offsets of a text as lines and columns, and the steps an edit takes along lines."""

from __future__ import annotations

import re
from bisect import bisect_right

BREAKS = "\n\r\x85\u2028\u2029"
"""Characters that end a line in YAML 1.1, so for PyYAML."""
LINE_BREAK = re.compile(rf"\r\n|[{BREAKS}]")
_WRITTEN_BREAK = re.compile(r"\r\n|\n|\r")
_SPACE = rf" \t{BREAKS}\ufeff"
_GAP = re.compile(rf"(?:[{_SPACE}]+|(?<![^{_SPACE},\[\]{{}}\"':?])#[^{BREAKS}]*)*")
BOM = "\ufeff"


class Lines:
    """Lines of one text; offsets count code points from 0."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in LINE_BREAK.finditer(text))]

    def number(self, offset: int) -> int:
        """Return the line an offset stands in, counted from 1."""
        return bisect_right(self._starts, offset)

    @property
    def count(self) -> int:
        """Number of lines; a line break at the end of the text begins one more, which is empty."""
        return len(self._starts)

    def span(self, number: int) -> tuple[int, int]:
        """Return where a line, counted from 1, begins and ends, without its line break."""
        start = self._starts[number - 1]
        return start, self.end(start)

    def start(self, offset: int) -> int:
        """Return where the line of an offset begins."""
        return self._starts[bisect_right(self._starts, offset) - 1]

    def end(self, offset: int) -> int:
        """Return where the line of an offset ends, before its line break."""
        match = LINE_BREAK.search(self.text, self.start(offset))
        # Between \r and \n of one line break the break already begins before the offset.
        return match.start() if match else len(self.text)

    def next(self, offset: int) -> int:
        """Return where the next line begins; the end of the text if there is none."""
        index = bisect_right(self._starts, offset)
        return self._starts[index] if index < len(self._starts) else len(self.text)

    def break_before(self, offset: int) -> int:
        """Return where the line break in front of a line's start begins."""
        return self.end(offset - 1) if offset > 0 else 0

    def column(self, offset: int) -> int:
        """Return the characters between the line's start and an offset; a byte order mark is none."""
        start = self.start(offset)
        return offset - start - (1 if start == 0 and self.text.startswith(BOM) and offset > 0 else 0)

    def indented(self, offset: int) -> bool:
        """Return whether nothing but white space stands before an offset in its line."""
        return not self.text[self.start(offset) : offset].lstrip(BOM).strip(" \t")

    def newline(self, offset: int) -> str:
        """Return the line break used at an offset or, without one below it, in the text.

        U+0085, U+2028 and U+2029 are never written: most editors do not take them for line breaks.
        """
        match = _WRITTEN_BREAK.search(self.text, offset) or _WRITTEN_BREAK.search(self.text)
        return match.group() if match else "\n"

    def gap(self, offset: int) -> int:
        """Return the first offset that is neither white space, line break nor comment."""
        match = _GAP.match(self.text, offset)
        assert match is not None
        return match.end()

    def comment_line(self, start: int) -> int | None:
        """Return the column of the '#' if the line beginning at `start` is a comment, else None."""
        line = self.text[start : self.end(start)].lstrip(BOM)
        mark = line.lstrip(" \t")
        return len(line) - len(mark) if mark.startswith("#") else None

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both counted from 1."""
        return self.number(offset), self.column(offset) + 1
