"""Charts of a run: a grid of all its metrics, filtered by typing; one in all of the room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen

from launcher.overview.series import Axis, Series, phases_of_step
from tui.chart_poller import ChartedRun, ChartPoller, SeriesRead
from tui.commands import Scope, bindings
from tui.formatting import plural
from tui.opening import Opener, OpeningFailed
from tui.widgets.chart import LETTERS, SMOOTHINGS
from tui.widgets.chart_grid import ChartContent, ChartGrid
from tui.widgets.keybar import KeyBar
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from textual.widgets import Input

    from launcher.logs.gpu_samples import NodeSamples
    from tui.screens.connection_words import ConnectionTeller

_STEP_TIME = "step_time_s"
FILTER_HINT = "words in the metric's name; enter applies, esc clears"


class ChartCommands(Screen[None]):
    """Commands on a grid of charts, for the screens that have one."""

    grid: ChartGrid

    def on_opening_failed(self, event: OpeningFailed) -> None:
        """Show why a run cannot be read, then return."""
        from tui.screens.dialogs import error_dialog

        event.stop()
        self.app.push_screen(error_dialog(event.error), lambda _: self.dismiss())

    def action_move(self, columns: int, rows: int) -> None:
        """Select another chart; in one chart, move along its axis."""
        if self.grid.zoomed and columns:
            self.grid.pan(columns / 4)
        elif self.grid.zoomed:
            self.grid.select(self.grid.selected + rows)
        else:
            self.grid.select(self.grid.selected + columns + rows * self.grid.shape[0])

    def action_page(self, direction: int) -> None:
        """Go to the next or the previous page of charts."""
        first, last = self.grid.page
        self.grid.select(last if direction > 0 else first - 1)

    def action_zoom_chart(self) -> None:
        """Give the selected chart all of the room, or show all again."""
        self.grid.toggle_zoom()

    def action_zoom_axis(self, direction: int) -> None:
        """Show half as much of the axis, or twice as much."""
        self.grid.zoom_axis(0.5 if direction > 0 else 2.0)

    def action_pan(self, direction: int) -> None:
        """Move along the axis by a quarter of what is shown."""
        self.grid.pan(direction / 4)

    def action_whole_axis(self) -> None:
        """Show all of the axis."""
        self.grid.set_view(replace(self.grid.view, first=None, last=None))

    def action_log_scale(self) -> None:
        """Use a logarithmic scale, or a linear one."""
        self.grid.set_view(replace(self.grid.view, logarithmic=not self.grid.view.logarithmic))

    def action_smooth(self) -> None:
        """Average over more values, then over none."""
        index = SMOOTHINGS.index(self.grid.view.window)
        self.grid.set_view(replace(self.grid.view, window=SMOOTHINGS[(index + 1) % len(SMOOTHINGS)]))

    def action_next_axis(self) -> None:
        """Use steps or time as the axis."""
        axis: Axis = "time" if self.grid.view.axis == "step" else "step"
        self.grid.set_view(replace(self.grid.view, axis=axis, first=None, last=None))

    def view_in_words(self) -> str:
        """Return how the charts are looked at, as far as it is not the usual way."""
        view = self.grid.view
        words = ["by time"] if view.axis == "time" else []
        words += ["log scale"] if view.logarithmic else []
        words += [f"mean of {view.window}"] if view.window > 1 else []
        words += [f"{view.first:.0f} to {view.last:.0f}"] if view.first is not None else []
        return ", ".join(words)


class ChartsScreen(ChartCommands):
    """All metrics of one run."""

    BINDINGS = bindings(Scope.CHARTS)
    SCOPES = (Scope.CHARTS, Scope.APP)
    ABOUT = (
        "Every scalar of TensorBoard's files and of the driver's log, and the GPUs' use by the tables that "
        "the launcher writes. Each column of dots spans the lowest to the highest value in it."
    )

    def __init__(
        self, opener: Opener, title: str, connection: ConnectionTeller | None = None, machine: str = ""
    ) -> None:
        """Make the screen; `connection` tells of that to the run's host, `machine` (None: it is here)."""
        super().__init__()
        self.machine_name = machine
        self._poller = ChartPoller(opener, self, patient=connection is not None)
        self._connection = connection
        self._run = ChartedRun(title)
        self._series: tuple[Series, ...] = ()
        self._charts: tuple[ChartContent, ...] = ()
        self._gpus: tuple[NodeSamples, ...] = ()
        self._reading = True
        self.title_line = StyledLines(classes="title-line")
        self.grid = ChartGrid()
        self.note = StyledLines(id="home-detail")
        self.key_bar = KeyBar(*self.SCOPES)
        self.field: Input | None = None

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title_line
        yield self.grid
        yield self.note
        yield self.key_bar

    def on_mount(self) -> None:
        """Begin to read."""
        self.set_focus(self.grid)
        self._arrange()
        self._poller.start()
        if self._connection is not None:
            self.set_interval(1.0, self._show_title)

    def on_unmount(self) -> None:
        """End the thread."""
        self._poller.stop()

    def on_series_read(self, event: SeriesRead) -> None:
        """Show what is read."""
        event.stop()
        self._series, self._gpus, self._reading = event.series, event.gpus, event.reading
        self._run = event.run
        self._arrange()

    def on_input_changed(self) -> None:
        """Filter incrementally."""
        self._arrange()

    async def on_input_submitted(self) -> None:
        """Keep the filter, focus the charts."""
        if self.field is not None and not self.field.value:
            await self.action_back()
        self.set_focus(self.grid)

    def on_chart_grid_view_changed(self) -> None:
        """Show how the charts are looked at."""
        self._show_title()

    def _arrange(self) -> None:
        words = self.field.value.casefold().split() if self.field is not None else []
        self._charts = charts_of(self._series)
        self.grid.show(
            [item for item in self._charts if all(word in item.title.casefold() for word in words)]
        )
        self._show_title()
        self.note.set_lines(self._notes())
        self.key_bar.update_keys()

    def _show_title(self) -> None:
        first, last = self.grid.page
        total = plural(len(self._charts), "chart")
        count = f"{first + 1} to {last} of {len(self.grid.charts)}" if self.grid.charts else "none"
        parts = [
            (" charts ", "bold $text-primary"),
            (f" {self._run.title} ", "bold"),
            (f" {count}" + (f" ({total})" if len(self.grid.charts) != len(self._charts) else ""), "dim"),
            (f"   {self.view_in_words()}", "$text-primary"),
            ("   reading …" if self._reading else "", "dim"),
        ]
        connection = self._connection() if self._connection is not None else None
        if connection is not None:
            parts.insert(2, connection)
        self.title_line.set_lines([Content.assemble(*parts)])

    def _notes(self) -> list[Content]:
        """Return what the GPUs' tables say that deserves a look, or why there is no chart."""
        if not self.grid.charts and not self._reading:
            hidden = "no chart has these words; esc shows all"
            none = "no values yet (driver's log, TensorBoard, GPU tables)"
            return [Content.assemble((f" {hidden if self._charts else none}", "dim"))]
        if not self._gpus:
            return []
        from launcher.logs.gpu_samples import idle_spans, imbalance, peak_memory_gib

        doing = f" while {self._run.activity}" if self._run.activity else ""
        texts = [span.in_words() + doing for span in idle_spans(self._gpus)]
        lines = [Content.assemble((" ! ", "$text-warning"), "; ".join(texts))] if texts else []
        spread, peak = imbalance(self._gpus), peak_memory_gib(self._gpus)
        facts = [f"peak {peak[0]:.1f} of {peak[1]:.1f} GiB"] if peak is not None else []
        if peak is not None and self._run.estimated_gib is not None:
            facts.append(f"{self._run.estimated_gib:.1f} GiB were estimated")
        facts += [f"GPUs {spread[0]:.0f} to {spread[1]:.0f} % busy"] if spread is not None else []
        return [*lines, Content.assemble((f" {' · '.join(facts)}", "dim"))] if facts else lines

    async def action_filter(self) -> None:
        """Open the filter field."""
        from textual.widgets import Input

        if self.field is None:
            self.field = Input(placeholder=FILTER_HINT, compact=True)
            await self.mount(self.field, before=self.note)
        self.set_focus(self.field)

    async def action_back(self) -> None:
        """Show the grid again, clear the filter, or close the charts."""
        if self.grid.zoomed and self.focused is self.grid:
            self.grid.toggle_zoom()
        elif self.field is not None:
            field, self.field = self.field, None
            await field.remove()
            self.set_focus(self.grid)
            self._arrange()
        else:
            self.dismiss()


def charts_of(series: Sequence[Series]) -> tuple[ChartContent, ...]:
    """Return a chart for each series; behind the time of a step, its phases over each other."""
    phases = phases_of_step(series)
    names = ", ".join(
        f"{letter} {item.name.removesuffix('_time_s')}" for letter, item in zip(LETTERS, phases, strict=False)
    )
    charts = []
    for item in series:
        charts.append(ChartContent(item.name, (item,)))
        if item.name == _STEP_TIME and phases:
            charts.append(ChartContent(f"phases of a step: {names}", phases, figures=False))
    return tuple(charts)
