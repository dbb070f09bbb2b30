"""Commands on the logs of the monitor."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from textual.app import SuspendNotSupported
from textual.screen import Screen

from launcher.errors import InputError
from launcher.logs.events import FindingSeen, Role
from launcher.text import clean
from launcher.transports.base import Transport
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.clipboard import copy_to_tmux, fitting, in_tmux
from tui.formatting import plural
from tui.logview.pane import LogPane
from tui.logview.prompt import PromptKind
from tui.logview.tabs import ROLE_TITLES
from tui.opening import ActionFailed
from tui.paging import page, pager_command
from tui.screens.dialogs import ChoiceDialog, DialogChoice, error_dialog


class LogCommands:
    """The commands of a log pane, by the names in `tui.commands`.

    `show_pane` brings the pane to the front; `findings` and `transport` return those of the run at the time
    of the call (no transport before the run is open).
    """

    def __init__(
        self,
        screen: Screen[None],
        pane: LogPane,
        *,
        show_pane: Callable[[], None],
        findings: Callable[[], Sequence[FindingSeen]],
        transport: Callable[[], Transport | None],
    ) -> None:
        self._screen = screen
        self._pane = pane
        self._show_pane = show_pane
        self._findings = findings
        self._transport = transport
        self._finding: tuple[str, str, int] | None = None
        """Key of the finding visited last."""
        self.commands: dict[str, Callable[..., None]] = {
            "show_log": self._show_log,
            "merge_logs": self._merge_logs,
            "choose_log": self._choose_log,
            "search": partial(self._open_prompt, PromptKind.SEARCH),
            "go_to": partial(self._open_prompt, PromptKind.GO_TO),
            "filter": partial(self._open_prompt, PromptKind.FILTER),
            "next_level": self._next_level,
            "show_all_lines": pane.show_all_lines,
            "next_match": self._next_match,
            "toggle_follow": self._toggle_follow,
            "toggle_wrap": self._toggle_wrap,
            "next_finding": self._next_finding,
            "copy_lines": self._copy_lines,
            "open_pager": self._open_pager,
        }

    def run(self, command: str, *arguments: Any) -> None:  # noqa: ANN401 - as the table of commands has them
        """Run a command."""
        self.commands[command](*arguments)

    def enabled(self, command: str) -> bool:
        """Return whether a command is valid now."""
        if command == "show_all_lines":
            return self._pane.filtered
        if command == "merge_logs":
            return len(self._pane.logs) > 1
        if command == "next_finding":
            return bool(self._located_findings())
        return command == "show_log" or bool(self._pane.logs)

    def show_tab(self, role: Role | None) -> None:
        """Show the log of a role, or all logs merged (None)."""
        if role is None:
            self._merge_logs()
        else:
            self._show_log(role.value)

    def _show_log(self, role: str) -> None:
        if self._pane.choose_role(Role(role)):
            self._show_pane()
        else:
            self._screen.notify(f"no {ROLE_TITLES[Role(role)]} log yet", markup=False)

    def _merge_logs(self) -> None:
        self._pane.merge()
        self._show_pane()

    def _choose_log(self) -> None:
        logs = self._pane.logs
        choices = [
            DialogChoice("", f"{ROLE_TITLES[log.role]:<10} {log.name}", str(number))
            for number, log in enumerate(logs)
        ]

        def choose(number: str | None) -> None:
            if number is not None:
                self._pane.choose(logs[int(number)])
                self._show_pane()

        shown = self._pane.shown
        dialog = ChoiceDialog("Logs", "", choices, chosen=logs.index(shown) if shown in logs else 0)
        self._screen.app.push_screen(dialog, choose)

    def _open_prompt(self, kind: PromptKind) -> None:
        self._show_pane()
        self._pane.open_prompt(kind)

    def _next_level(self) -> None:
        self._show_pane()
        self._pane.next_level()

    def _next_match(self, direction: int) -> None:
        self._show_pane()
        self._pane.text.navigator.next_match(direction)

    def _toggle_follow(self) -> None:
        text = self._pane.text
        text.set_follow(not text.follow)

    def _toggle_wrap(self) -> None:
        self._show_pane()
        self._pane.text.set_wrapped(not self._pane.text.wrapped)

    def _next_finding(self, direction: int) -> None:
        """Go to the next finding in the order of the logs; to the cause first."""
        findings = self._located_findings()
        if not findings:
            return
        keys = [_key(finding) for finding in findings]
        if self._finding in keys:
            index = (keys.index(self._finding) + direction) % len(findings)
        else:
            index = next((index for index, finding in enumerate(findings) if finding.root), 0)
        finding = findings[index]
        self._finding = _key(finding)
        self._show_pane()
        cause = ", the cause" if finding.root else ""
        note = f"finding {index + 1} of {len(findings)}{cause}: {finding.title}"
        if not self._pane.go_to_finding(finding, note):
            self._screen.notify(f"{finding.source.log} is not among the logs", markup=False)

    def _located_findings(self) -> list[FindingSeen]:
        """Return the findings that have a line in a log, in the order of the logs."""
        names = [log.name for log in self._pane.logs]

        def order(finding: FindingSeen) -> tuple[int, int]:
            name = clean(finding.source.log)
            return (names.index(name) if name in names else len(names), finding.source.offset)

        return sorted((finding for finding in self._findings() if finding.source.line > 0), key=order)

    def _copy_lines(self) -> None:
        """Copy the current line where that is visible, else all visible lines."""
        text = self._pane.text
        line = text.active_line()
        lines = [line] if line is not None and text.navigator.current_visible else text.visible_lines()
        if not lines:
            return
        full_text = "\n".join(line.text for line in lines)
        copied = fitting(full_text)
        count = plural(copied.count("\n") + 1, "line")
        summary = count if copied == full_text else f"{count} (size limit reached)"
        if not in_tmux(os.environ):
            self._copy_to_terminal(copied, summary)
            return

        def copy() -> None:
            done = self._copied_to_tmux if copy_to_tmux(copied) else self._copy_to_terminal
            call_on(self._screen, lambda: done(copied, summary))

        in_background(copy, "copy", self._post_failure)

    def _copied_to_tmux(self, _: str, summary: str) -> None:
        self._screen.notify(f"copied {summary} to tmux's buffer", markup=False)

    def _copy_to_terminal(self, text: str, summary: str) -> None:
        self._screen.app.copy_to_clipboard(text)
        self._screen.notify(f"copied {summary}, if your terminal supports OSC 52", markup=False)

    def _open_pager(self) -> None:
        """Open the log in the user's pager, at the line that is shown."""
        text = self._pane.text
        path, offset, line = text.file_position()
        transport = self._transport()
        if not path or transport is None:
            return
        position = None if text.follow else (offset, line)

        def prepare() -> None:
            if transport.host != platform.node():
                raise InputError(
                    f"the log is on {transport.host}; a pager can only be opened for local files", where=path
                )
            command = pager_command(os.environ, path, position)
            call_on(self._screen, lambda: self._run_pager(command))

        in_background(prepare, "pager", self._post_failure)

    def _run_pager(self, command: list[str]) -> None:
        """Leave the terminal to the pager until it exits."""
        app = self._screen.app
        try:
            with app.suspend():
                code = page(command, os.environ)
        except SuspendNotSupported:
            app.push_screen(error_dialog(InputError("a pager can be opened only from a terminal")))
            return
        except ExplainedError as error:
            app.push_screen(error_dialog(error))
            return
        if code:
            self._screen.notify(f"'{command[0]}' exited with code {code}", markup=False)

    def _post_failure(self, error: ExplainedError) -> None:
        post(self._screen, ActionFailed(error))


def _key(finding: FindingSeen) -> tuple[str, str, int]:
    return finding.id, finding.source.log, finding.source.line
