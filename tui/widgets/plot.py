"""Line plots in braille: two by four dots a character cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tui.formatting import number
from tui.run_view import Point

# Unicode, braille patterns: the bit of the dot at (column, row) of a cell.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_EMPTY = 0x2800


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawn plot, row by row from the top."""

    labels: tuple[str, ...]
    """Value and axis to the left of each row; all of the same width."""
    rows: tuple[str, ...]
    axis: str
    """The horizontal axis, as wide as the rows; empty where there is no room."""
    scale: str
    """Steps below the axis."""
    gaps: int = 0
    """Number of points that are not finite and not drawn."""


def nice_ticks(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round values within [low, high]."""
    span = high - low
    if span <= 0 or count < 1:
        return [low]
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [multiple * step for multiple in range(first, last + 1)]


def plot(points: Sequence[Point], width: int, height: int) -> Plot | None:
    """Draw points in ascending x into `width` by `height` cells; None without room or finite values."""
    finite = [point for point in points if math.isfinite(point[1])]
    if not finite or height < 3 or width < 12:
        return None
    values = [value for _, value in finite]
    low, high = _range(values)
    rows = height - 2 if height >= 5 else height - 1
    flat = min(values) == max(values)
    ticks = {round((rows * 4 - 1) / 2) // 4: number(values[0])} if flat else value_ticks(low, high, rows)
    label_width = max(len(text) for text in ticks.values())
    room = width - label_width - 2
    if room < 4:
        return None
    canvas = _Canvas(room, rows, finite[0][0], finite[-1][0], low, high)
    canvas.draw(points)
    labels = tuple(
        f"{ticks[row]:>{label_width}} ┤" if row in ticks else " " * (label_width + 1) + "│"
        for row in range(rows)
    )
    axis = "─" * room if height >= 5 else ""
    scale = scale_labels(finite[0][0], finite[-1][0], room)
    return Plot(labels, canvas.rows(), axis, scale, len(points) - len(finite))


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if low == high:
        margin = abs(low) * 0.1 or 1.0
        return low - margin, high + margin
    return low, high


def value_ticks(low: float, high: float, rows: int) -> dict[int, str]:
    """Return the labels of round values by the row that they belong to, from the top."""
    values = nice_ticks(low, high, max(rows // 3, 2))
    step = values[1] - values[0] if len(values) > 1 else high - low
    decimals = max(-math.floor(math.log10(abs(step) or 1.0) + 1e-9), 0)
    if step * 10**decimals % 1 > 1e-6:  # steps of 2.5
        decimals += 1
    plain = decimals <= 6 and max(abs(low), abs(high)) < 1e7
    texts = {}
    for value in values:
        depth = (high - value) / (high - low)
        row = min(max(int(depth * (rows * 4 - 1)) // 4, 0), rows - 1)
        texts[row] = f"{value + 0.0:.{decimals}f}" if plain else number(value, 3)
    return texts


def scale_labels(first: float, last: float, width: int) -> str:
    """Return the steps below the axis: the first, the last, and those that fit between."""
    if first == last:
        return f"{first:g}".center(width).rstrip()
    text = [" "] * width
    ticks = [tick for tick in nice_ticks(first, last, max(width // 14, 1)) if tick == int(tick)]
    for tick in dict.fromkeys((first, last, *ticks)):
        label = f"{tick:.0f}"
        column = round((tick - first) / (last - first) * (width - 1))
        start = min(max(column - len(label) // 2, 0), max(width - len(label), 0))
        if not "".join(text[max(start - 2, 0) : start + len(label) + 2]).strip():
            text[start : start + len(label)] = label
    return "".join(text).rstrip()


class _Canvas:
    """Grid of dots; the lowest value is in the bottom row."""

    def __init__(self, width: int, height: int, first: float, last: float, low: float, high: float) -> None:
        self._columns, self._lines = width * 2, height * 4
        self._first, self._span_x = first, (last - first) or 1.0
        self._single = first == last
        self._low, self._span_y = low, (high - low) or 1.0
        self._cells = [[0] * width for _ in range(height)]

    def draw(self, points: Sequence[Point]) -> None:
        """Connect the points; a point that is not finite breaks the line."""
        previous: tuple[int, int] | None = None
        column = -1
        top = bottom = 0
        for x, y in points:
            if not math.isfinite(y):
                previous = None
                column = -1
                continue
            dot = self._dot_of(x, y)
            if dot[0] == column:  # many points in a column: one line from the lowest to the highest
                if top <= dot[1] <= bottom:
                    previous = dot
                    continue
                top, bottom = min(top, dot[1]), max(bottom, dot[1])
            else:
                column, top, bottom = dot[0], dot[1], dot[1]
            self._line(previous or dot, dot)
            previous = dot
        if self._single and previous is not None:  # a single dot is easily overlooked
            self._line((previous[0] + 1, previous[1]), (previous[0] + 1, previous[1] + 1))
            self._set_dot(previous[0], previous[1] + 1)

    def rows(self) -> tuple[str, ...]:
        """Return the drawn cells as text."""
        return tuple("".join(chr(_EMPTY + dots) if dots else " " for dots in row) for row in self._cells)

    def _dot_of(self, x: float, y: float) -> tuple[int, int]:
        across = 0.5 if self._single else (x - self._first) / self._span_x
        up = (y - self._low) / self._span_y
        return round(across * (self._columns - 1)), round((1 - up) * (self._lines - 1))

    def _line(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        across, down = end[0] - start[0], end[1] - start[1]
        length = max(abs(across), abs(down), 1)
        for part in range(length + 1):
            self._set_dot(start[0] + round(across * part / length), start[1] + round(down * part / length))

    def _set_dot(self, column: int, line: int) -> None:
        self._cells[line // 4][column // 2] |= _DOTS[column % 2][line % 4]
