"""The picker of logs: those that fail, are silent or missing first; typing filters, several can be opened."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from launcher.logs.log_survey import LogHealth, SurveyedLog, read_entries, read_hints, survey
from launcher.logs.sources import LogFile
from launcher.transports.base import Transport
from recipes.errors import ExplainedError
from tui.background import call_on, in_background
from tui.formatting import plural
from tui.logview.layouts import PANE_LIMIT
from tui.run_view import LogRef, RunView
from tui.screens.picker_rows import HEALTH_MARKS, LogMatcher, RowLayout, log_row
from tui.widgets.paged_options import PagedOptions


class LogPicker(ModalScreen[tuple[LogRef, ...] | None]):
    """All logs of a run; returns those to open, None where it is dismissed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("enter", "open", "Open", show=False, priority=True),
        Binding("tab", "mark", "Mark", show=False, priority=True),
        Binding("f2", "open_all", "Open all", show=False, priority=True),
        Binding("f1", "app.help", "Help", show=False),
        *(
            Binding(key, f"move('{action}')", action, show=False, priority=True)
            for key, action in (
                ("up", "cursor_up"), ("down", "cursor_down"), ("pageup", "page_up"),
                ("pagedown", "page_down"), ("home", "first"), ("end", "last"),
            )
        ),
    ]  # fmt: skip

    def __init__(
        self,
        view: RunView,
        shown: LogRef | None,
        transport: Transport | None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._now = now
        self._view = view
        self._shown = shown.path if shown is not None else ""
        self._transport = transport
        self._refs = {log.path: log for log in view.logs}
        self._files = [LogFile(log.name, log.path, log.role) for log in view.logs]
        # Before anything of the logs is read: what their names and the findings say.
        self._logs = survey(self._files, None, view.findings, view.nodes)
        self._matcher = LogMatcher(self._logs)
        self._rows: list[SurveyedLog] = []
        self._marked: dict[str, LogRef] = {}
        self._moved = False
        self._cursor: int | None = None
        """Row that has the cursor's mark."""
        self._layout = RowLayout.of(self._logs, 0)
        self._typed = ""
        self.field = Input(placeholder="type a part of a node, rank, role or name", compact=True)
        self.field.cursor_blink = False  # each blink is sent to the terminal
        self.list = PagedOptions(compact=True)
        self._note_line = Static(Content(""), id="log-picker-note")

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(id="log-picker") as box:
            box.border_title = Content("Logs")
            box.border_subtitle = Content("enter opens · tab marks several · F2 opens all · esc or q closes")
            yield self.field
            yield self.list
            yield self._note_line

    def on_mount(self) -> None:
        """Show the logs as they are known; their ages, nodes and ranks are read meanwhile."""
        self.field.focus()
        self._fill()
        if self._transport is not None:
            in_background(self._read, "log survey", self._failed)

    def _read(self) -> None:
        """Read directory entries and the logs' beginnings, on a thread."""
        assert self._transport is not None
        entries = read_entries(self._transport, self._files)
        hints = read_hints(self._transport, self._files)
        logs = survey(self._files, entries, self._view.findings, self._view.nodes, hints)
        call_on(self, lambda: self._show(logs))

    def _failed(self, error: ExplainedError) -> None:
        call_on(self, lambda: self._note(error.what))

    def _show(self, logs: list[SurveyedLog]) -> None:
        self._logs, self._matcher = logs, LogMatcher(logs)
        self._fill()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the logs that match what was typed; q alone dismisses, as in other dialogs."""
        event.stop()
        if event.value == "q" and not self._typed:
            self.dismiss(None)
            return
        self._typed = event.value
        self._moved = False
        self._fill()

    def _fill(self) -> None:
        index = self.list.highlighted
        current = self._rows[index].name if self._moved and index is not None else None
        self._rows = self._matcher.matching(self.field.value)
        self._layout = RowLayout.of(self._logs, self._width)
        names = [log.name for log in self._rows]
        first = self._first_index() if names else None
        self._cursor = names.index(current) if current in names else first
        self.list.clear_options()
        self.list.add_options([Option(self._row(index)) for index in range(len(self._rows))])
        self.list.highlighted = self._cursor
        self._note("")

    @property
    def _width(self) -> int:
        """Columns of a row: the dialog's, without its frame, padding and scroll bar."""
        return max(min(self.app.size.width * 9 // 10, 140) - 9, 24)

    def on_resize(self) -> None:
        """Lay the rows out again."""
        self._fill()

    def _first_index(self) -> int:
        """Return the row to begin with: the first log that is not well, else the one that is shown."""
        if self.field.value or self._rows[0].health is not LogHealth.WELL:
            return 0
        return next((index for index, log in enumerate(self._rows) if log.path == self._shown), 0)

    def _row(self, index: int) -> Content:
        log = self._rows[index]
        current = index == self._cursor
        return log_row(log, self._now(), self._layout, current=current, marked=log.path in self._marked)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Move the cursor's mark: without colour nothing else shows it."""
        event.stop()
        before, self._cursor = self._cursor, self.list.highlighted
        for index in (before, self._cursor):
            if index is not None and index < len(self._rows):
                self.list.replace_option_prompt_at_index(index, self._row(index))

    def _note(self, problem: str) -> None:
        unwell = [log for log in self._logs if log.health < LogHealth.WARNING]
        counts = [
            f"{sum(log.health is health for log in unwell)} {HEALTH_MARKS[health][0][2:]}"
            for health in LogHealth
            if any(log.health is health for log in unwell)
        ]
        text = problem or " · ".join([f"{len(self._rows)} of {plural(len(self._logs), 'log')}", *counts])
        marked = f" · {len(self._marked)} marked" if self._marked else ""
        self._note_line.update(Content.assemble((text + marked, "dim")))

    def action_move(self, action: str) -> None:
        """Move the cursor; the input field keeps the keys."""
        self._moved = True
        if self.list.scrollable_content_region.width:  # a list without room has no lines to page through
            getattr(self.list, f"action_{action}")()

    def action_mark(self) -> None:
        """Mark the log for opening, or not, and go to the next one."""
        index = self.list.highlighted
        if index is None or not (log := self._rows[index]).path:
            return
        if self._marked.pop(log.path, None) is None and len(self._marked) < PANE_LIMIT:
            self._marked[log.path] = self._ref(log)
        self.list.replace_option_prompt_at_index(index, self._row(index))
        self.action_move("cursor_down")
        self._note("")

    def action_open(self) -> None:
        """Open the marked logs, or the one under the cursor."""
        index = self.list.highlighted
        if self._marked:
            self.dismiss(tuple(self._marked.values()))
        elif index is not None and self._rows:
            log = self._rows[index]
            if log.path:
                self.dismiss((self._ref(log),))
            else:
                self._note(f"{log.name}: {log.reason}")

    def action_open_all(self) -> None:
        """Open all logs that match, as many as there are panes."""
        logs = [self._ref(log) for log in self._rows if log.path]
        if logs:
            self.dismiss(tuple(logs[:PANE_LIMIT]))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the log that was clicked."""
        event.stop()
        self.action_open()

    def action_leave(self) -> None:
        """Dismiss."""
        self.dismiss(None)

    def _ref(self, log: SurveyedLog) -> LogRef:
        """Return the log with the node and ranks that were read."""
        ref = self._refs[log.path]
        return LogRef(ref.name, ref.path, ref.role, log.node or ref.node, log.ranks)
