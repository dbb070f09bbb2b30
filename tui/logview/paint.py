"""Drawing of one line of a log: colours, matches, label, and the mark of a cut line."""

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

_TIME_FROM = 90
"""Width from which on merged logs show the time before each line."""
_LABEL = 12
_TIME = 9
_BAR = "│ "


class LogStyles:
    """The styles of a log, from the theme."""

    CLASSES: ClassVar[set[str]] = {
        "log--match", "log--current", "log--current-line", "log--quiet",
        "log--driver", "log--head", "log--worker", "log--launcher", "log--companion",
    }  # fmt: skip

    def __init__(self, base: Style, of: Callable[[str], Style]) -> None:
        self.base = base
        self.of = of

    def of_label(self, label: str) -> Style:
        """Return the style of a log's label: that of the role it begins with."""
        name = f"log--{label.partition(' ')[0]}"
        return self.of(name if name in self.CLASSES else "log--quiet")


def label_width(longest: int, width: int) -> int:
    """Return the columns of the labels in a log `width` wide, including the time where there is room."""
    return min(longest, _LABEL) + len(_BAR) + (_TIME if width >= _TIME_FROM else 0)


def width_of(line: Line) -> int:
    """Return the columns of a line's text."""
    return len(line.text) if line.text.isascii() else cell_len(line.text)


def strip_of(
    line: Line, styles: LogStyles, query: Query | None, frame: tuple[int, int, int], *, current: bool
) -> Strip:
    """Return a line as it is painted.

    `frame`: columns scrolled away, width, and columns of the label within it. `current`: the line is the
    target of the last search or jump.
    """
    left, width, label_columns = frame
    room = width - label_columns
    base = styles.base + styles.of("log--current-line") if current else styles.base
    segments = _segments(line, styles, base, query, stop=left + room + 1, current=current)
    strip = Strip(segments).crop_extend(left, left + room, base)
    if len(line.text) > (left + room) // 2 and width_of(line) > left + room:
        strip = Strip([*strip.crop(0, room - 1), Segment("›", base + styles.of("log--quiet"))], room)
    if not label_columns:
        return strip
    return Strip([*_label(line, styles, label_columns, timed=width >= _TIME_FROM), *strip], width)


def strip_of_row(
    line: Line,
    styles: LogStyles,
    query: Query | None,
    part: tuple[int, int],
    frame: tuple[int, int],
    *,
    current: bool,
    cut: bool,
) -> Strip:
    """Return a part of a wrapped line (start and stop column) as a row.

    `frame`: width, and columns of the label within it. `cut`: the line continues below the page.
    """
    (start, stop), (width, label_columns) = part, frame
    room = width - label_columns
    base = styles.base + styles.of("log--current-line") if current else styles.base
    segments = _segments(line, styles, base, query, stop=stop, current=current)
    strip = Strip(segments).crop(start, stop).adjust_cell_length(room, base)
    if cut:
        strip = Strip([*strip.crop(0, room - 1), Segment("›", base + styles.of("log--quiet"))], room)
    if not label_columns:
        return strip
    if start == 0:
        return Strip([*_label(line, styles, label_columns, timed=width >= _TIME_FROM), *strip], width)
    bar = Segment(_BAR.rjust(label_columns), styles.base + styles.of("log--quiet"))
    return Strip([bar, *strip], width)


def _label(line: Line, styles: LogStyles, columns: int, *, timed: bool) -> list[Segment]:
    quiet = styles.base + styles.of("log--quiet")
    segments = []
    room = columns - len(_BAR)
    if timed:
        time = clock_time(line.time) if line.time is not None else ""
        segments.append(Segment(set_cell_size(time, _TIME), quiet))
        room -= _TIME
    text = set_cell_size(line.label, room)
    return [*segments, Segment(text, styles.base + styles.of_label(line.label)), Segment(_BAR, quiet)]


def _segments(
    line: Line, styles: LogStyles, base: Style, query: Query | None, *, stop: int, current: bool
) -> list[Segment]:
    """Cut the text up to `stop` where its style changes: at its colours and at matches."""
    matches = query.spans(line.text) if query is not None else []
    if not matches and not line.spans:
        return [Segment(line.text, base)]
    match = styles.of("log--current" if current else "log--match")
    layers = [(span.start, span.stop, span.style) for span in line.spans if span.start < stop]
    layers += [(start, end, match) for start, end in matches if start < stop]
    edges = sorted({0, len(line.text), *(edge for start, end, _ in layers for edge in (start, end))})
    segments = []
    for start, end in pairwise(edges):
        style = base
        for begin, until, layer in layers:
            if begin <= start and end <= until:
                style += layer
        segments.append(Segment(line.text[start:end], style))
    return segments
