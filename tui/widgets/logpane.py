"""The logs of a run: a line of tabs and status, the log's lines, and the search field."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from launcher.logs.events import Role
from launcher.transports.base import Transport
from tui.view import LogRef
from tui.widgets.logview import LogView
from tui.words import plural, size, ticking

ROLE_TITLES = {
    Role.DRIVER: "driver",
    Role.HEAD: "head",
    Role.WORKER: "worker",
    Role.SLURM: "launcher",
    Role.COMPANION: "companion",
}

_TELLING = (Role.DRIVER, Role.SLURM, Role.HEAD, Role.WORKER, Role.COMPANION)
"""Which log is shown as long as none was chosen: the driver's as soon as there is one."""


class LogTabs(Widget):
    """One line: the roles that have logs, and how the shown one stands."""

    auto_links = False

    class Chosen(Message):
        """A role was clicked."""

        def __init__(self, role: Role) -> None:
            super().__init__()
            self.role = role

    def __init__(self) -> None:
        super().__init__()
        self._logs: tuple[LogRef, ...] = ()
        self._shown: LogRef | None = None
        self._status = ""
        self._ends: list[tuple[int, Role]] = []

    def show(self, logs: tuple[LogRef, ...], shown: LogRef | None, status: str) -> None:
        """Show; repaints only if something changed."""
        if (logs, shown, status) != (self._logs, self._shown, self._status):
            self._logs, self._shown, self._status = logs, shown, status
            self.refresh()

    def render(self) -> Content:
        """Return the line."""
        parts: list[tuple[str, str]] = []
        self._ends = []
        width = 0
        for role in dict.fromkeys(log.role for log in self._logs):
            active = self._shown is not None and self._shown.role is role
            text = f"{'▸' if active else ' '}{self._title(role)} "
            parts.append((text, "bold $text-primary" if active else "dim"))
            width += cell_len(text)
            self._ends.append((width, role))
        room = self.size.width - width - 1
        status = Content.assemble((self._status, "$text-warning" if "paused" in self._status else "dim"))
        status = status.truncate(max(room, 0), ellipsis=True)
        return Content.assemble(*parts, " " * max(room - status.cell_length, 0), status)

    def _title(self, role: Role) -> str:
        same = [log for log in self._logs if log.role is role]
        if len(same) == 1:
            return ROLE_TITLES[role]
        place = f"{same.index(self._shown) + 1}/" if self._shown in same else ""
        return f"{ROLE_TITLES[role]} {place}{len(same)}"

    def on_click(self, event: Click) -> None:
        """Choose the role under the pointer."""
        role = next((role for end, role in self._ends if event.x < end), None)
        if role is not None:
            self.post_message(self.Chosen(role))


class LogPane(Vertical):
    """The logs of a run, one of them shown."""

    class Moved(Message):
        """The pane has another log, or another status: commands may have become valid."""

    def __init__(self) -> None:
        super().__init__()
        self._logs: tuple[LogRef, ...] = ()
        self._shown: LogRef | None = None
        self._chosen = False
        self.tabs = LogTabs()
        self.text = LogView()
        self.field = Input(placeholder="search the log; enter searches, escape leaves", compact=True)

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.tabs
        yield self.text
        self.field.display = False
        yield self.field

    @property
    def logs(self) -> tuple[LogRef, ...]:
        """The logs there are."""
        return self._logs

    @property
    def shown(self) -> LogRef | None:
        """The log that is shown."""
        return self._shown

    def read_through(self, transport: Transport) -> None:
        """Begin to read."""
        self.text.read_through(transport)

    def set_logs(self, logs: tuple[LogRef, ...], *, settled: bool) -> None:
        """Take the run's logs; shows the first one if none is shown yet."""
        self.text.settle(settled)
        if logs == self._logs:
            return
        self._logs = logs
        if not self._chosen:
            telling = next((log for role in _TELLING for log in logs if log.role is role), None)
            if telling is not None and telling != self._shown:
                self._show(telling)
        self.update_status()

    def choose(self, log: LogRef) -> None:
        """Show a log, and stay with it."""
        self._chosen = True
        self._show(log)

    def _show(self, log: LogRef) -> None:
        self._shown = log
        self.text.open(log.path)
        self.update_status()
        self.post_message(self.Moved())

    def choose_role(self, role: Role) -> bool:
        """Show the log of a role; of several, the next one each time. False when there is none."""
        same = [log for log in self._logs if log.role is role]
        if not same:
            return False
        place = same.index(self._shown) + 1 if self._shown in same else 0
        self.choose(same[place % len(same)])
        return True

    def open_search(self) -> None:
        """Show the search field."""
        self.field.display = True
        # At once, not when the loop gets to it: keys typed right after belong to the field.
        self.screen.set_focus(self.field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search, and give the keys back to the log."""
        event.stop()
        self.close_search()
        self.text.search(event.value)

    def close_search(self) -> None:
        """Hide the search field."""
        self.field.display = False
        self.screen.set_focus(self.text)

    def on_log_view_changed(self) -> None:
        """Say how the log stands."""
        self.update_status()

    def update_status(self) -> None:
        """Say how the log stands now."""
        self.tabs.show(self._logs, self._shown, self._status())

    def _status(self) -> str:
        text = self.text
        extent = text.extent
        if self._shown is None:
            return "no log yet"
        if extent.problem:
            return f"! {extent.problem}"
        if text.unanswered:
            return f"! no answer from the file system for {ticking(text.unanswered)}"
        parts = [text.note] if text.note else []
        if not text.follow:
            new = f", {plural(text.new_lines, 'new line')}" if text.new_lines else ""
            parts.append(f"paused{new}")
        else:
            parts.append("following")
        if extent.counted:
            where = f"{text.scroll_offset.y + 1:,}/" if not text.follow else ""
            parts.append(f"{where}{plural(extent.lines, 'line')}")
        else:
            parts.append(f"counting lines {extent.counted_bytes / max(extent.bytes, 1):.0%}")
        parts.append(size(extent.bytes))
        return " · ".join(parts)
