"""What can be done with the logs on the monitor."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported
from textual.message import Message
from textual.screen import Screen

from launcher.errors import InputError
from launcher.logs.events import FindingSeen, Role
from launcher.text import clean
from launcher.transports.base import Transport
from recipes.errors import ExplainedError
from tui.background import in_background, post
from tui.clipboard import fitting, give_to_tmux, in_tmux
from tui.formatting import plural
from tui.logview.prompt import PromptKind
from tui.logview.tabs import ROLE_TITLES, LogTabs
from tui.opening import OpenFailed
from tui.paging import page, pager_command
from tui.screens.dialogs import Ask, DialogChoice, tell

if TYPE_CHECKING:
    from tui.logview.pane import LogPane
    from tui.run_view import RunView

NEED_LOGS = (
    "search", "next_match", "toggle_follow", "choose_log", "go_to", "only", "next_level", "copy_lines",
    "page_log", "wrap_lines",
)  # fmt: skip
"""Actions that are valid only where there is a log."""


class Copied(Message):
    """tmux took the text, or did not."""

    def __init__(self, text: str, what: str, taken: bool) -> None:
        super().__init__()
        self.text = text
        self.what = what
        self.taken = taken


class PagerFound(Message):
    """The pager is there; what opens the log in it."""

    def __init__(self, command: list[str]) -> None:
        super().__init__()
        self.command = command


class LogCommands(Screen[None]):
    """The commands of a screen that has a log pane."""

    logs: LogPane
    view: RunView
    _finding: tuple[str, str, int] | None = None
    """The finding gone to last: its id, log and line."""

    def action_show_pane(self, pane: str) -> None:
        """Bring a pane to the front and give it the keys."""
        raise NotImplementedError

    @property
    def transport(self) -> Transport | None:
        """How the logs are read; None before the run is open."""
        raise NotImplementedError

    def log_action_valid(self, action: str) -> bool:
        """Tell whether what an action of these needs is there."""
        if action in NEED_LOGS:
            return bool(self.logs.logs)
        if action == "show_all_lines":
            return self.logs.filtered
        if action == "merge_logs":
            return len(self.logs.logs) > 1
        if action == "next_finding":
            return bool(self._findings())
        return True

    def on_log_tabs_chosen(self, event: LogTabs.Chosen) -> None:
        """Show the log that was clicked."""
        if event.role is None:
            self.action_merge_logs()
        else:
            self.action_show_log(event.role.value)

    def action_show_log(self, role: str) -> None:
        """Show the log of a role."""
        if self.logs.choose_role(Role(role)):
            self.action_show_pane("logs")
        else:
            self.notify(f"there is no {ROLE_TITLES[Role(role)]} log (yet)", markup=False)

    def action_merge_logs(self) -> None:
        """Show all logs as one."""
        self.logs.choose_all()
        self.action_show_pane("logs")

    def action_choose_log(self) -> None:
        """Choose one of all logs."""
        logs = self.logs.logs
        choices = [
            DialogChoice("", f"{ROLE_TITLES[log.role]:<10} {log.name}", str(place))
            for place, log in enumerate(logs)
        ]

        def chosen(place: str | None) -> None:
            if place is not None:
                self.logs.choose(logs[int(place)])
                self.action_show_pane("logs")

        shown = self.logs.shown
        self.app.push_screen(
            Ask("Logs", "", choices, chosen=logs.index(shown) if shown in logs else 0), chosen
        )

    def action_search(self) -> None:
        """Search in the log."""
        self.action_show_pane("logs")
        self.logs.ask(PromptKind.SEARCH)

    def action_go_to(self) -> None:
        """Go to a line or a percentage."""
        self.action_show_pane("logs")
        self.logs.ask(PromptKind.GO)

    def action_only(self) -> None:
        """Show only some lines."""
        self.action_show_pane("logs")
        self.logs.ask(PromptKind.ONLY)

    def action_next_level(self) -> None:
        """Show warnings and errors, then errors, then all lines."""
        self.action_show_pane("logs")
        self.logs.next_level()

    def action_show_all_lines(self) -> None:
        """Show all lines again."""
        self.logs.show_all_lines()

    def action_next_match(self, direction: int) -> None:
        """Go to the next match."""
        self.action_show_pane("logs")
        self.logs.text.next_match(direction)

    def action_toggle_follow(self) -> None:
        """Follow the log's end, or hold it still."""
        text = self.logs.text
        text.set_follow(not text.follow)

    def action_wrap_lines(self) -> None:
        """Let long lines go on in the next row, or beyond the edge."""
        self.action_show_pane("logs")
        self.logs.text.set_wrapped(not self.logs.text.wrapped)

    def action_next_finding(self, direction: int) -> None:
        """Go to the next finding in the logs; to the cause first."""
        finding, place, count = self._next_finding(direction)
        if finding is None:
            return
        self._finding = _key(finding)
        self.action_show_pane("logs")
        cause = ", the cause" if finding.root else ""
        if not self.logs.go_to_finding(finding, f"finding {place + 1} of {count}{cause}: {finding.title}"):
            self.notify(f"{finding.source.log} is not among the logs", markup=False)

    def _findings(self) -> list[FindingSeen]:
        """Return the findings that stand somewhere in a log."""
        return [finding for finding in self.view.findings if finding.source.line > 0]

    def _next_finding(self, direction: int) -> tuple[FindingSeen | None, int, int]:
        names = [log.name for log in self.logs.logs]

        def order(finding: FindingSeen) -> tuple[int, int]:
            name = clean(finding.source.log)
            return (names.index(name) if name in names else len(names), finding.source.offset)

        findings = sorted(self._findings(), key=order)
        if not findings:
            return None, 0, 0
        keys = [_key(finding) for finding in findings]
        if self._finding in keys:
            place = (keys.index(self._finding) + direction) % len(findings)
        else:
            place = next((place for place, finding in enumerate(findings) if finding.root), 0)
        return findings[place], place, len(findings)

    def action_copy_lines(self) -> None:
        """Copy the line gone to, else the lines that are visible."""
        text = self.logs.text
        here = text.here()
        lines = [here] if here is not None and text.at_current else text.in_sight()
        if not lines:
            return
        whole = "\n".join(line.text for line in lines)
        copied = fitting(whole)
        what = plural(copied.count("\n") + 1, "line") + ("" if copied == whole else " (no more fit)")
        if in_tmux(os.environ):
            in_background(
                lambda: post(self, Copied(copied, what, give_to_tmux(copied))),
                "copy",
                lambda error: post(self, OpenFailed(error)),
            )
        else:
            self._copy_to_terminal(copied, what)

    def on_copied(self, event: Copied) -> None:
        """Say what tmux did; where it took nothing, ask the terminal."""
        event.stop()
        if event.taken:
            self.notify(f"copied {event.what}, into tmux's buffer", markup=False)
        else:
            self._copy_to_terminal(event.text, event.what)

    def _copy_to_terminal(self, text: str, what: str) -> None:
        self.app.copy_to_clipboard(text)
        self.notify(f"copied {what}, if your terminal takes text that way (OSC 52)", markup=False)

    def action_page_log(self) -> None:
        """Open the log in the user's pager, at the line that is shown."""
        text = self.logs.text
        path, offset, line = text.file_here()
        transport = self.transport
        if not path or transport is None:
            return

        def find() -> None:
            if transport.host != platform.node():
                raise InputError(
                    f"the log is on {transport.host}, where no pager can be opened from here", where=path
                )
            place = None if text.follow else (offset, line)
            post(self, PagerFound(pager_command(os.environ, path, place)))

        in_background(find, "pager", lambda error: post(self, OpenFailed(error)))

    def on_pager_found(self, event: PagerFound) -> None:
        """Hand the terminal to the pager until it ends."""
        event.stop()
        try:
            with self.app.suspend():
                code = page(event.command, os.environ)
        except SuspendNotSupported:
            self.app.push_screen(tell(InputError("a pager can be opened only from a terminal")))
            return
        except ExplainedError as error:
            self.app.push_screen(tell(error))
            return
        if code:
            self.notify(f"'{event.command[0]}' ended with code {code}", markup=False)


def _key(finding: FindingSeen) -> tuple[str, str, int]:
    return finding.id, finding.source.log, finding.source.line
