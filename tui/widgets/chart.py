"""Charts of series in braille, drawn from arrays: any number of points, several curves. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from launcher.overview.series import Axis, Series, reduced
from tui.formatting import duration, number, plural
from tui.widgets.panel import fitted
from tui.widgets.plot import nice_ticks, value_ticks

_EMPTY = 0x2800
# Unicode, braille patterns: the bit of the dot at (line, column) of a cell.
_WEIGHTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.int64)
_LABEL = 8
_NAME_LEAST = 14
"""Cells of a chart's name that stay beside its last values."""
CURVE_STYLES = ("$text-primary", "$text-warning", "$text-success", "$text-error", "$text-secondary")
LETTERS = "ABCDE"
"""Names of the curves of one chart, at their ends, so that no curve is known by its colour alone."""
SMOOTHINGS = (1, 5, 20, 100, 1000)
"""Values over which a curve is averaged."""
Dots = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChartView:
    """How series are looked at."""

    axis: Axis = "step"
    first: float | None = None
    last: float | None = None
    """Range of the axis; None: all of it."""
    logarithmic: bool = False
    window: int = 1

    def zoomed(self, full: tuple[float, float], factor: float) -> ChartView:
        """Return a view of a part around its middle, or of more than now."""
        first, last = self.range_in(full)
        middle, half = (first + last) / 2, (last - first) / 2 * factor
        if half * 2 >= full[1] - full[0]:
            return replace(self, first=None, last=None)
        return self._at(full, middle - half, 2 * half)

    def panned(self, full: tuple[float, float], share: float) -> ChartView:
        """Return the view moved by a share of its width; all of the axis stays as it is."""
        if self.first is None:
            return self
        first, last = self.range_in(full)
        return self._at(full, first + (last - first) * share, last - first)

    def _at(self, full: tuple[float, float], first: float, width: float) -> ChartView:
        first = min(max(first, full[0]), full[1] - width)
        return replace(self, first=first, last=first + width)

    def range_in(self, full: tuple[float, float]) -> tuple[float, float]:
        """Return the range that is shown."""
        return (
            full[0] if self.first is None else self.first,
            full[1] if self.last is None else self.last,
        )


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line of a chart: texts, each with the name of its style."""

    parts: tuple[tuple[str, str], ...]

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(text for text, _ in self.parts)

    @property
    def cell_length(self) -> int:
        """Cells that it takes."""
        return sum(cell_len(text) for text, _ in self.parts)


def full_range(series: Sequence[Series], axis: Axis) -> tuple[float, float]:
    """Return the range of the axis in which these series have values."""
    ends = [(float(x[0]), float(x[-1])) for item in series if len(x := item.along(axis))]
    return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else (0.0, 1.0)


def is_by_time(curves: Sequence[Series], axis: Axis) -> bool:
    """Return whether curves are drawn over seconds, not over steps."""
    return any(item.by_time or (axis == "time" and item.has_times) for item in curves)


def chart_lines(
    title: str,
    curves: Sequence[Series],
    view: ChartView,
    width: int,
    height: int,
    *,
    active: bool = False,
    figures: bool = True,
) -> list[ChartLine]:
    """Return a chart as exactly `height` lines of `width` cells; its curves are smoothed already.

    `figures`: whether the last values stand in the title.
    """
    drawn = _drawn(curves, view, width - _LABEL - 2, height - 3)
    gaps = drawn.gaps if drawn is not None else 0
    head = _title(title, curves if figures else (), gaps, width, active=active)
    blank = ChartLine(((" " * width, ""),))
    if drawn is None:
        text = "no finite values in this range" if any(len(item.values) for item in curves) else "no values"
        return [head, ChartLine(((fitted(f"  {text}", width), "dim"),)), *[blank] * (height - 2)][:height]
    return [head, *drawn.lines]


@dataclass(frozen=True, slots=True)
class _Drawn:
    lines: tuple[ChartLine, ...]
    gaps: int


def _title(title: str, curves: Sequence[Series], gaps: int, width: int, *, active: bool) -> ChartLine:
    warning = f" ! {plural(gaps, 'value')} not finite" if gaps else ""
    mark = "▸" if active else " "
    last = _figures(curves, width - 2 - len(warning) - min(cell_len(title), _NAME_LEAST))
    room = max(width - 2 - len(last) - len(warning), 4)
    name = fitted(title, room) if cell_len(title) > room else title
    style = "bold $text-primary" if active else "bold"
    return _cut(((f"{mark}{name} ", style), (last, ""), (warning, "$text-warning")), width)


def _figures(curves: Sequence[Series], room: int) -> str:
    """Return the last values of curves, all or none of them, with fewer digits where there is little room."""
    values = [item.last for item in curves if item.last is not None]
    texts = (" ".join(number(value, digits) for value in values) for digits in (4, 3, 2))
    return next((text for text in texts if len(text) <= room), "")


def _cut(parts: Sequence[tuple[str, str]], width: int) -> ChartLine:
    """Return a line of exactly `width` cells."""
    line: list[tuple[str, str]] = []
    for text, style in parts:
        length = cell_len(text)
        if length > width:
            line.append((fitted(text, width), style))
            width = 0
            break
        line.append((text, style))
        width -= length
    return ChartLine((*line, (" " * width, "")))


def _drawn(curves: Sequence[Series], view: ChartView, room: int, rows: int) -> _Drawn | None:
    if room < 4 or rows < 2:
        return None
    first, last = view.range_in(full_range(curves, view.axis))
    columns, gaps = [], 0
    for item in curves:
        values = item.values
        if view.logarithmic and bool((values <= 0).any()):
            values = np.where(values > 0, values, np.nan)
        part = reduced(item.along(view.axis), values, first, last, room * 2)
        bounds = (part.low, part.high)
        columns.append((np.log10(part.low), np.log10(part.high)) if view.logarithmic else bounds)
        gaps += part.gaps
    low, high = _value_range(columns)
    if math.isnan(low):
        return None
    masks = [_dots(lows, highs, low, high, rows * 4) for lows, highs in columns]
    labels = _labels(low, high, rows, logarithmic=view.logarithmic)
    body = _rows(masks, labels, room, rows)
    axis = " " * _LABEL + " └" + "─" * room
    scale = _scale(first, last, room, as_time=is_by_time(curves, view.axis))
    scale = fitted(" " * (_LABEL + 2) + scale, room + _LABEL + 2)
    return _Drawn((*body, ChartLine(((axis, "dim"),)), ChartLine(((scale, "dim"),))), gaps)


def _value_range(columns: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[float, float]:
    lows = [float(np.nanmin(low)) for low, _ in columns if not np.isnan(low).all()]
    highs = [float(np.nanmax(high)) for _, high in columns if not np.isnan(high).all()]
    if not lows:
        return math.nan, math.nan
    low, high = min(lows), max(highs)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        return low - margin, high + margin
    return low, high


def _dots(lows: NDArray[np.float64], highs: NDArray[np.float64], low: float, high: float, lines: int) -> Dots:
    """Return the dots of a curve, lines by columns: in each column from its lowest to its highest value."""
    finite = ~np.isnan(lows)
    scale = (lines - 1) / (high - low)
    bottom = np.where(finite, np.rint((high - np.where(finite, lows, low)) * scale), -1).astype(np.int64)
    top = np.where(finite, np.rint((high - np.where(finite, highs, low)) * scale), lines).astype(np.int64)
    # A column goes on to where the one before it ends, so that a steep line has no holes.
    joined = finite[1:] & finite[:-1]
    top[1:] = np.where(joined & (top[1:] > bottom[:-1] + 1), bottom[:-1] + 1, top[1:])
    bottom[1:] = np.where(joined & (bottom[1:] < top[:-1] - 1), top[:-1] - 1, bottom[1:])
    line = np.arange(lines)[:, None]
    mask: Dots = (line >= top) & (line <= bottom) & finite
    return mask


def _rows(masks: Sequence[Dots], labels: Sequence[str], room: int, rows: int) -> list[ChartLine]:
    """Return the rows of cells with their labels; of curves in one cell the last one gives the style."""
    cells = [
        np.einsum("aibj,ij->ab", mask.reshape(rows, 4, room, 2).astype(np.int64), _WEIGHTS) for mask in masks
    ]
    if len(cells) == 1:
        text = np.where(cells[0] > 0, cells[0] + _EMPTY, ord(" ")).astype("<u4").tobytes().decode("utf-32-le")
        return [
            ChartLine(((label, "dim"), (text[row * room : (row + 1) * room], CURVE_STYLES[0])))
            for row, label in enumerate(labels)
        ]
    merged = np.bitwise_or.reduce(np.stack(cells))
    owner = np.zeros((rows, room), dtype=np.int64)
    for index, part in enumerate(cells):
        owner[part > 0] = index
    glyphs = [[chr(_EMPTY + dots) if dots else " " for dots in row] for row in merged.tolist()]
    if len(masks) > 1:
        _name_curves(glyphs, owner, cells)
    return [
        ChartLine(((label, "dim"), *_styled(row, owners)))
        for label, row, owners in zip(labels, glyphs, owner.tolist(), strict=True)
    ]


def _name_curves(
    glyphs: list[list[str]], owner: NDArray[np.int64], cells: Sequence[NDArray[np.int64]]
) -> None:
    """Put a letter at the end of each curve; where ends coincide, side by side."""
    taken: set[tuple[int, int]] = set()
    for index, part in enumerate(cells):
        columns = np.flatnonzero(part.any(axis=0))
        if not len(columns):
            continue
        column = int(columns[-1])
        row = int(np.flatnonzero(part[:, column])[0])
        while (row, column) in taken and column > 0:
            column -= 1
        taken.add((row, column))
        glyphs[row][column], owner[row, column] = LETTERS[index], index


def _styled(glyphs: Sequence[str], owners: Sequence[int]) -> list[tuple[str, str]]:
    """Return a row as runs of equal style; empty cells continue the run."""
    runs: list[tuple[str, str]] = []
    text, current = "", 0
    for glyph, index in zip(glyphs, owners, strict=True):
        if glyph != " " and index != current and text:
            runs.append((text, CURVE_STYLES[current % len(CURVE_STYLES)]))
            text = ""
        if glyph != " ":
            current = index
        text += glyph
    return [*runs, (text, CURVE_STYLES[current % len(CURVE_STYLES)])]


def _labels(low: float, high: float, rows: int, *, logarithmic: bool) -> list[str]:
    ticks = value_ticks(low, high, rows)
    if logarithmic:
        places = {}
        for value in nice_ticks(low, high, max(rows // 3, 2)):
            row = min(max(int((high - value) / (high - low) * (rows * 4 - 1)) // 4, 0), rows - 1)
            places[row] = number(10**value, 3)
        ticks = places
    return [
        f"{ticks[row]:>{_LABEL}.{_LABEL}} ┤" if row in ticks else " " * _LABEL + " │" for row in range(rows)
    ]


def _scale(first: float, last: float, width: int, *, as_time: bool) -> str:
    """Return the labels below the axis: its two ends, and what fits between them."""

    def text_of(value: float) -> str:
        return duration(value, tenths=False) if as_time else f"{value:.0f}"

    if first == last:
        return text_of(first).center(width)
    text = [" "] * width
    for tick in dict.fromkeys((first, last, *nice_ticks(first, last, max(width // 12, 1)))):
        label = text_of(tick)
        column = round((tick - first) / (last - first) * (width - 1))
        start = min(max(column - len(label) // 2, 0), max(width - len(label), 0))
        if not "".join(text[max(start - 2, 0) : start + len(label) + 2]).strip():
            text[start : start + len(label)] = label
    return "".join(text[:width]).rstrip()
