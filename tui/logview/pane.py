"""One log pane: its title, the active filter, the lines, and the input line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from launcher.text import clean
from tui.formatting import duration, file_size, plural
from tui.logview.match import Level, LineFilterTerm, Severity, TermError, parse_query, parse_term
from tui.logview.navigator import LogPosition
from tui.logview.prompt import LogPrompt, PromptKind, parse_position
from tui.logview.tabs import FilterLine, PaneTitle, labels_of
from tui.logview.view import LogView
from tui.run_view import LogRef


class LogPane(Vertical):
    """One log, or several merged: title, active filter, lines, and the input line."""

    class StatusChanged(Message):
        """Another log or another status: other commands may be valid."""

    def __init__(self, status_changed: Callable[[], None]) -> None:
        super().__init__()
        self._shown: LogRef | None = None
        self._merged = False
        self._terms: tuple[LineFilterTerm, ...] = ()
        self._level = Severity.ANY
        self._start: LogPosition | None = None
        """Position of the log when the input line was opened."""
        self.title = PaneTitle()
        self.filter = FilterLine()
        self.text = LogView(status_changed)
        self.prompt = LogPrompt()

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title
        yield self.filter
        yield self.text
        yield self.prompt

    @property
    def shown(self) -> LogRef | None:
        """The log that is shown; None while several are merged, or there is none."""
        return None if self._merged else self._shown

    @property
    def merged(self) -> bool:
        """Whether several logs are shown merged."""
        return self._merged

    @property
    def filtered(self) -> bool:
        """Whether a filter is active."""
        return bool(self._terms) or self._level is not Severity.ANY

    def show(self, log: LogRef) -> None:
        """Show one log."""
        if (log, False) == (self._shown, self._merged):
            return
        self._shown, self._merged = log, False
        self.text.open(("", log.path))
        self._announce(log)

    def show_merged(self, logs: Sequence[LogRef]) -> None:
        """Show logs merged, in the order of time."""
        self._merged = True
        self.text.open(*((label, log.path) for label, log in zip(labels_of(logs), logs, strict=True)))
        self._announce(None)

    def _announce(self, log: LogRef | None) -> None:
        self.title.show_log(log)
        self.update_status()
        self.post_message(self.StatusChanged())

    def go_to_line(self, path: str, offset: int, note: str) -> None:
        """Show the line at an offset of a log that is shown, and a note."""
        self.show_all_lines()
        self.text.navigator.go_to_offset(path, offset, note)

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

    def update_status(self) -> None:
        """Show the log's current status."""
        self.title.show_status(self.status)

    @property
    def status(self) -> str:
        """State of the log in words: followed or paused, and its size."""
        text = self.text
        extent = text.extent
        if self._shown is None and not self._merged:
            return "no log yet"
        if extent.problem:
            return f"! {extent.problem}"
        if text.unanswered:
            return f"! no answer from the file system for {duration(text.unanswered, tenths=False)}"
        navigator = text.navigator
        parts = [navigator.note] if navigator.note else []
        if navigator.match_position is not None:
            parts.append(navigator.match_position.in_words())
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
