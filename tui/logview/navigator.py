"""Navigation in a log: searches, and jumps to lines, percentages and findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tui.logview.line_index import Extent
from tui.logview.log_reader import LogReader
from tui.logview.match import Query
from tui.logview.read_requests import (
    Jump,
    JumpResult,
    MatchesCounted,
    MatchPosition,
    Search,
    SearchFinished,
    SearchProgress,
    Unit,
)


class Viewport(Protocol):
    """The view that a navigator moves."""

    @property
    def extent(self) -> Extent:
        """Size of the log, as far as it has been read."""
        ...

    @property
    def follow(self) -> bool:
        """Whether the view follows the log's end."""
        ...

    @property
    def top_line(self) -> int:
        """The first visible line."""
        ...

    @property
    def bottom_line(self) -> int:
        """The last visible line."""
        ...

    def set_follow(self, follow: bool) -> None:
        """Follow the log's end, or hold still."""
        ...

    def top_for(self, line: int) -> int:
        """Return the line to begin the page with so that `line` is well visible."""
        ...

    def move_to(self, line: int) -> None:
        """Begin the page with a line, or show the last page."""
        ...

    def request_lines(self) -> None:
        """Request the lines that are to be shown."""
        ...

    def refresh(self) -> object:
        """Repaint."""
        ...

    @property
    def post_status(self) -> Callable[[], None]:
        """Announces that the status line has changed."""
        ...


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in a log, to return to."""

    top: int
    bottom: int
    """The last visible line."""
    follow: bool
    query: Query | None
    current: int | None


class LogNavigator:
    """Has the reader find lines, and moves the view there when the answer arrives."""

    def __init__(self, view: Viewport) -> None:
        self._view = view
        self._reader: LogReader | None = None
        self._request = 0
        """Number of the last search or jump."""
        self._searching = False
        self._target = ""
        """Description of the jump's target, for the status line."""
        self.query: Query | None = None
        self.current: int | None = None
        """The target line of the last search or jump: a match, a finding, a line number."""
        self.note = ""
        """Result of the last search or jump, for the status line."""
        self.match_position: MatchPosition | None = None
        """Position of the current match among all; None without one."""
        self.handover: Callable[[int], bool] | None = None
        """Continues a search beyond the log's end (1) or beginning (-1) elsewhere; False where it cannot."""
        self._stepping = 0
        """Direction of the step to the next match under way; 0 for another search."""

    def attach(self, reader: LogReader) -> None:
        """Use a reader from now on."""
        self._reader = reader

    def search(self, query: Query | None, start: int | None = None) -> None:
        """Search upwards from `start` (default: the last visible line), then on from the log's end."""
        self.query = query
        self.current = self.match_position = None
        self.note = ""
        self.stop_search()
        self._stepping = 0
        if query is not None:
            self._search_from(self._view.bottom_line if start is None else start, backwards=True)
        self._view.refresh()
        self._view.post_status()

    def next_match(self, direction: int) -> None:
        """Go to the next match below (1) or above (-1)."""
        if self.query is None:
            self.show_note("no search yet: press / to search")
            return
        line = self.current if self.current is not None else self._view.top_line
        self._stepping = direction
        self._search_from(max(line + direction, 0), backwards=direction < 0)

    def search_from_edge(self, query: Query, direction: int) -> None:
        """Search from the log's beginning (1) or end (-1)."""
        self.query = query
        self.current = self.match_position = None
        self._stepping = direction
        line = 0 if direction > 0 else max(self._view.extent.lines - 1, 0)
        self._search_from(line, backwards=direction < 0)

    def _search_from(self, line: int, *, backwards: bool) -> None:
        assert self.query is not None
        self._request += 1
        self._searching = True
        if self._reader is not None:
            self._reader.search(Search(self.query, line, backwards, self._request))
        self.show_note("searching …")

    def show_note(self, note: str) -> None:
        """Show a note in the status line."""
        self.note = note
        self._view.post_status()

    def stop_search(self) -> bool:
        """Stop the search under way; False when there is none."""
        was_searching, self._searching = self._searching, False
        if was_searching:
            self._request += 1
            if self._reader is not None:
                self._reader.search(None)
            self.show_note("search stopped")
        return was_searching

    def show_progress(self, event: SearchProgress) -> None:
        """Show the progress of the search."""
        if event.search.number == self._request:
            self.show_note(f"searching {event.progress:.0%} (esc stops)")

    def finish_search(self, event: SearchFinished) -> None:
        """Go to the match."""
        if event.search.number != self._request or self.query is None:
            return
        self._searching = False
        direction, self._stepping = self._stepping, 0
        if direction and (event.wrapped or event.line is None) and self._handed_over(direction):
            self.show_note("")
            return
        if event.line is None:
            self.note = f"no match for {self.query.label}"
            self.match_position = None
        else:
            self.note = "search wrapped around" if event.wrapped else ""
            self._arrive(event.line)
            if self._reader is not None:
                self._reader.count_matches(event.search, event.line)
        self._view.refresh()
        self._view.post_status()

    def _handed_over(self, direction: int) -> bool:
        return self.handover is not None and self.handover(direction)

    def show_position(self, event: MatchesCounted) -> None:
        """Show the position of the current match among all."""
        if event.search.number == self._request:
            self.match_position = event.position
            self._view.post_status()

    def position(self) -> LogPosition:
        """Return the current position."""
        view = self._view
        return LogPosition(view.top_line, view.bottom_line, view.follow, self.query, self.current)

    def restore(self, position: LogPosition) -> None:
        """Return to a position."""
        self.stop_search()
        self.note = ""
        self.query, self.current, self.match_position = position.query, position.current, None
        self._view.set_follow(position.follow)
        if not position.follow:
            self._view.move_to(position.top)
            self._view.request_lines()
        self._view.refresh()
        self._view.post_status()

    def go_to_line(self, line: int) -> None:
        """Go to a line of the file, counted from 1."""
        self.jump(Unit.LINE, max(line - 1, 0), target=f"line {line:,}")

    def go_to_percent(self, percent: float) -> None:
        """Go to a percentage of the lines that are shown."""
        self.jump(Unit.PERCENT, percent, target=f"{percent:g} %")

    def go_to_offset(self, path: str, offset: int, target: str) -> None:
        """Go to the line at an offset in one of the files; `target` describes it."""
        self.jump(Unit.OFFSET, offset, path, target)

    def jump(self, unit: Unit, value: float, path: str = "", target: str = "") -> None:
        """Go to a line given by number, percentage or offset; without `target`, move without marking it."""
        self.stop_search()
        self._request += 1
        self._target = target
        self.match_position = None
        self._view.set_follow(False)
        if target and not self._view.extent.counted:
            self.note = "jumping …"
        if self._reader is not None:
            self._reader.jump(Jump(unit, value, self._request, path))
        self._view.post_status()

    def finish_jump(self, event: JumpResult) -> None:
        """Go to the line of a jump."""
        if event.jump.number != self._request:
            return
        if event.line is None:
            self.note = f"{self._target} is not in this log" if self._target else ""
        elif self._target:
            self.note = self._target
            self._arrive(event.line)
        else:
            self._view.move_to(event.line)
            self._view.request_lines()
        self._view.refresh()
        self._view.post_status()

    @property
    def current_visible(self) -> bool:
        """Whether the current line is visible."""
        view = self._view
        return self.current is not None and view.top_line <= self.current <= view.bottom_line

    def _arrive(self, line: int) -> None:
        self.current = line
        self._view.set_follow(False)
        if not self.current_visible:
            self._view.move_to(self._view.top_for(line))
        self._view.request_lines()
