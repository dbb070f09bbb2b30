"""The line above a log: which logs there are, and how the shown one stands; and the line of its filter."""

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


def labels_of(logs: Sequence[LogRef]) -> list[str]:
    """Return what each log is called beside others: its role, numbered where several have it."""
    there = Counter(log.role for log in logs)
    numbers: Counter[Role] = Counter()
    labels = []
    for log in logs:
        numbers[log.role] += 1
        number = f" {numbers[log.role]}" if there[log.role] > 1 else ""
        labels.append(f"{ROLE_TITLES[log.role]}{number}")
    return labels


class LogTabs(Widget):
    """One line: the roles that have logs, and how the shown one stands."""

    auto_links = False

    class Chosen(Message):
        """A role was clicked; None for all logs as one."""

        def __init__(self, role: Role | None) -> None:
            super().__init__()
            self.role = role

    def __init__(self) -> None:
        super().__init__()
        self._logs: tuple[LogRef, ...] = ()
        self._shown: LogRef | None = None
        self._status = ""
        self._ends: list[tuple[int, Role | None]] = []

    def show(self, logs: tuple[LogRef, ...], shown: LogRef | None, status: str) -> None:
        """Show; `shown` is None for all logs as one. Repaints only if something changed."""
        if (logs, shown, status) != (self._logs, self._shown, self._status):
            self._logs, self._shown, self._status = logs, shown, status
            self.refresh()

    def render(self) -> Content:
        """Return the line."""
        parts: list[tuple[str, str]] = []
        self._ends = []
        width = 0
        roles: list[Role | None] = [*dict.fromkeys(log.role for log in self._logs)]
        for role in [*roles, None] if len(self._logs) > 1 else roles:
            active = role is (self._shown.role if self._shown is not None else None)
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
        place = f"{same.index(self._shown) + 1}/" if self._shown in same else ""
        return f"{ROLE_TITLES[role]} {place}{len(same)}"

    def on_click(self, event: Click) -> None:
        """Choose the role under the pointer."""
        hit = next((role for end, role in self._ends if event.x < end), ...)
        if not isinstance(hit, type(...)):
            self.post_message(self.Chosen(hit))


class FilterLine(Widget):
    """One line: what the shown lines have in common, and how to see all again. Not there without a filter."""

    auto_links = False

    def __init__(self) -> None:
        super().__init__()
        self._said: tuple[str, ...] = ()
        self.display = False

    def show(self, said: tuple[str, ...]) -> None:
        """Show what is filtered for."""
        if said != self._said:
            self._said = said
            self.display = bool(said)
            self.refresh()

    def render(self) -> Content:
        """Return the line."""
        hint = "x shows all"
        room = self.size.width - len(hint) - 3
        said = Content.assemble((" only ", "bold"), (" · ".join(self._said), "$text-warning"))
        said = said.truncate(max(room, 0), ellipsis=True)
        return Content.assemble(said, " " * max(room - said.cell_length, 0), ("  " + hint, "dim"))
