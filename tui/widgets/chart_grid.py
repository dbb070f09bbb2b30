"""Grid of charts: as many as fit, one of them selected, or one in all of the room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.events import Click
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from launcher.overview.series import Floats, Series, smoothed
from tui.widgets.chart import ChartView, chart_lines, full_range, is_by_time

_LEAST_WIDTH, _LEAST_HEIGHT = 38, 9
_KEPT = 64


@dataclass(frozen=True, slots=True)
class ChartContent:
    """A chart: its title, and one curve or several."""

    title: str
    curves: tuple[Series, ...]
    figures: bool = True
    """Whether the last values stand in the title."""


class ChartGrid(Widget, can_focus=True, inherit_bindings=False):
    """Charts, with the view that all of them share."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "ChartGrid { height: 1fr; width: 1fr; }"

    class ViewChanged(Message):
        """Another chart is selected, or they are looked at in another way."""

    def __init__(self) -> None:
        super().__init__()
        self.charts: tuple[ChartContent, ...] = ()
        self.view = ChartView()
        self.selected = 0
        self.zoomed = False
        self._drawn: dict[object, list[list[Segment]]] = {}
        """Charts as they were drawn last; moving to another one draws two."""
        self._lines: list[Strip] | None = None
        """The page as it is painted; None: to be drawn."""
        self._styles: dict[str, RichStyle] = {}
        self._means: dict[int, tuple[Floats, int, Floats]] = {}

    def show(self, charts: Sequence[ChartContent]) -> None:
        """Show charts; the selection stays on its title."""
        previous = self.current
        self.charts = tuple(charts)
        self._drawn.clear()
        self._means.clear()
        self._lines = None
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

    def render_line(self, y: int) -> Strip:
        """Return a line of the charts of this page."""
        if self._lines is None:
            self._lines = self._page_lines()
        return self._lines[y] if y < len(self._lines) else Strip.blank(self.size.width, self._style(""))

    def _page_lines(self) -> list[Strip]:
        """Draw the page as segments: Textual's content takes three times as long."""
        columns, rows = self.shape
        first, last = self.page
        width, height = self.size.width // columns, max(self.size.height // rows, 3)
        blank = self._style("")
        lines = []
        for row in range(rows):
            indices = range(first + row * columns, min(first + (row + 1) * columns, last))
            blocks = [self._chart(index, width, height) for index in indices]
            for parts in zip(*blocks, strict=True):
                strip = Strip([segment for part in parts for segment in part], len(indices) * width)
                lines.append(strip.adjust_cell_length(self.size.width, blank))
        return lines

    def _style(self, name: str) -> RichStyle:
        if name not in self._styles:
            self._styles[name] = (self.visual_style + self.app.stylesheet.parse_style(name)).rich_style
        return self._styles[name]

    def notify_style_update(self) -> None:
        """Draw anew in another theme."""
        super().notify_style_update()
        self._styles.clear()
        self._drawn.clear()
        self._lines = None

    def _view_of(self, chart: ChartContent) -> ChartView:
        """Return how a chart is looked at: a part of the steps is no part of the time."""
        current = self.current
        same = current is None or is_by_time(chart.curves, self.view.axis) == is_by_time(
            current.curves, self.view.axis
        )
        return self.view if same else replace(self.view, first=None, last=None)

    def _chart(self, index: int, width: int, height: int) -> list[list[Segment]]:
        chart = self.charts[index]
        active = index == self.selected
        view = self._view_of(chart)
        key = (chart.title, tuple(id(curve.values) for curve in chart.curves), view, width, height, active)
        if key not in self._drawn:
            if len(self._drawn) > _KEPT:
                self._drawn.clear()
            curves = tuple(map(self._smoothed, chart.curves))
            lines = chart_lines(
                chart.title, curves, view, width, height, active=active, figures=chart.figures
            )
            self._drawn[key] = [
                [Segment(text, self._style(style)) for text, style in line.parts] for line in lines
            ]
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
        self._lines = None
        self.refresh()
        self.post_message(self.ViewChanged())

    def on_resize(self) -> None:
        """Draw for another size, and tell that another number of charts has room."""
        self._lines = None
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
