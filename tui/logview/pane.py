"""The log pane: tabs and status, the active filter, the lines, and the input line."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from launcher.logs.events import FindingSeen, Role
from launcher.text import clean
from launcher.transports.base import Transport
from tui.formatting import duration, file_size, plural
from tui.logview.match import Level, LineFilterTerm, Severity, TermError, parse_query, parse_term
from tui.logview.navigator import LogPosition
from tui.logview.prompt import LogPrompt, PromptKind, parse_position
from tui.logview.tabs import FilterLine, LogTabs, labels_of
from tui.logview.view import LogView
from tui.run_view import LogRef

_DEFAULT_ROLES = (Role.DRIVER, Role.SLURM, Role.HEAD, Role.WORKER, Role.COMPANION)
"""Roles of the log that is shown until the user chooses one, best first."""


class LogPane(Vertical):
    """The logs of a run: one of them, or all merged."""

    class StatusChanged(Message):
        """Another log or another status: other commands may be valid."""

    def __init__(self) -> None:
        super().__init__()
        self._logs: tuple[LogRef, ...] = ()
        self._shown: LogRef | None = None
        self._merged = False
        self._chosen = False
        self._terms: tuple[LineFilterTerm, ...] = ()
        self._level = Severity.ANY
        self._start: LogPosition | None = None
        """Position of the log when the input line was opened."""
        self.tabs = LogTabs()
        self.filter = FilterLine()
        self.text = LogView()
        self.prompt = LogPrompt()

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.tabs
        yield self.filter
        yield self.text
        yield self.prompt

    @property
    def logs(self) -> tuple[LogRef, ...]:
        """The logs of the run."""
        return self._logs

    @property
    def shown(self) -> LogRef | None:
        """The log that is shown; None while all are merged, or there is none."""
        return None if self._merged else self._shown

    @property
    def merged(self) -> bool:
        """Whether all logs are shown merged."""
        return self._merged

    @property
    def filtered(self) -> bool:
        """Whether a filter is active."""
        return bool(self._terms) or self._level is not Severity.ANY

    def read_through(self, transport: Transport) -> None:
        """Start reading."""
        self.text.read_through(transport)

    def set_logs(self, logs: tuple[LogRef, ...], *, settled: bool) -> None:
        """Set the run's logs; shows a default one until the user chooses."""
        self.text.set_settled(settled)
        if logs == self._logs:
            return
        self._logs = logs
        if self._merged:
            self._show_merged()
        elif not self._chosen:
            default = next((log for role in _DEFAULT_ROLES for log in logs if log.role is role), None)
            if default is not None and default != self._shown:
                self._show(default)
        self.update_status()

    def choose(self, log: LogRef) -> None:
        """Show a log from now on."""
        self._chosen = True
        self._show(log)

    def merge(self) -> None:
        """Show all logs merged, in the order of time."""
        if len(self._logs) > 1:
            self._chosen = self._merged = True
            self._show_merged()
            self.update_status()
            self.post_message(self.StatusChanged())

    def _show(self, log: LogRef) -> None:
        self._shown, self._merged = log, False
        self.text.open((labels_of(self._logs)[self._logs.index(log)] if log in self._logs else "", log.path))
        self.update_status()
        self.post_message(self.StatusChanged())

    def _show_merged(self) -> None:
        labels = labels_of(self._logs)
        self.text.open(*((label, log.path) for label, log in zip(labels, self._logs, strict=True)))

    def choose_role(self, role: Role) -> bool:
        """Show the log of a role; of several, the next one at each call. False when there is none."""
        same = [log for log in self._logs if log.role is role]
        if not same:
            return False
        index = same.index(self._shown) + 1 if self._shown in same and not self._merged else 0
        self.choose(same[index % len(same)])
        return True

    def go_to_finding(self, finding: FindingSeen, note: str) -> bool:
        """Show the line of a finding, and a note; False where its log is not among the logs."""
        name = clean(finding.source.log)
        log = next((log for log in self._logs if log.name == name), None)
        if log is None:
            return False
        self.show_all_lines()
        if not self._merged and log != self._shown:
            self.choose(log)
        self.text.navigator.go_to_offset(log.path, finding.source.offset, note)
        return True

    def open_prompt(self, kind: PromptKind) -> None:
        """Open the input line."""
        self._start = self.text.navigator.position()
        self.prompt.open(kind)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search incrementally."""
        event.stop()
        if self.prompt.kind is PromptKind.SEARCH and self.prompt.display and self._start is not None:
            self._search(event.value)

    def _search(self, typed: str) -> None:
        assert self._start is not None
        try:
            query = parse_query(typed) if typed.strip() else None
        except TermError as error:
            self.text.navigator.show_note(str(error))
            return
        if query is None:
            self.text.navigator.restore(self._start)
        else:
            self.text.navigator.search(query, self._start.bottom)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Apply the input, and focus the log."""
        event.stop()
        start, kind = self._start, self.prompt.kind
        self._close_prompt()
        if not event.value.strip() or start is None:
            return
        try:
            self._apply(kind, event.value)
        except TermError as error:
            self.text.navigator.show_note(str(error))

    def _apply(self, kind: PromptKind, typed: str) -> None:
        navigator = self.text.navigator
        match kind:
            case PromptKind.SEARCH:
                if navigator.query != parse_query(typed):
                    navigator.search(parse_query(typed))
            case PromptKind.FILTER:
                term = parse_term(typed)
                if term not in self._terms:
                    self._set_filter((*self._terms, term), self._level)
            case PromptKind.GO_TO:
                position = parse_position(typed)
                if position is None:
                    raise TermError(f"invalid position “{clean(typed)}” (expected a line, 1234, or 50%)")
                line, percent = position
                if line is not None:
                    navigator.go_to_line(line)
                elif percent is not None:
                    navigator.go_to_percent(percent)

    def cancel_prompt(self) -> bool:
        """Close the input line and undo an incremental search; False when it is not open."""
        if not self.prompt.display:
            return False
        start = self._start
        kind = self.prompt.kind
        self._close_prompt()
        if start is not None and kind is PromptKind.SEARCH:
            self.text.navigator.restore(start)
        return True

    def _close_prompt(self) -> None:
        self.prompt.display = False
        self._start = None
        self.screen.set_focus(self.text)

    def next_level(self) -> None:
        """Go on to the next filter by severity: all lines, warnings and errors, errors."""
        self._set_filter(self._terms, Severity((self._level + 1) % len(Severity)))

    def show_all_lines(self) -> None:
        """Clear the filter."""
        self._set_filter((), Severity.ANY)

    def _set_filter(self, terms: tuple[LineFilterTerm, ...], level: Severity) -> None:
        self._terms, self._level = terms, level
        levels = (Level(level),) if level is not Severity.ANY else ()
        self.filter.show(tuple(clean(term.label) for term in (*levels, *terms)))
        self.text.set_terms((*levels, *terms))
        self.update_status()
        self.post_message(self.StatusChanged())

    def on_log_view_changed(self) -> None:
        """Show the log's status."""
        self.update_status()

    def update_status(self) -> None:
        """Show the log's current status."""
        self.tabs.show(self._logs, self.shown, self._status())

    def _status(self) -> str:
        text = self.text
        extent = text.extent
        if self._shown is None and not self._merged:
            return "no log yet"
        if extent.problem:
            return f"! {extent.problem}"
        if text.unanswered:
            return f"! no answer from the file system for {duration(text.unanswered, tenths=False)}"
        parts = [text.navigator.note] if text.navigator.note else []
        if not text.follow:
            new = f", {plural(text.new_lines, 'new line')}" if text.new_lines else ""
            parts.append(f"paused{new}")
        else:
            parts.append("following")
        if text.wrapped:
            parts.append("wrapped")
        return " · ".join([*parts, *self._size_status()])

    def _size_status(self) -> list[str]:
        extent = self.text.extent
        if extent.prepared < 1:
            return [f"sorting by time {extent.prepared:.0%}"]
        noun = "matching line" if self.filtered else "line"
        if not extent.counted:
            activity = "filtering" if self.filtered else "counting lines"
            progress = extent.counted_bytes / max(extent.bytes, 1)
            return [f"{activity} {progress:.0%}", file_size(extent.bytes)]
        top = f"{self.text.top_line + 1:,}/" if not self.text.follow and extent.lines else ""
        parts = [f"{top}{plural(extent.lines, noun)}", file_size(extent.bytes)]
        if self._merged and self.text.untimed:
            labels = ", ".join(self.text.untimed[:2]) + (" …" if len(self.text.untimed) > 2 else "")
            parts.append(f"without times: {labels}")
        return parts
