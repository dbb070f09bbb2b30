"""Table of runs and jobs, with columns that fit the width; only visible rows are formatted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from launcher.logs.job_state import JobState
from launcher.overview.arrangement import Entry, GroupHeading
from launcher.overview.rows import RunRow
from tui.formatting import plural
from tui.widgets.line_view import LineView
from tui.widgets.run_columns import LAST_OFFSET, ColumnLayout, state_label

__all__ = ["RunHeader", "RunTable", "state_label"]
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
_STATELESS = {"damaged": "runs--bad", "draft": "runs--odd"}
_MARK = "●"
_KEPT = 2000


class RunHeader(Widget):
    """The headings of the table."""

    offset_of_columns = 0
    hosts = False
    """Whether there are rows of hosts."""

    def show_from(self, offset: int) -> None:
        """Show the headings from another column on."""
        if offset != self.offset_of_columns:
            self.offset_of_columns = offset
            self.refresh()

    def render(self) -> Content:
        """Return the headings."""
        return Content(ColumnLayout.of(self.size.width, self.offset_of_columns, hosts=self.hosts).header())


class RunTable(LineView, can_focus=True, inherit_bindings=False):
    """Rows of runs, one of them selected, any of them marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Up", show=False),
        Binding("down,j", "cursor(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
        Binding("right,l", "columns(1)", "More columns", show=False),
        Binding("left,h", "columns(-1)", "First columns", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "runs--cursor", "runs--quiet", "runs--group", "runs--mark", *_CLASSES.values(),
    }  # fmt: skip

    class SelectionChanged(Message):
        """Another run is selected, or its row changed."""

    class RowOpened(Message):
        """The selected run was clicked."""

    class ColumnsMoved(Message):
        """Other columns are shown."""

        def __init__(self, offset: int) -> None:
            super().__init__()
            self.offset = offset

    def __init__(self) -> None:
        super().__init__()
        self._entries: tuple[Entry, ...] = ()
        self.rows: tuple[RunRow, ...] = ()
        """The rows that are listed."""
        self._texts: dict[int, tuple[RunRow, float, Sequence[str]]] = {}
        """Texts of rows by identity, with the time for which they were made."""
        self._shown_layout: ColumnLayout | None = None
        self._painted: list[object] = []
        self._selected = 0
        self._now = 0.0
        self._offset = 0
        self.hosts = False
        """Whether there are rows of hosts."""
        self.marked: set[str] = set()
        """Keys of the rows that are marked."""

    @property
    def selected(self) -> RunRow | None:
        """The row under the cursor."""
        if not self._entries:
            return None
        entry = self._entries[self._selected]
        return entry if isinstance(entry, RunRow) else None

    @property
    def chosen(self) -> tuple[RunRow, ...]:
        """The marked rows in the order of the list; without marks the selected one."""
        marked = tuple(row for row in self.rows if row.key in self.marked) if self.marked else ()
        selected = self.selected
        return marked or ((selected,) if selected is not None else ())

    @property
    def visible_directories(self) -> tuple[str, ...]:
        """Directories of the runs on the screen."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        shown = self._entries[top : top + height]
        return tuple(entry.directory for entry in shown if isinstance(entry, RunRow) and entry.directory)

    def show(self, entries: tuple[Entry, ...], now: float) -> None:
        """Show rows; the cursor stays on its run. Repaints only if the text on the screen changed."""
        previous = self.selected
        same = entries is self._entries
        self._now = now
        if not same:
            self._entries = entries
            self.rows = tuple(entry for entry in entries if isinstance(entry, RunRow))
            self._find_again(previous)
            self.set_content_size(Size(0, len(entries)))
        self._repaint_if_changed()
        if self.selected != previous:
            self.post_message(self.SelectionChanged())

    def show_time(self, now: float) -> None:
        """Show the same rows at another time."""
        self._now = now
        self._repaint_if_changed()

    def _find_again(self, previous: RunRow | None) -> None:
        """Put the cursor on the row that it was on."""
        if previous is not None:
            matches = (
                index
                for index, entry in enumerate(self._entries)
                if isinstance(entry, RunRow) and entry.key == previous.key
            )
            self._selected = next(matches, self._selected)
        self._selected = self._row_near(min(self._selected, len(self._entries) - 1), 1)
        self._scroll_to_selected()

    def _row_near(self, index: int, step: int) -> int:
        """Return the index of the next row that is no heading, first in the direction of `step`."""
        for direction in (step, -step):
            at = index
            while 0 <= at < len(self._entries):
                if isinstance(self._entries[at], RunRow):
                    return at
                at += direction
        return 0

    def _layout(self) -> ColumnLayout:
        return ColumnLayout.of(self.scrollable_content_region.width, self._offset, hosts=self.hosts)

    def _cells(self, row: RunRow, layout: ColumnLayout) -> Sequence[str]:
        """Return a row's texts; those of an ended run do not depend on the time, and are made once."""
        if layout != self._shown_layout or len(self._texts) > _KEPT:
            self._shown_layout = layout
            self._texts.clear()
        kept = self._texts.get(id(row))
        if kept is not None and kept[0] is row and (kept[1] == self._now or not row.live):
            return kept[2]
        if kept is not None and kept[0] is row:
            cells = layout.with_time(kept[2], row, self._now)
        else:
            cells = layout.cells(row, self._now)
        self._texts[id(row)] = (row, self._now, cells)
        return cells

    def _repaint_if_changed(self) -> None:
        top = self.scroll_offset.y
        shown = self._entries[top : top + self.scrollable_content_region.height]
        layout = self._layout()
        painted: list[object] = [
            self._cells(entry, layout) if isinstance(entry, RunRow) else entry for entry in shown
        ]
        if painted != self._painted:
            self._painted = painted
            self.refresh()

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self._repaint_if_changed()
        self._scroll_to_selected()

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        width = self.scrollable_content_region.width
        index = self.scroll_offset.y + y
        if index >= len(self._entries):
            return Strip.blank(width, self.base)
        entry = self._entries[index]
        segments = self._heading(entry) if isinstance(entry, GroupHeading) else self._row(entry, index)
        length = sum(cell_len(item.text) for item in segments)
        return Strip(segments, length).crop_extend(0, width, self.base)

    def _heading(self, heading: GroupHeading) -> list[Segment]:
        base = self.base
        live = f", {heading.live} active" if heading.live else ""
        title, quiet = base + self.ink("runs--group"), base + self.ink("runs--quiet")
        return [
            Segment(f" ▾ {heading.title}", title),
            Segment(f"  {plural(heading.rows, heading.noun)}{live}", quiet),
        ]

    def _row(self, row: RunRow, index: int) -> list[Segment]:
        base = self.base
        name = _CLASSES[row.state] if row.state else _STATELESS.get(row.state_word, "runs--quiet")
        quiet, style, mark = (base + self.ink(part) for part in ("runs--quiet", name, "runs--mark"))
        if index == self._selected:
            base = quiet = style = mark = self.get_component_rich_style("runs--cursor")
        state, title, *rest = self._cells(row, self._layout())
        sign = _MARK if row.key in self.marked else " "
        return [
            Segment(sign, mark),
            Segment(state[1:], style),
            Segment(f" {title} ", base),
            Segment(" ".join(rest), quiet),
        ]

    def _select(self, index: int, step: int = 1) -> None:
        index = self._row_near(min(max(index, 0), max(len(self._entries) - 1, 0)), step)
        if index != self._selected:
            self._selected = index
            self._scroll_to_selected()
            self.refresh()
            self.post_message(self.SelectionChanged())

    def _scroll_to_selected(self) -> None:
        top, height = self.scroll_offset.y, max(self.scrollable_content_region.height, 1)
        if self._selected < top:
            above = self._selected - 1
            heading = above >= 0 and isinstance(self._entries[above], GroupHeading)
            self.scroll_to(y=above if heading else self._selected, animate=False)
        elif self._selected >= top + height:
            self.scroll_to(y=self._selected - height + 1, animate=False)

    def toggle_mark(self) -> None:
        """Mark the selected row, or take its mark away, and go on to the next row."""
        row = self.selected
        if row is not None:
            self.marked ^= {row.key}
            self.refresh()
            self._select(self._selected + 1)
            self.post_message(self.SelectionChanged())

    def set_marks(self, keys: set[str]) -> None:
        """Mark these rows and no others."""
        self.marked = keys
        self.refresh()
        self.post_message(self.SelectionChanged())

    def on_click(self, event: Click) -> None:
        """Select the row under the pointer; open it if it is selected already."""
        index = self.scroll_offset.y + event.y
        if index >= len(self._entries) or isinstance(self._entries[index], GroupHeading):
            return
        if index == self._selected:
            self.post_message(self.RowOpened())
        self._select(index)

    def action_cursor(self, step: int) -> None:
        """Go a row up or down."""
        self._select(self._selected + step, step)

    def action_page(self, direction: int) -> None:
        """Go a page up or down."""
        page = max(self.scrollable_content_region.height - 1, 1)
        self._select(self._selected + direction * page, direction)

    def action_edge(self, direction: int) -> None:
        """Go to the first or the last row."""
        self._select(len(self._entries) if direction > 0 else 0, -direction)

    def action_columns(self, step: int) -> None:
        """Show further columns in the place of the first ones, or the first ones again."""
        offset = min(max(self._offset + step, 0), LAST_OFFSET)
        if offset != self._offset and ColumnLayout.of(self.size.width, offset).columns:
            self._offset = offset
            self._repaint_if_changed()
            self.refresh()
            self.post_message(self.ColumnsMoved(offset))
