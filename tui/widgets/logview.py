"""A log's lines on the screen. Only what is visible, and a little around it, is in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from launcher.transports.base import Transport
from tui.commands import Where, bindings
from tui.widgets.logreader import LinesRead, LogReader, Search, SearchEnded, Wish
from tui.widgets.logtext import Extent, Needle
from tui.widgets.scrolling import LineView

_SIDEWAYS = 8


class LogView(LineView, can_focus=True, inherit_bindings=False):
    """Shows one log at a time: at its end and following it, or held still wherever it was scrolled to."""

    BINDINGS = bindings(Where.LOG)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"log--match", "log--current", "log--quiet"}

    class Changed(Message):
        """What the log's status line says changed."""

    def __init__(self) -> None:
        super().__init__()
        self._reader: LogReader | None = None
        self._path = ""
        self._first = 0
        self._lines: list[str] = []
        self._moving = False
        self._to_top_when_counted = False
        self._searches = 0
        self.extent = Extent()
        self.follow = True
        self.held_at = 0
        """Lines there were when following was paused."""
        self.needle: Needle | None = None
        self.current: int | None = None
        """The line of the match gone to last."""
        self.note = ""
        """What came of the last search."""

    def read_through(self, transport: Transport) -> None:
        """Begin; logs are read through this transport from now on."""
        self._reader = LogReader(transport, self)
        self._reader.start()
        self._ask()

    def on_unmount(self) -> None:
        """End the reading thread."""
        if self._reader is not None:
            self._reader.stop()

    def open(self, path: str) -> None:
        """Show another log, at its end."""
        if path == self._path:
            return
        self._path = path
        self._forget()
        self.extent = Extent()
        self.follow = True
        self.note = ""
        if self._reader is not None:
            self._reader.search(None)
        self._ask()
        self._tell()

    def settle(self, settled: bool) -> None:
        """Tell whether the run has ended, so that its logs change little."""
        if self._reader is not None and self._reader.settled != settled:
            self._reader.settled = settled
            self._reader.wake()

    @property
    def unanswered(self) -> float:
        """Seconds that the file system has owed an answer for, if it has for some time."""
        waited = self._reader.busy_for if self._reader is not None else 0.0
        return waited if waited > 2 else 0.0

    @property
    def new_lines(self) -> int:
        """Lines that came while the log was held still."""
        return 0 if self.follow else max(self.extent.lines - self.held_at, 0)

    def set_follow(self, follow: bool) -> None:
        """Follow the end, or hold still."""
        if follow != self.follow:
            self.follow = follow
            self.held_at = self.extent.lines
            self._tell()
        if follow:
            self._move_to(self.max_scroll_y)
            self._ask()

    def search(self, text: str) -> None:
        """Go to the match at or above the bottom of what is visible, else to the last one."""
        self.needle = Needle(text) if text.strip() else None
        self.current = None
        self.note = ""
        if self.needle is not None:
            self._seek(self.scroll_offset.y + max(self._height - 1, 0), backwards=True)
        elif self._reader is not None:
            self._reader.search(None)
        self.refresh()
        self._tell()

    def next_match(self, direction: int) -> None:
        """Go to the next match below (1) or above (-1)."""
        if self.needle is None:
            self.note = "nothing was searched for yet: / searches"
            self._tell()
            return
        here = self.current if self.current is not None else self.scroll_offset.y
        self._seek(max(here + direction, 0), backwards=direction < 0)

    def _seek(self, line: int, *, backwards: bool) -> None:
        assert self.needle is not None
        self._searches += 1
        self.note = "searching …"
        if self._reader is not None:
            self._reader.search(Search(self.needle, line, backwards, self._searches))
        self._tell()

    def on_search_ended(self, event: SearchEnded) -> None:
        """Go to the line that was found."""
        event.stop()
        if event.search.number != self._searches or self.needle is None:
            return
        if event.line is None:
            self.note = f"nothing shows “{self.needle.text}”"
        else:
            self.note = "went on from the other end" if event.wrapped else ""
            self.current = event.line
            self.set_follow(False)
            self._reveal(event.line)
        self.refresh()
        self._tell()

    def _reveal(self, line: int) -> None:
        top = self.scroll_offset.y
        if not top <= line < top + self._height:
            self._move_to(line - self._height // 2)
        self._ask()

    def on_lines_read(self, event: LinesRead) -> None:
        """Take lines in."""
        event.stop()
        if event.path != self._path:
            return
        before = self.extent
        if event.extent.problem:  # what was read stays to be seen
            self.extent = replace(before, problem=event.extent.problem)
            self._tell()
            return
        self.extent = event.extent
        if event.extent.generation != before.generation:
            self.note = "the log began anew"
            self.follow = True
            self._forget()
        moved = event.extent.shift - before.shift if event.extent.generation == before.generation else 0
        self._first, self._lines = event.first, event.lines
        self._grow(moved)
        if self.extent.counted and self._to_top_when_counted:
            self._to_top_when_counted = False
            self._move_to(0)
        self._ask()
        self.refresh()
        self._tell()

    def _grow(self, moved: int) -> None:
        """Take the log's length over; `moved` lines were found to come before the first one."""
        widest = max((len(line) for line in self._lines), default=0)
        size = Size(max(widest + 1, self.virtual_size.width if self._lines else 0), self.extent.lines)
        self._moving = True
        if size != self.virtual_size:
            self.virtual_size = size
        if self.follow:
            self._move_to(self.max_scroll_y)
        elif moved:
            self.held_at += moved
            self.current = self.current + moved if self.current is not None else None
            self._move_to(self.scroll_offset.y + moved)
        self._moving = False

    def _forget(self) -> None:
        self._first, self._lines = 0, []
        self.current = None
        self.virtual_size = Size(0, 0)
        self.refresh()

    @property
    def _height(self) -> int:
        return self.scrollable_content_region.height

    def _ask(self) -> None:
        """Ask for what is visible and two pages around it, unless that is here already."""
        if self._reader is None or not self._path:
            return
        height = max(self._height, 1)
        top = self.scroll_offset.y
        if self.follow:
            self._reader.wish(Wish(self._path, 0, height * 3, follow=True))
            return
        near_start = top - height >= self._first or self._first == 0
        near_end = top + 2 * height <= self._first + len(self._lines)
        at_end = self._first + len(self._lines) >= self.extent.lines
        if not (near_start and (near_end or at_end) and self._lines):
            self._reader.wish(Wish(self._path, max(top - 2 * height, 0), height * 5, follow=False))

    def _move_to(self, line: int) -> None:
        held, self._moving = self._moving, True
        self.scroll_to(y=line, animate=False, force=True)
        self._moving = held

    def _tell(self) -> None:
        self.post_message(self.Changed())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow at the end, hold still elsewhere; the log's own growth counts for neither."""
        super().watch_scroll_y(old_value, new_value)
        if self._moving or round(old_value) == round(new_value):
            return
        follow = new_value >= self.max_scroll_y
        if follow != self.follow:
            self.follow = follow
            self.held_at = self.extent.lines
        self._ask()
        self._tell()

    def on_resize(self) -> None:
        """Keep the end in sight while following."""
        if self.follow:
            self._move_to(self.max_scroll_y)
        self._ask()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        base = self.rich_style
        line = top + y
        place = line - self._first
        if not 0 <= place < len(self._lines):
            return Strip.blank(width, base)
        text = self._lines[place]
        strip = Strip(self._segments(text, line, base)).crop_extend(left, left + width, base)
        if len(text) > (left + width) // 2 and cell_len(text) > left + width:
            more = Segment("›", base + self.get_component_rich_style("log--quiet"))
            return Strip([*strip.crop(0, width - 1), more], width)
        return strip

    def _segments(self, text: str, line: int, base: Style) -> list[Segment]:
        places = self.needle.places(text) if self.needle is not None else []
        if not places:
            return [Segment(text, base)]
        match = self.get_component_rich_style("log--current" if line == self.current else "log--match")
        segments = []
        end = 0
        for start, stop in places:
            segments += [Segment(text[end:start], base), Segment(text[start:stop], base + match)]
            end = stop
        return [*segments, Segment(text[end:], base)]

    def _by(self, lines: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False)

    def action_scroll_up(self) -> None:
        """Go a line up."""
        self._by(-1)

    def action_scroll_down(self) -> None:
        """Go a line down."""
        self._by(1)

    def action_page_up(self) -> None:
        """Go a page up."""
        self._by(-max(self._height - 1, 1))

    def action_page_down(self) -> None:
        """Go a page down."""
        self._by(max(self._height - 1, 1))

    def action_scroll_home(self) -> None:
        """Go to the first line; of a long log, as soon as its lines are counted."""
        self._to_top_when_counted = not self.extent.counted
        self.set_follow(False)
        self.scroll_to(x=0, y=0, animate=False)
        self._ask()

    def action_scroll_end(self) -> None:
        """Go to the end and follow."""
        self.scroll_to(x=0, animate=False)
        self.set_follow(True)

    def action_scroll_left(self) -> None:
        """Scroll sideways."""
        self.scroll_to(x=self.scroll_offset.x - _SIDEWAYS, animate=False)

    def action_scroll_right(self) -> None:
        """Scroll sideways."""
        self.scroll_to(x=self.scroll_offset.x + _SIDEWAYS, animate=False)
