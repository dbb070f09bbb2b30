"""Going to places of a log: what is searched for, lines, percentages, findings."""

from __future__ import annotations

from dataclasses import dataclass

from tui.logview.line_index import Extent
from tui.logview.match import Query
from tui.logview.reader import Jump, JumpResult, LogReader, Search, SearchEnded, Searching, Unit
from tui.logview.scroll import LogScroll


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where a log was, to come back to."""

    top: int
    bottom: int
    """The last line that was visible."""
    follow: bool
    query: Query | None
    current: int | None


class LogSeek(LogScroll):
    """A view that asks its reader where something is, and goes there when the answer comes."""

    def __init__(self) -> None:
        super().__init__()
        self._reader: LogReader | None = None
        self._asked = 0
        """Number of the last search or jump."""
        self._searching = False
        self._landing = ""
        """What to say when the place to go to is reached."""
        self.extent = Extent()
        self.follow = True
        self.search_query: Query | None = None
        self.current: int | None = None
        """The line gone to last: a match, a finding, a number."""
        self.note = ""
        """What came of the last search or jump."""

    def set_follow(self, follow: bool) -> None:
        """Follow the end, or hold still."""
        raise NotImplementedError

    def _move_to(self, line: int) -> None:
        """Let a line be the first one, or the last page begin."""
        raise NotImplementedError

    def _ask(self) -> None:
        """Ask for the lines that are to be shown."""
        raise NotImplementedError

    def _tell(self) -> None:
        """Tell that what the status line says changed."""
        raise NotImplementedError

    def search(self, query: Query | None, start: int | None = None) -> None:
        """Go to the match at or above `start` (else the bottom of what is visible), else to the last one."""
        self.search_query = query
        self.current = None
        self.note = ""
        self.stop_search()
        if query is not None:
            self._seek(self.bottom if start is None else start, backwards=True)
        self.refresh()
        self._tell()

    def next_match(self, direction: int) -> None:
        """Go to the next match below (1) or above (-1)."""
        if self.search_query is None:
            self.note = "nothing was searched for yet: / searches"
            self._tell()
            return
        here = self.current if self.current is not None else self.scroll_offset.y
        self._seek(max(here + direction, 0), backwards=direction < 0)

    def _seek(self, line: int, *, backwards: bool) -> None:
        assert self.search_query is not None
        self._asked += 1
        self._searching = True
        self.note = "searching …"
        if self._reader is not None:
            self._reader.search(Search(self.search_query, line, backwards, self._asked))
        self._tell()

    def say(self, note: str) -> None:
        """Say something in the status line."""
        self.note = note
        self._tell()

    def stop_search(self) -> bool:
        """End a search under way; False when there is none."""
        was, self._searching = self._searching, False
        if was:
            self._asked += 1
            self.note = "the search was ended"
            if self._reader is not None:
                self._reader.search(None)
            self._tell()
        return was

    @property
    def searching(self) -> bool:
        """Whether a search is under way."""
        return self._searching

    def on_searching(self, event: Searching) -> None:
        """Say how far the search is."""
        event.stop()
        if event.search.number == self._asked:
            self.note = f"searching {event.done:.0%} (esc ends it)"
            self._tell()

    def on_search_ended(self, event: SearchEnded) -> None:
        """Go to the line that was found."""
        event.stop()
        if event.search.number != self._asked or self.search_query is None:
            return
        self._searching = False
        if event.line is None:
            self.note = f"nothing shows {self.search_query.said}"
        else:
            self.note = "went on from the other end" if event.wrapped else ""
            self._arrive(event.line)
        self.refresh()
        self._tell()

    def place(self) -> LogPosition:
        """Return where the log is now."""
        return LogPosition(self.scroll_offset.y, self.bottom, self.follow, self.search_query, self.current)

    def come_back(self, place: LogPosition) -> None:
        """Go back to where the log was."""
        self.stop_search()
        self.note = ""
        self.search_query, self.current = place.query, place.current
        self.set_follow(place.follow)
        if not place.follow:
            self._move_to(place.top)
            self._ask()
        self.refresh()
        self._tell()

    def go_to_line(self, line: int) -> None:
        """Go to a line of the file, counted from 1."""
        self._go(Unit.LINE, max(line - 1, 0), landing=f"line {line:,}")

    def go_to_percent(self, percent: float) -> None:
        """Go to a place of what is shown."""
        self._go(Unit.PERCENT, percent, landing=f"{percent:g} %")

    def go_to_offset(self, path: str, offset: int, landing: str) -> None:
        """Go to the line at an offset in one of the files; `landing` says what it is."""
        self._go(Unit.OFFSET, offset, path, landing)

    def _go(self, unit: Unit, value: float, path: str = "", landing: str = "") -> None:
        self.stop_search()
        self._asked += 1
        self._landing = landing
        self.set_follow(False)
        if landing and not self.extent.counted:
            self.note = "going there …"
        if self._reader is not None:
            self._reader.jump(Jump(unit, value, self._asked, path))
        self._tell()

    def on_jump_result(self, event: JumpResult) -> None:
        """Go to the place that was found."""
        event.stop()
        if event.jump.number != self._asked:
            return
        if event.line is None:
            self.note = f"{self._landing} is not in this log" if self._landing else ""
        elif self._landing:
            self.note = self._landing
            self._arrive(event.line)
        else:
            self._move_to(event.line)
            self._ask()
        self.refresh()
        self._tell()

    @property
    def at_current(self) -> bool:
        """Whether the line gone to last is visible."""
        return self.current is not None and self.scroll_offset.y <= self.current <= self.bottom

    def _arrive(self, line: int) -> None:
        self.current = line
        self.set_follow(False)
        if not self.at_current:
            self._move_to(self.top_for(line))
        self._ask()
