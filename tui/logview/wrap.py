"""Wrapping of long lines: the part of a line on each row of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.cells import cell_len, chop_cells

from tui.logview.line import Line


@dataclass(frozen=True, slots=True)
class WrappedRow:
    """The part of a line on one row."""

    index: int
    """Index of the line on the page."""
    start: int
    """Columns of the line before this row."""
    stop: int
    last: bool
    """Whether the line ends on this row."""


def rows_of(index: int, line: Line, room: int) -> Iterator[WrappedRow]:
    """Cut a line into rows of at most `room` columns; an empty line has one row."""
    room = max(room, 1)
    if line.text.isascii():
        width = len(line.text)
        for start in range(0, max(width, 1), room):
            stop = min(start + room, width)
            yield WrappedRow(index, start, stop, last=stop == width)
        return
    start = 0
    parts = chop_cells(line.text, max(room, 2))  # a wide character is never cut
    for number, part in enumerate(parts, 1):
        stop = start + cell_len(part)
        yield WrappedRow(index, start, stop, last=number == len(parts))
        start = stop


def page_of(lines: Sequence[Line], room: int, height: int) -> list[WrappedRow]:
    """Return the rows of a page that begins with the first line."""
    rows = (row for index, line in enumerate(lines[:height]) for row in rows_of(index, line, room))
    return list(islice(rows, height))


def whole_lines(rows: Sequence[WrappedRow]) -> int:
    """Return the number of lines that end on a page; at least 1, so that paging always moves on."""
    return max(sum(row.last for row in rows), 1)


def lines_on_last_page(lines: Sequence[Line], room: int, height: int) -> int:
    """Return how many of the last lines fit on a page; at least 1."""
    left, count = height, 0
    for line in reversed(lines[-height:]):
        left -= sum(1 for _ in islice(rows_of(0, line, room), height + 1))
        if left < 0:
            break
        count += 1
    return max(count, 1)
