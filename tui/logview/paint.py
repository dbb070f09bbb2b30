"""Drawing one line of a log: its colours, what was searched for, who wrote it, and whether it goes on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.formatting import clock_time
from tui.logview.line import Line
from tui.logview.match import Query

_TIMED_FROM = 90
"""Columns from which on the time is shown before each line of merged logs."""
_LABEL = 12
_TIME = 9
_BAR = "│ "


class Looks:
    """The styles of a log, as the theme has them."""

    CLASSES: ClassVar[set[str]] = {
        "log--match", "log--current", "log--here", "log--quiet",
        "log--driver", "log--head", "log--worker", "log--launcher", "log--companion",
    }  # fmt: skip

    def __init__(self, base: Style, of: Callable[[str], Style]) -> None:
        self.base = base
        self.of = of

    def of_label(self, label: str) -> Style:
        """Return the style of a log's label: that of its role."""
        name = f"log--{label.partition(' ')[0]}"
        return self.of(name if name in self.CLASSES else "log--quiet")


def label_width(longest: int, width: int) -> int:
    """Return the columns that labels take of a log `width` wide; with the time where there is room."""
    return min(longest, _LABEL) + len(_BAR) + (_TIME if width >= _TIMED_FROM else 0)


def width_of(line: Line) -> int:
    """Return the columns of a line's text."""
    return len(line.text) if line.text.isascii() else cell_len(line.text)


def strip_of(
    line: Line, looks: Looks, query: Query | None, frame: tuple[int, int, int], *, here: bool
) -> Strip:
    """Return a line as it is painted.

    `frame`: columns scrolled away, columns there are, and how many of these the label has. `here`: the line
    was gone to.
    """
    left, width, label_columns = frame
    room = width - label_columns
    base = looks.base + looks.of("log--here") if here else looks.base
    segments = _segments(line, looks, base, query, stop=left + room + 1, here=here)
    strip = Strip(segments).crop_extend(left, left + room, base)
    if len(line.text) > (left + room) // 2 and width_of(line) > left + room:
        strip = Strip([*strip.crop(0, room - 1), Segment("›", base + looks.of("log--quiet"))], room)
    if not label_columns:
        return strip
    return Strip([*_label(line, looks, label_columns, timed=width >= _TIMED_FROM), *strip], width)


def strip_of_row(
    line: Line,
    looks: Looks,
    query: Query | None,
    part: tuple[int, int],
    frame: tuple[int, int],
    *,
    here: bool,
    more: bool,
) -> Strip:
    """Return a part of a line (its columns from, to) as a row of its own.

    `frame`: columns there are, and how many of these the label has. `more`: the line goes on where no row is.
    """
    (start, stop), (width, label_columns) = part, frame
    room = width - label_columns
    base = looks.base + looks.of("log--here") if here else looks.base
    segments = _segments(line, looks, base, query, stop=stop, here=here)
    strip = Strip(segments).crop(start, stop).adjust_cell_length(room, base)
    if more:
        strip = Strip([*strip.crop(0, room - 1), Segment("›", base + looks.of("log--quiet"))], room)
    if not label_columns:
        return strip
    if start == 0:
        return Strip([*_label(line, looks, label_columns, timed=width >= _TIMED_FROM), *strip], width)
    bar = Segment(_BAR.rjust(label_columns), looks.base + looks.of("log--quiet"))
    return Strip([bar, *strip], width)


def _label(line: Line, looks: Looks, columns: int, *, timed: bool) -> list[Segment]:
    quiet = looks.base + looks.of("log--quiet")
    segments = []
    room = columns - len(_BAR)
    if timed:
        moment = clock_time(line.moment) if line.moment is not None else ""
        segments.append(Segment(set_cell_size(moment, _TIME), quiet))
        room -= _TIME
    text = set_cell_size(line.label, room)
    return [*segments, Segment(text, looks.base + looks.of_label(line.label)), Segment(_BAR, quiet)]


def _segments(
    line: Line, looks: Looks, base: Style, query: Query | None, *, stop: int, here: bool
) -> list[Segment]:
    """Cut the text up to `stop` where its style changes, by its colours and by what was searched for."""
    places = query.places(line.text) if query is not None else []
    if not places and not line.paints:
        return [Segment(line.text, base)]
    match = looks.of("log--current" if here else "log--match")
    layers = [(paint.start, paint.stop, paint.style) for paint in line.paints if paint.start < stop]
    layers += [(start, end, match) for start, end in places if start < stop]
    edges = sorted({0, len(line.text), *(edge for start, end, _ in layers for edge in (start, end))})
    segments = []
    for start, end in pairwise(edges):
        style = base
        for begin, until, layer in layers:
            if begin <= start and end <= until:
                style += layer
        segments.append(Segment(line.text[start:end], style))
    return segments
