"""The logs of a run: a line of tabs and status, the filter, the log's lines, and a line to type in."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from launcher.logs.events import FindingSeen, Role
from launcher.text import clean
from launcher.transports.base import Transport
from tui.formatting import plural, size, ticking
from tui.logview.match import Level, LineFilterTerm, Query, Severity, TermError, parse_query, parse_term
from tui.logview.prompt import LogPrompt, PromptKind, parse_place
from tui.logview.seek import LogPosition
from tui.logview.tabs import FilterLine, LogTabs, labels_of
from tui.logview.view import LogView
from tui.run_view import LogRef

_TELLING = (Role.DRIVER, Role.SLURM, Role.HEAD, Role.WORKER, Role.COMPANION)
"""Which log is shown as long as none was chosen: the driver's as soon as there is one."""


class LogPane(Vertical):
    """The logs of a run, one of them shown, or all as one."""

    class StatusChanged(Message):
        """The pane has another log, or another status: commands may have become valid."""

    def __init__(self) -> None:
        super().__init__()
        self._logs: tuple[LogRef, ...] = ()
        self._shown: LogRef | None = None
        self._merged = False
        self._chosen = False
        self._terms: tuple[LineFilterTerm, ...] = ()
        self._level = Severity.ANY
        self._before: LogPosition | None = None
        """Where the log was when a search was begun."""
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
        """The logs there are."""
        return self._logs

    @property
    def shown(self) -> LogRef | None:
        """The log that is shown; None while all are, or none is."""
        return None if self._merged else self._shown

    @property
    def merged(self) -> bool:
        """Whether all logs are shown as one."""
        return self._merged

    @property
    def filtered(self) -> bool:
        """Whether some lines are left out."""
        return bool(self._terms) or self._level is not Severity.ANY

    def read_through(self, transport: Transport) -> None:
        """Begin to read."""
        self.text.read_through(transport)

    def set_logs(self, logs: tuple[LogRef, ...], *, settled: bool) -> None:
        """Take the run's logs; shows the first one if none is shown yet."""
        self.text.settle(settled)
        if logs == self._logs:
            return
        self._logs = logs
        if self._merged:
            self._show_merged()
        elif not self._chosen:
            telling = next((log for role in _TELLING for log in logs if log.role is role), None)
            if telling is not None and telling != self._shown:
                self._show(telling)
        self.update_status()

    def choose(self, log: LogRef) -> None:
        """Show a log, and stay with it."""
        self._chosen = True
        self._show(log)

    def choose_all(self) -> None:
        """Show all logs as one, in the order of time."""
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
        """Show the log of a role; of several, the next one each time. False when there is none."""
        same = [log for log in self._logs if log.role is role]
        if not same:
            return False
        place = same.index(self._shown) + 1 if self._shown in same and not self._merged else 0
        self.choose(same[place % len(same)])
        return True

    def go_to_finding(self, finding: FindingSeen, said: str) -> bool:
        """Show the line of a finding; False where its log is not known."""
        name = clean(finding.source.log)
        log = next((log for log in self._logs if log.name == name), None)
        if log is None:
            return False
        self.show_all_lines()
        if not self._merged and log != self._shown:
            self.choose(log)
        self.text.go_to_offset(log.path, finding.source.offset, said)
        return True

    def ask(self, asked: PromptKind) -> None:
        """Show the line to type in."""
        self._before = self.text.place()
        self.prompt.ask(asked)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search while one types."""
        event.stop()
        if self.prompt.asked is PromptKind.SEARCH and self.prompt.display and self._before is not None:
            self._search(event.value)

    def _search(self, typed: str) -> Query | None:
        assert self._before is not None
        try:
            query = parse_query(typed) if typed.strip() else None
        except TermError as error:
            self.text.say(str(error))
            return None
        if query is None:
            self.text.come_back(self._before)
        else:
            self.text.search(query, self._before.bottom)
        return query

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do what was asked for, and give the keys back to the log."""
        event.stop()
        before, asked = self._before, self.prompt.asked
        self._leave_prompt()
        if not event.value.strip() or before is None:
            return
        try:
            self._take(asked, event.value)
        except TermError as error:
            self.text.say(str(error))

    def _take(self, asked: PromptKind, typed: str) -> None:
        match asked:
            case PromptKind.SEARCH:
                if self.text.search_query != parse_query(typed):
                    self.text.search(parse_query(typed))
            case PromptKind.ONLY:
                term = parse_term(typed)
                if term not in self._terms:
                    self._filter((*self._terms, term), self._level)
            case PromptKind.GO:
                place = parse_place(typed)
                if place is None:
                    raise TermError(f"“{clean(typed)}” is no line (1234) and no place (50%)")
                line, percent = place
                if line is not None:
                    self.text.go_to_line(line)
                elif percent is not None:
                    self.text.go_to_percent(percent)

    def leave_prompt(self) -> bool:
        """Leave the line to type in, and go back to where the log was; False when it is not there."""
        if not self.prompt.display:
            return False
        before = self._before
        asked = self.prompt.asked
        self._leave_prompt()
        if before is not None and asked is PromptKind.SEARCH:
            self.text.come_back(before)
        return True

    def _leave_prompt(self) -> None:
        self.prompt.display = False
        self._before = None
        self.screen.set_focus(self.text)

    def next_level(self) -> None:
        """Show all lines, then only warnings and errors, then only errors."""
        self._filter(self._terms, Severity((self._level + 1) % len(Severity)))

    def show_all_lines(self) -> None:
        """Leave no line out."""
        self._filter((), Severity.ANY)

    def _filter(self, terms: tuple[LineFilterTerm, ...], level: Severity) -> None:
        self._terms, self._level = terms, level
        levels = (Level(level),) if level is not Severity.ANY else ()
        self.filter.show(tuple(clean(term.said) for term in (*levels, *terms)))
        self.text.set_terms((*levels, *terms))
        self.update_status()
        self.post_message(self.StatusChanged())

    def on_log_view_changed(self) -> None:
        """Say how the log stands."""
        self.update_status()

    def update_status(self) -> None:
        """Say how the log stands now."""
        self.tabs.show(self._logs, self.shown, self._status())

    def _status(self) -> str:
        text = self.text
        extent = text.extent
        if self._shown is None and not self._merged:
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
        if text.wrapped:
            parts.append("wrapped")
        return " · ".join([*parts, *self._how_long()])

    def _how_long(self) -> list[str]:
        extent = self.text.extent
        if extent.prepared < 1:
            return [f"sorting by time {extent.prepared:.0%}"]
        what = "matching line" if self.filtered else "line"
        if not extent.counted:
            doing = "looking through" if self.filtered else "counting lines"
            return [f"{doing} {extent.counted_bytes / max(extent.bytes, 1):.0%}", size(extent.bytes)]
        where = f"{self.text.scroll_offset.y + 1:,}/" if not self.text.follow and extent.lines else ""
        parts = [f"{where}{plural(extent.lines, what)}", size(extent.bytes)]
        if self._merged and self.text.untimed:
            named = ", ".join(self.text.untimed[:2]) + (" …" if len(self.text.untimed) > 2 else "")
            parts.append(f"without times: {named}")
        return parts
