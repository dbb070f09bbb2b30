"""Table of runs: one on each line, with columns that fit the width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from launcher.logs.events import JobState
from tui.formatting import GLYPHS, day_and_time, duration, number, sparkline
from tui.run_list import RunRow
from tui.widgets.line_view import LineView

WIDE = 110
_STATE, _STEP, _LOSS, _SPARK, _STARTED, _TOOK = 11, 9, 8, 16, 12, 7
_CLASSES = {
    JobState.COMPLETED: "runs--good",
    JobState.STOPPED: "runs--odd",
    JobState.FAILED: "runs--bad",
    JobState.CANCELLED: "runs--odd",
    JobState.RUNNING: "runs--live",
    JobState.STARTING: "runs--odd",
    JobState.QUEUED: "runs--odd",
    JobState.UNKNOWN: "runs--quiet",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths of the columns that depend on the screen's width."""

    name: int
    spark: int
    reason: int

    @classmethod
    def of(cls, width: int) -> Columns:
        """Divide the width left by the fixed columns among name, curve and reason."""
        rest = width - (_STATE + _STEP + _LOSS + _STARTED + _TOOK) - 6
        if width < WIDE:
            return cls(max(rest, 8), 0, 0)
        name = min(max(rest // 3, 20), 30)
        return cls(name, _SPARK, max(rest - name - _SPARK - 3, 0))


def header(columns: Columns) -> str:
    """Return the headings."""
    texts = [
        f" {'state':<{_STATE}}",
        f"{'run':<{columns.name}}",
        f"{'step':>{_STEP}}",
        f"{'loss':>{_LOSS}}",
        f"{'started':<{_STARTED}}",
        f"{'took':>{_TOOK}}",
    ]
    if columns.spark:
        texts.insert(4, f"{'':<{columns.spark}}")
        texts.append(" reason")
    return " ".join(texts)


def state_label(row: RunRow) -> str:
    """Return the state's glyph and name."""
    if row.damaged:
        return "! damaged"
    if row.state is None:
        return "… reading"
    return f"{GLYPHS[row.state]} {row.state.value}"


def cells(row: RunRow, columns: Columns, now: float) -> list[str]:
    """Return a row's columns, padded to their widths; the state comes first."""
    steps = f"{row.step}/{row.max_steps}" if row.max_steps else str(row.step or "")
    loss = number(row.losses[-1]) if row.losses else ""
    started = day_and_time(row.started) if row.started is not None else ""
    texts = [
        set_cell_size(f" {state_label(row)}", _STATE + 1),
        set_cell_size(row.name, columns.name),
        f"{steps:>{_STEP}}",
        f"{loss:>{_LOSS}}",
        f"{started:<{_STARTED}}",
        f"{_elapsed(row, now):>{_TOOK}}",
    ]
    if columns.spark:
        curve = sparkline([value for value in row.losses if math.isfinite(value)], columns.spark - 1)
        texts.insert(4, f" {curve:<{columns.spark - 1}}")
        texts.append(" " + set_cell_size(row.damaged or row.reason, columns.reason))
    return texts


def _elapsed(row: RunRow, now: float) -> str:
    if row.started is None or row.state is None:
        return ""
    if row.state.ended:
        return duration(row.ended - row.started) if row.ended is not None else ""
    return duration(now - row.started, tenths=False) if row.state is not JobState.UNKNOWN else ""


class RunHeader(Widget):
    """The headings of the table."""

    def render(self) -> Content:
        """Return the headings."""
        return Content(header(Columns.of(self.size.width)))


class RunTable(LineView, can_focus=True, inherit_bindings=False):
    """Rows of runs, one of them selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Up", show=False),
        Binding("down,j", "cursor(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"runs--cursor", "runs--quiet", *_CLASSES.values()}

    class SelectionChanged(Message):
        """Another run is selected, or its row changed."""

    class RowOpened(Message):
        """The selected run was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[RunRow, ...] = ()
        self._drawn: list[list[str]] = []
        self._selected = 0
        self._now = 0.0

    @property
    def rows(self) -> tuple[RunRow, ...]:
        """The rows shown."""
        return self._rows

    @property
    def selected(self) -> RunRow | None:
        """The row under the cursor."""
        return self._rows[self._selected] if self._rows else None

    def show(self, rows: tuple[RunRow, ...], now: float) -> None:
        """Show rows; the cursor stays on its run. Repaints only if the text changed."""
        previous = self.selected
        self._rows, self._now = rows, now
        if previous is not None:
            same_run = (index for index, row in enumerate(rows) if row.directory == previous.directory)
            self._selected = next(same_run, self._selected)
        self._selected = min(self._selected, max(len(rows) - 1, 0))
        self._draw()
        if self.selected != previous:
            self.post_message(self.SelectionChanged())

    def _draw(self) -> None:
        columns = Columns.of(self.scrollable_content_region.width)
        drawn = [cells(row, columns, self._now) for row in self._rows]
        if drawn != self._drawn:
            self._drawn = drawn
            self.virtual_size = Size(0, len(drawn))
            self.refresh()

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self._draw()
        self._scroll_to_selected()

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        base = self.rich_style
        if index >= len(self._drawn):
            return Strip.blank(width, base)
        row = self._rows[index]
        quiet = base + self.get_component_rich_style("runs--quiet", partial=True)
        name = "runs--bad" if row.damaged else _CLASSES[row.state] if row.state else "runs--quiet"
        style = base + self.get_component_rich_style(name, partial=True)
        if index == self._selected:
            base = quiet = self.get_component_rich_style("runs--cursor")
            style = base
        state, title, *rest = self._drawn[index]
        segments = [Segment(state, style), Segment(f" {title} ", base), Segment(" ".join(rest), quiet)]
        return Strip(segments, sum(cell_len(item.text) for item in segments)).crop_extend(0, width, base)

    def _select(self, index: int) -> None:
        index = min(max(index, 0), max(len(self._rows) - 1, 0))
        if index != self._selected:
            self._selected = index
            self._scroll_to_selected()
            self.refresh()
            self.post_message(self.SelectionChanged())

    def _scroll_to_selected(self) -> None:
        top, height = self.scroll_offset.y, max(self.scrollable_content_region.height, 1)
        if self._selected < top:
            self.scroll_to(y=self._selected, animate=False)
        elif self._selected >= top + height:
            self.scroll_to(y=self._selected - height + 1, animate=False)

    def on_click(self, event: Click) -> None:
        """Select the row under the pointer; open it if it is selected already."""
        index = self.scroll_offset.y + event.y
        if index >= len(self._rows):
            return
        if index == self._selected:
            self.post_message(self.RowOpened())
        self._select(index)

    def action_cursor(self, step: int) -> None:
        """Go a row up or down."""
        self._select(self._selected + step)

    def action_page(self, direction: int) -> None:
        """Go a page up or down."""
        self._select(self._selected + direction * max(self.scrollable_content_region.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Go to the first or the last row."""
        self._select(len(self._rows) if direction > 0 else 0)
