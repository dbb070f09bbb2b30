"""Commands on the logs of the monitor."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

from textual.app import SuspendNotSupported
from textual.screen import Screen

from launcher.errors import InputError
from launcher.logs.events import FindingSeen, Role, Source
from launcher.text import clean
from launcher.transports.base import Transport
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.clipboard import copy_to_tmux, fitting, in_tmux
from tui.formatting import plural
from tui.logview.layouts import PaneLayout
from tui.logview.panes import LogPanes
from tui.logview.prompt import PromptKind
from tui.logview.tabs import ROLE_TITLES
from tui.opening import ActionFailed
from tui.paging import page, pager_command
from tui.run_view import LogRef, RunView, TimelineEntry
from tui.screens.dialogs import error_dialog
from tui.screens.log_picker import LogPicker

_RESIZES = {"taller": (0, 1), "shorter": (0, -1), "wider": (1, 0), "narrower": (-1, 0)}
"""Steps in columns and rows."""


class LogCommands:
    """The commands of the log panes, by the names in `tui.commands`.

    `show_logs` brings the panes to the front; `view` and `transport` return those of the run at the time of
    the call (no transport before the run is open).
    """

    def __init__(
        self,
        screen: Screen[None],
        panes: LogPanes,
        *,
        show_logs: Callable[[], None],
        view: Callable[[], RunView],
        transport: Callable[[], Transport | None],
        now: Callable[[], float],
    ) -> None:
        self._screen = screen
        self._panes = panes
        self._show_logs = show_logs
        self._view = view
        self._transport = transport
        self._now = now
        self._visited: tuple[str, str, int] | None = None
        """Key of the finding or milestone visited last."""
        self.commands: dict[str, Callable[..., None]] = {
            "show_log": self._show_log,
            "merge_logs": self._merge_logs,
            "choose_log": self._choose_log,
            "search": partial(self._open_prompt, PromptKind.SEARCH),
            "go_to": partial(self._open_prompt, PromptKind.GO_TO),
            "filter": partial(self._open_prompt, PromptKind.FILTER),
            "next_level": self._next_level,
            "show_all_lines": lambda: panes.focused.show_all_lines(),
            "next_match": self._next_match,
            "toggle_across": self._toggle_across,
            "toggle_follow": self._toggle_follow,
            "toggle_wrap": self._toggle_wrap,
            "next_finding": self._next_finding,
            "next_milestone": self._next_milestone,
            "next_layout": self._next_layout,
            "set_layout": self._set_layout,
            "zoom": self._zoom,
            "next_pane": self._next_pane,
            "resize": self._resize,
            "equalise": self._equalise,
            "copy_lines": self._copy_lines,
            "open_pager": self._open_pager,
        }

    def run(self, command: str, *arguments: Any) -> None:  # noqa: ANN401 - as the table of commands has them
        """Run a command."""
        self.commands[command](*arguments)

    def enabled(self, command: str) -> bool:
        """Return whether a command is valid now."""
        several = len(self._panes.panes) > 1
        match command:
            case "show_all_lines":
                return self._panes.focused.filtered
            case "merge_logs":
                return len(self._panes.logs) > 1
            case "next_finding":
                return bool(self._located_findings())
            case "next_milestone":
                return bool(self._located_milestones())
            case "zoom" | "next_pane" | "resize" | "equalise" | "toggle_across":
                return several
            case "show_log" | "next_layout" | "set_layout":
                return True
            case _:
                return bool(self._panes.logs)

    def show_tab(self, role: Role | None) -> None:
        """Show the log of a role, or all logs merged (None)."""
        if role is None:
            self._merge_logs()
        else:
            self._show_log(role.value)

    def note(self, note: str) -> None:
        """Show a note above the log: a toast would cover its lines."""
        if self._panes.area.region.area:
            self._panes.focused.text.navigator.show_note(note)
        else:
            self._screen.notify(note, markup=False)

    def _show_log(self, role: str) -> None:
        if self._panes.choose_role(Role(role)):
            self._show_logs()
        else:
            self.note(f"no {ROLE_TITLES[Role(role)]} log yet")

    def _merge_logs(self) -> None:
        if self._panes.merged:
            self._panes.leave_merge()
        else:
            self._panes.merge()
        self._show_logs()

    def _choose_log(self) -> None:
        """Open the picker; one chosen log goes into the focused pane, several into a grid."""

        def choose(chosen: tuple[LogRef, ...] | None) -> None:
            if chosen is None or not chosen:
                return
            if len(chosen) == 1:
                self._panes.choose(chosen[0])
            else:
                self._panes.open_grid(chosen)
            self._show_logs()

        picker = LogPicker(self._view(), self._panes.focused.shown, self._transport(), self._now)
        self._screen.app.push_screen(picker, choose)

    def _open_prompt(self, kind: PromptKind) -> None:
        self._show_logs()
        self._panes.focused.open_prompt(kind)

    def _next_level(self) -> None:
        self._show_logs()
        self._panes.focused.next_level()

    def _next_match(self, direction: int) -> None:
        self._show_logs()
        self._panes.next_match(direction)

    def _toggle_across(self) -> None:
        self._show_logs()
        self._panes.toggle_across()

    def _toggle_follow(self) -> None:
        text = self._panes.focused.text
        text.set_follow(not text.follow)

    def _toggle_wrap(self) -> None:
        self._show_logs()
        text = self._panes.focused.text
        text.set_wrapped(not text.wrapped)

    def _next_layout(self, direction: int) -> None:
        self._panes.next_layout(direction)
        self._show_logs()

    def _set_layout(self, layout: str) -> None:
        self._panes.set_layout(PaneLayout(layout))
        self._show_logs()

    def _zoom(self) -> None:
        self._panes.toggle_zoom()
        self._show_logs()

    def _next_pane(self, direction: int) -> None:
        self._panes.focus_next(direction)
        self._show_logs()

    def _resize(self, direction: str) -> None:
        self._panes.resize(*_RESIZES[direction])

    def _equalise(self) -> None:
        self._panes.equalise()

    def _next_finding(self, direction: int) -> None:
        """Go to the next finding in the order of the logs; to the cause first."""
        findings = self._located_findings()
        if not findings:
            return
        begin = next((index for index, finding in enumerate(findings) if finding.root), 0)
        index = self._next_index([_key(finding.id, finding.source) for finding in findings], direction, begin)
        finding = findings[index]
        cause = ", the cause" if finding.root else ""
        note = f"finding {index + 1} of {len(findings)}{cause}: {finding.title}"
        self.go_to(finding.source, note)

    def _next_milestone(self, direction: int) -> None:
        """Go to the line of the next milestone; to the last one reached first."""
        entries = self._located_milestones()
        if entries:
            keys = [_key(entry.id, source) for entry, source in entries]
            entry, _ = entries[self._next_index(keys, direction, len(entries) - 1)]
            self.go_to_milestone(entry)

    def go_to_milestone(self, entry: TimelineEntry) -> None:
        """Go to the line of a milestone; where no line shows it, say so."""
        if entry.source is None:
            self.note(f"{entry.title}: {'no line shows it' if entry.reached else 'not reached'}")
        else:
            self._visited = _key(entry.id, entry.source)
            self.go_to(entry.source, f"milestone: {entry.title}")

    def _next_index(self, keys: list[tuple[str, str, int]], direction: int, begin: int) -> int:
        """Return the index after the place visited last, `begin` where that was another kind of place."""
        index = begin
        if self._visited in keys:
            index = (keys.index(self._visited) + direction) % len(keys)
        self._visited = keys[index]
        return index

    def go_to(self, source: Source, note: str) -> None:
        """Show a line of a log in the pane that it belongs to, with a note."""
        name = clean(source.log)
        log = next((log for log in self._panes.logs if log.name == name), None)
        self._show_logs()
        if log is None:
            self.note(f"{name} is not among the logs")
        else:
            self._panes.go_to(log, source.offset, note)

    def _located_milestones(self) -> list[tuple[TimelineEntry, Source]]:
        """Return the milestones that have a line in a log, in their order."""
        return [(entry, entry.source) for entry in self._view().timeline if entry.source is not None]

    def _located_findings(self) -> list[FindingSeen]:
        """Return the findings that have a line in a log, in the order of the logs."""
        names = [log.name for log in self._panes.logs]

        def order(finding: FindingSeen) -> tuple[int, int]:
            name = clean(finding.source.log)
            return (names.index(name) if name in names else len(names), finding.source.offset)

        return sorted((finding for finding in self._view().findings if finding.source.line > 0), key=order)

    def _copy_lines(self) -> None:
        """Copy the current line where that is visible, else all visible lines."""
        text = self._panes.focused.text
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
        self.note(f"copied {summary} to tmux's buffer")

    def _copy_to_terminal(self, text: str, summary: str) -> None:
        self._screen.app.copy_to_clipboard(text)
        self.note(f"copied {summary}, if your terminal supports OSC 52")

    def _open_pager(self) -> None:
        """Open the log in the user's pager, at the line that is shown."""
        text = self._panes.focused.text
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
            self.note(f"'{command[0]}' exited with code {code}")

    def _post_failure(self, error: ExplainedError) -> None:
        post(self._screen, ActionFailed(error))


def _key(identity: str, source: Source) -> tuple[str, str, int]:
    return identity, source.log, source.line
