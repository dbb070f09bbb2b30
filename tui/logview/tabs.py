"""The lines above logs: tabs, the title of a pane, and the active filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget

from launcher.logs.events import Role
from tui.run_view import LogRef

ROLE_TITLES = {
    Role.DRIVER: "driver",
    Role.HEAD: "head",
    Role.WORKER: "worker",
    Role.SLURM: "launcher",
    Role.COMPANION: "companion",
}


def titles_of(log: LogRef) -> tuple[str, str]:
    """Return the long and the short title of a log's pane.

    Role, node and ranks where known, and its file; the short one is without the file where the node is known.
    """
    place = " · ".join(part for part in (log.node, log.ranks) if part)
    role = f"{ROLE_TITLES[log.role]} {place}" if place else ROLE_TITLES[log.role]
    long = f"{role}  {log.name.rpartition('/')[2]}"
    return long, role if place else long


def labels_of(logs: Sequence[LogRef]) -> list[str]:
    """Return a label for each log: its role, numbered where several logs have it."""
    totals = Counter(log.role for log in logs)
    numbers: Counter[Role] = Counter()
    labels = []
    for log in logs:
        numbers[log.role] += 1
        number = f" {numbers[log.role]}" if totals[log.role] > 1 else ""
        labels.append(f"{ROLE_TITLES[log.role]}{number}")
    return labels


class LogTabs(Widget):
    """One line: the roles that have logs, and the status of the log that is shown."""

    auto_links = False

    class Clicked(Message):
        """A role was clicked; None for all logs merged."""

        def __init__(self, role: Role | None) -> None:
            super().__init__()
            self.role = role

    def __init__(self) -> None:
        super().__init__()
        self._logs: tuple[LogRef, ...] = ()
        self._shown: LogRef | None = None
        self._merged = False
        self._status = ""
        self._ends: list[tuple[int, Role | None]] = []

    def show(
        self, logs: tuple[LogRef, ...], shown: LogRef | None, status: str, *, merged: bool = False
    ) -> None:
        """Show tabs and status; repaints only if something changed."""
        if (logs, shown, status, merged) != (self._logs, self._shown, self._status, self._merged):
            self._logs, self._shown, self._status, self._merged = logs, shown, status, merged
            self.refresh()

    def render(self) -> Content:
        """Return tabs and status."""
        parts: list[tuple[str, str]] = []
        self._ends = []
        width = 0
        roles: list[Role | None] = [*dict.fromkeys(log.role for log in self._logs)]
        for role in [*roles, None] if len(self._logs) > 1 else roles:
            active = self._merged if role is None else self._shown is not None and role is self._shown.role
            text = f"{'▸' if active else ' '}{self._title(role)} "
            parts.append((text, "bold $text-primary" if active else "dim"))
            width += cell_len(text)
            self._ends.append((width, role))
        room = self.size.width - width - 1
        status = Content.assemble((self._status, "$text-warning" if "paused" in self._status else "dim"))
        status = status.truncate(max(room, 0), ellipsis=True)
        return Content.assemble(*parts, " " * max(room - status.cell_length, 0), status)

    def _title(self, role: Role | None) -> str:
        if role is None:
            return "all"
        same = [log for log in self._logs if log.role is role]
        if len(same) == 1:
            return ROLE_TITLES[role]
        number = f"{same.index(self._shown) + 1}/" if self._shown in same else ""
        return f"{ROLE_TITLES[role]} {number}{len(same)}"

    def on_click(self, event: Click) -> None:
        """Select the role under the pointer."""
        hit = next((role for end, role in self._ends if event.x < end), ...)
        if not isinstance(hit, type(...)):
            self.post_message(self.Clicked(hit))


class PaneTitle(Widget):
    """One line above the lines of a pane: its log, with node and ranks, and its status."""

    auto_links = False

    def __init__(self) -> None:
        super().__init__()
        self._titles = ("", "")
        self._status = ""
        self._active = False

    def show_log(self, log: LogRef | None) -> None:
        """Show a log's title; None for several, merged."""
        titles = titles_of(log) if log is not None else ("all by time", "all by time")
        self._set(titles, self._status, self._active)

    def show_status(self, status: str) -> None:
        """Show the status of the log."""
        self._set(self._titles, status, self._active)

    def show_active(self, active: bool) -> None:
        """Show whether the pane has the keys."""
        self._set(self._titles, self._status, active)

    def _set(self, titles: tuple[str, str], status: str, active: bool) -> None:
        if (titles, status, active) != (self._titles, self._status, self._active):
            self._titles, self._status, self._active = titles, status, active
            self.refresh()

    def render(self) -> Content:
        """Return title and status; where room is short, the status loses its last parts first."""
        width = self.size.width
        mark = "▸" if self._active else " "
        parts = self._status.split(" · ")
        long, short = self._titles
        text = long if cell_len(long) + cell_len(parts[0]) + 4 <= width else short
        least = min(cell_len(text) + 3, max(width * 2 // 3, 12))
        while len(parts) > 1 and cell_len(" · ".join(parts)) > width - least:
            parts.pop()
        words = " · ".join(parts)
        status = Content.assemble((words, "$text-warning" if "paused" in words else "dim"))
        status = status.truncate(max(width - least, 0), ellipsis=True)
        style = "bold $text-primary" if self._active else "bold dim"
        title = Content.assemble((f"{mark}{text}", style))
        title = title.truncate(max(width - status.cell_length - 2, 0), ellipsis=True)
        gap = max(width - title.cell_length - status.cell_length - 1, 1)
        return Content.assemble(title, " " * gap, status)


class FilterLine(Widget):
    """One line: the filter's terms, and the key that clears it. Hidden without a filter."""

    auto_links = False

    def __init__(self) -> None:
        super().__init__()
        self._terms: tuple[str, ...] = ()
        self.display = False

    def show(self, terms: tuple[str, ...]) -> None:
        """Show the filter's terms."""
        if terms != self._terms:
            self._terms = terms
            self.display = bool(terms)
            self.refresh()

    def render(self) -> Content:
        """Return the terms and the hint."""
        hint = "x shows all lines"
        room = self.size.width - len(hint) - 3
        terms = Content.assemble((" only ", "bold"), (" · ".join(self._terms), "$text-warning"))
        terms = terms.truncate(max(room, 0), ellipsis=True)
        return Content.assemble(terms, " " * max(room - terms.cell_length, 0), ("  " + hint, "dim"))
