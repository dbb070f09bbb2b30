"""Runs beside each other: curves, figures, and the keys of their recipes that differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from launcher.errors import ConnectionLostError
from tui.background import call_on, in_background, post
from tui.chart_poller import AGAIN_S
from tui.commands import Scope, bindings
from tui.formatting import plural
from tui.opening import OpeningFailed
from tui.screens.charts import ChartCommands
from tui.widgets.chart import CURVE_STYLES, LETTERS
from tui.widgets.chart_grid import ChartContent, ChartGrid
from tui.widgets.keybar import KeyBar
from tui.widgets.panel import fitted
from tui.widgets.styled_lines import StyledLines

if TYPE_CHECKING:
    from launcher.overview.comparison import ComparedRun
    from tui.screens.connection_words import ConnectionTeller
    from tui.work_machine import WorkMachine

PANES = ("curves", "figures", "recipes")
_MOST = len(LETTERS)


class ComparisonScreen(ChartCommands):
    """Up to five runs."""

    BINDINGS = bindings(Scope.COMPARISON)
    SCOPES = (Scope.COMPARISON, Scope.APP)
    ABOUT = (
        "Runs over each other. The letter at the end of a curve is that of its run. Figures are medians "
        "without the first step; a milestone's time is that since the one before it."
    )

    def __init__(
        self, runs: Sequence[tuple[str, WorkMachine]], connection: ConnectionTeller = lambda: None
    ) -> None:
        """Make the screen; `connection` tells of those to the runs' hosts."""
        super().__init__()
        self._connection = connection
        self._directories = tuple(runs[:_MOST])
        """Directories of the runs, each with its machine."""
        self._left_out = len(runs) - len(self._directories)
        self._runs: tuple[ComparedRun, ...] = ()
        self._pane = "curves"
        self.title_line = StyledLines(classes="title-line")
        self.legend = StyledLines(id="comparison-legend")
        self.grid = ChartGrid()
        self.text = StyledLines()
        self.scroll = VerticalScroll(self.text, id="comparison-text")
        self.key_bar = KeyBar(*self.SCOPES)

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title_line
        yield self.legend
        yield self.grid
        yield self.scroll
        yield self.key_bar

    def on_mount(self) -> None:
        """Read the runs."""
        self._arrange()
        if any(machine.name for _, machine in self._directories):
            self.set_interval(1.0, self._show_title)
        in_background(self._read, "comparison", lambda error: post(self, OpeningFailed(error)))

    def _read(self) -> None:
        runs: list[ComparedRun] = []
        for directory, machine in self._directories:
            runs.append(self._when_connected(partial(self._read_one, directory, machine)))
            call_on(self, lambda read=tuple(runs): self._take(read))  # type: ignore[misc]

    def _read_one(self, directory: str, machine: WorkMachine) -> ComparedRun:
        from launcher.overview.comparison import read_run

        return read_run(machine.transport(), directory)

    def _when_connected(self, read: Callable[[], ComparedRun]) -> ComparedRun:
        """Return what is read of a run; a connection that is lost is waited for while the screen is there."""
        while True:
            try:
                return read()
            except ConnectionLostError:
                if not self.is_attached:
                    raise
                time.sleep(AGAIN_S)

    def _take(self, runs: tuple[ComparedRun, ...]) -> None:
        from launcher.overview.comparison import shared_series

        self._runs = runs
        charts = []
        for name in shared_series(runs):
            curves = tuple(run.series[name] for run in runs if name in run.series)
            charts.append(ChartContent(name, curves))
        self.grid.show(charts)
        self._arrange()

    def on_chart_grid_view_changed(self) -> None:
        """Show how the charts are looked at."""
        self._show_title()

    def on_resize(self) -> None:
        """Fit the columns."""
        self._arrange()

    def _show_title(self) -> None:
        reading = len(self._directories) - len(self._runs)
        words = self.view_in_words() if self._pane == "curves" else ""
        parts = [
            (" runs beside each other ", "bold $text-primary"),
            *(
                (f" {number} {name} ", "bold" if name == self._pane else "dim")
                for number, name in enumerate(PANES, 1)
            ),
            (f"  {words}" if words else "", "$text-primary"),
            *([connection] if (connection := self._connection()) is not None else []),
            (f"   reading {plural(reading, 'run')} …" if reading else "", "dim"),
            (f"   {self._left_out} left out: {_MOST} at most" if self._left_out else "", "$text-warning"),
        ]
        self.title_line.set_lines([Content.assemble(*parts)])

    def _arrange(self) -> None:
        self._show_title()
        self.grid.display, self.scroll.display = self._pane == "curves", self._pane != "curves"
        self.set_focus(self.grid if self._pane == "curves" else self.scroll)
        legend = [
            (f" {letter} {run.name}  ", style)
            for letter, style, run in zip(LETTERS, CURVE_STYLES, self._runs, strict=False)
        ]
        self.legend.set_lines([Content.assemble(*legend).truncate(max(self.size.width, 1), ellipsis=True)])
        if self._pane != "curves":
            self.text.set_lines(self._figures() if self._pane == "figures" else self._recipes())

    def _figures(self) -> list[Content]:
        from launcher.overview.comparison import figures
        from launcher.overview.figure_text import texts_of

        room = max((self.size.width - 34) // max(len(self._runs), 1) - 1, 8)  # padding, scroll bar
        names = [f"{letter} {run.name}" for letter, run in zip(LETTERS, self._runs, strict=False)]
        lines = [Content(f"{'':28}" + "".join(f" {fitted(name, room).rjust(room)}" for name in names))]
        lines[0] = lines[0].stylize("bold")
        for row in figures(self._runs):
            values = "".join(f" {fitted(text.rjust(room), room)}" for text in texts_of(row))
            lines.append(Content.assemble((fitted(f" {row.title}", 28), "dim"), values))
        return lines

    def _recipes(self) -> list[Content]:
        from launcher.overview.comparison import recipe_differences
        from launcher.overview.figure_text import value_text

        items = recipe_differences(self._runs)
        if not items:
            with_recipe = sum(bool(run.recipe) for run in self._runs)
            text = "the recipes are equal" if with_recipe > 1 else "there are no two recipes to compare"
            return [Content(f" {text}").stylize("dim")]
        lines = []
        for item in items:
            lines.append(Content(f" {item.key}").stylize("bold"))
            for letter, style, value in zip(LETTERS, CURVE_STYLES, item.values, strict=False):
                lines.append(Content.assemble((f"   {letter} ", style), value_text(value)))
        return lines

    def action_show_pane(self, name: str) -> None:
        """Show curves, figures or recipes."""
        self._pane = name
        self._arrange()

    def action_next_pane(self) -> None:
        """Go on to the next pane."""
        self.action_show_pane(PANES[(PANES.index(self._pane) + 1) % len(PANES)])

    def action_back(self) -> None:
        """Show the grid again, or close."""
        if self._pane == "curves" and self.grid.zoomed:
            self.grid.toggle_zoom()
        else:
            self.dismiss()

    def action_move(self, columns: int, rows: int) -> None:
        """Select another chart; in a text, scroll."""
        if self._pane == "curves":
            super().action_move(columns, rows)
        elif rows:
            self.scroll.scroll_relative(y=rows, animate=False)

    def action_page(self, direction: int) -> None:
        """Go to other charts; in a text, scroll by a page."""
        if self._pane == "curves":
            super().action_page(direction)
        else:
            self.scroll.scroll_relative(y=direction * max(self.scroll.size.height - 1, 1), animate=False)
