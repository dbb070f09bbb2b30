"""Grid of charts: as many as fit, one of them selected, or one in all of the room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from launcher.overview.series import Floats, Series, smoothed
from tui.widgets.chart import ChartView, chart_lines, full_range

_LEAST_WIDTH, _LEAST_HEIGHT = 38, 9
_KEPT = 64


@dataclass(frozen=True, slots=True)
class ChartContent:
    """A chart: its title, and one curve or several."""

    title: str
    curves: tuple[Series, ...]


class ChartGrid(Widget, can_focus=True, inherit_bindings=False):
    """Charts, with the view that all of them share."""

    DEFAULT_CSS = "ChartGrid { height: 1fr; width: 1fr; }"

    class ViewChanged(Message):
        """Another chart is selected, or they are looked at in another way."""

    def __init__(self) -> None:
        super().__init__()
        self.charts: tuple[ChartContent, ...] = ()
        self.view = ChartView()
        self.selected = 0
        self.zoomed = False
        self._drawn: dict[object, list[Content]] = {}
        """Charts as they were drawn last; moving to another one draws two."""
        self._means: dict[int, tuple[Floats, int, Floats]] = {}

    def show(self, charts: Sequence[ChartContent]) -> None:
        """Show charts; the selection stays on its title."""
        previous = self.current
        self.charts = tuple(charts)
        self._drawn.clear()
        self._means.clear()
        if previous is not None:
            titles = [chart.title for chart in self.charts]
            if previous.title in titles:
                self.selected = titles.index(previous.title)
        self.selected = min(self.selected, max(len(self.charts) - 1, 0))
        self.refresh()

    @property
    def current(self) -> ChartContent | None:
        """The selected chart."""
        return self.charts[self.selected] if self.charts else None

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and rows of the grid."""
        if self.zoomed:
            return 1, 1
        columns = max(self.size.width // _LEAST_WIDTH, 1)
        rows = max(self.size.height // _LEAST_HEIGHT, 1)
        return min(columns, max(len(self.charts), 1)), min(rows, -(-max(len(self.charts), 1) // columns))

    @property
    def page(self) -> tuple[int, int]:
        """Index of the first chart on the screen, and the one after the last."""
        columns, rows = self.shape
        count = columns * rows
        first = self.selected if self.zoomed else self.selected // count * count
        return first, min(first + count, len(self.charts))

    def render(self) -> Content:
        """Return the charts of this page."""
        columns, rows = self.shape
        first, last = self.page
        width, height = self.size.width // columns, max(self.size.height // rows, 3)
        lines: list[Content] = []
        for row in range(rows):
            indices = range(first + row * columns, min(first + (row + 1) * columns, last))
            blocks = [self._chart(index, width, height) for index in indices]
            lines += [Content("").join(parts) for parts in zip(*blocks, strict=True)]
        return Content("\n").join(lines)

    def _chart(self, index: int, width: int, height: int) -> list[Content]:
        chart = self.charts[index]
        active = index == self.selected
        key = (
            chart.title,
            tuple(id(curve.values) for curve in chart.curves),
            self.view,
            width,
            height,
            active,
        )
        if key not in self._drawn:
            if len(self._drawn) > _KEPT:
                self._drawn.clear()
            curves = tuple(map(self._smoothed, chart.curves))
            self._drawn[key] = chart_lines(chart.title, curves, self.view, width, height, active=active)
        return self._drawn[key]

    def _smoothed(self, series: Series) -> Series:
        """Return a series as its curve is drawn; the mean of 100,000 values takes 4 ms, and is kept."""
        window = self.view.window
        if window == 1:
            return series
        kept = self._means.get(id(series.values))
        if kept is None or kept[0] is not series.values or kept[1] != window:
            kept = (series.values, window, smoothed(series.values, window))
            self._means[id(series.values)] = kept
        return replace(series, values=kept[2])

    def set_view(self, view: ChartView) -> None:
        """Look at the charts in another way."""
        if view != self.view:
            self.view = view
            self._changed()

    def zoom_axis(self, factor: float) -> None:
        """Show less or more of the axis, by the selected chart."""
        self.set_view(self.view.zoomed(self._full(), factor))

    def pan(self, share: float) -> None:
        """Move along the axis by a share of what is shown."""
        self.set_view(self.view.panned(self._full(), share))

    def _full(self) -> tuple[float, float]:
        chart = self.current
        return full_range(chart.curves, self.view.axis) if chart is not None else (0.0, 1.0)

    def select(self, index: int) -> None:
        """Select a chart."""
        index = min(max(index, 0), max(len(self.charts) - 1, 0))
        if index != self.selected:
            self.selected = index
            self._changed()

    def toggle_zoom(self) -> None:
        """Give the selected chart all of the room, or show the grid again."""
        self.zoomed = not self.zoomed and bool(self.charts)
        self._changed()

    def _changed(self) -> None:
        self.refresh()
        self.post_message(self.ViewChanged())

    def on_resize(self) -> None:
        """Tell that another number of charts has room."""
        self.post_message(self.ViewChanged())

    def on_click(self, event: Click) -> None:
        """Select the chart under the pointer; the selected one gets all of the room."""
        columns, rows = self.shape
        width, height = self.size.width // columns, max(self.size.height // rows, 1)
        index = self.page[0] + event.y // height * columns + event.x // width
        if index == self.selected or self.zoomed:
            self.toggle_zoom()
        else:
            self.select(index)
