"""A log's lines on the screen. Only what is visible, and a little around it, is in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from launcher.transports.base import Transport
from tui.commands import Scope, bindings
from tui.logview.line import Line
from tui.logview.line_index import Extent
from tui.logview.match import LineFilterTerm
from tui.logview.paint import Looks, label_width, strip_of, strip_of_row, width_of
from tui.logview.reader import LinesRead, LogReader, LogSelection, ReadRequest, Unit
from tui.logview.seek import LogSeek
from tui.logview.wrap import WrappedRow, fitting_at_the_end, page_of, whole_lines


class LogView(LogSeek, can_focus=True, inherit_bindings=False):
    """Shows a log, or several as one: at the end and following it, or held still where it was scrolled to."""

    BINDINGS = bindings(Scope.LOG)
    COMPONENT_CLASSES: ClassVar[set[str]] = Looks.CLASSES

    class Changed(Message):
        """What the log's status line says changed."""

    def __init__(self) -> None:
        super().__init__()
        self._scene = LogSelection()
        self._longest_label = 0
        self._first = 0
        self._lines: list[Line] = []
        self._moving = False
        self._looks: Looks | None = None
        self._page: list[WrappedRow] = []
        """What is being drawn, while lines are wrapped."""
        self._last_page = 1
        """How many lines the last page has, while lines are wrapped."""
        self.wrapped = False
        """Whether long lines go on in the next row, rather than beyond the edge."""
        self.untimed: tuple[str, ...] = ()
        """Of several logs as one, those without times."""
        self.held_at = 0
        """Lines there were when following was paused."""

    def read_through(self, transport: Transport) -> None:
        """Begin; logs are read through this transport from now on."""
        self._reader = LogReader(transport, self)
        self._reader.start()
        self._ask()

    def on_unmount(self) -> None:
        """End the reading thread."""
        if self._reader is not None:
            self._reader.stop()

    @property
    def scene(self) -> LogSelection:
        """What is looked at."""
        return self._scene

    def open(self, *logs: tuple[str, str]) -> None:
        """Show other logs (label and path; several as one), at their end. A filter stays."""
        if logs == self._scene.logs:
            return
        more = len(self._scene.logs) > 1 and set(self._scene.logs) <= set(logs)
        self._change(LogSelection(logs, self._scene.terms), keep=more, follow=self.follow if more else True)

    def set_terms(self, terms: tuple[LineFilterTerm, ...]) -> None:
        """Show only lines that match all terms; stays about where it was."""
        if terms != self._scene.terms:
            self._change(LogSelection(self._scene.logs, terms), keep=False, follow=self.follow)

    def _change(self, scene: LogSelection, *, keep: bool, follow: bool) -> None:
        before, self._scene = self._scene, scene
        self._longest_label = max((cell_len(label) for label, _ in scene.logs), default=0)
        here = self.here()
        self.stop_search()
        self.note = ""
        if not (keep and not scene.terms):
            self._forget()
            self.extent = Extent(counted=False)
        self.follow = follow
        if not follow and here is not None and {*before.logs} <= {*scene.logs}:
            self._go(Unit.OFFSET, here.offset)
        elif self._reader is not None:
            self._reader.jump(None)
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

    def set_wrapped(self, wrapped: bool) -> None:
        """Let long lines go on in the next row, or beyond the edge."""
        self.wrapped = wrapped
        self._moving = True
        self.scroll_to(x=0, animate=False, force=True)
        self.virtual_size = Size(0, self.virtual_size.height)
        self._moving = False
        self._grow(0)
        self._ask()
        self.refresh()
        self._tell()

    def _room(self) -> int:
        return self.scrollable_content_region.width - self._label_width

    def _loaded(self, first: int) -> list[Line]:
        """Return the lines that were read, from one on."""
        return self._lines[max(first - self._first, 0) :]

    def page_lines(self, direction: int) -> int:
        """Return how many lines the page has that is shown (1), or the one above it (-1)."""
        if not self.wrapped:
            return super().page_lines(direction)
        top = self.scroll_offset.y
        if direction > 0:
            return whole_lines(page_of(self._loaded(top), self._room(), self.height))
        return fitting_at_the_end(self._lines[: max(top - self._first, 0)], self._room(), self.height)

    def top_for(self, line: int) -> int:
        """Return the line to begin with so that `line` is well in sight."""
        return line if self.wrapped else super().top_for(line)

    def here(self) -> Line | None:
        """Return the line gone to last where that is visible, else the first one that is."""
        here = self.current if self.at_current and self.current is not None else self.scroll_offset.y
        place = here - self._first
        return self._lines[place] if 0 <= place < len(self._lines) else None

    def file_here(self) -> tuple[str, int, int | None]:
        """Return the file of the line that is shown, its offset there, and its number where that is known."""
        line = self.here()
        path = self._scene.logs[0][1] if self._scene.logs else ""
        if line is None:
            return path, 0, None
        if line.origin is not None:
            return *line.origin, None
        plain = self.extent.counted and not self._scene.terms
        number = self.current if self.at_current and self.current is not None else self.scroll_offset.y
        return path, line.offset, number + 1 if plain else None

    def in_sight(self) -> list[Line]:
        """Return the lines that are visible, as far as they have been read."""
        return self._loaded(self.scroll_offset.y)[: self.page_lines(1)]

    def on_lines_read(self, event: LinesRead) -> None:
        """Take lines in."""
        event.stop()
        if event.scene != self._scene:
            return
        before = self.extent
        if event.extent.problem or event.extent.prepared < 1:  # what was read stays to be seen
            self.extent = replace(before, problem=event.extent.problem, prepared=event.extent.prepared)
            self._tell()
            return
        self.extent = event.extent
        self.untimed = event.untimed
        same = event.extent.generation == before.generation
        if not same:
            self.note = "the log began anew"
            self.follow = True
            self._forget()
        self._first, self._lines = event.first, event.lines
        self._grow(event.extent.shift - before.shift if same else 0)
        self._ask()
        self.refresh()
        self._tell()

    def _grow(self, moved: int) -> None:
        """Take the log's length over; `moved` lines were found to come before the first one."""
        size = self._wrapped_size() if self.wrapped else self._unwrapped_size()
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

    def _unwrapped_size(self) -> Size:
        widest = max((width_of(line) for line in self._lines), default=0) + self._label_width
        return Size(max(widest + 1, self.virtual_size.width if self._lines else 0), self.extent.lines)

    def _wrapped_size(self) -> Size:
        """Return a size in which the last page begins with the last lines that fit on one."""
        if self._first + len(self._lines) >= self.extent.lines:
            self._last_page = fitting_at_the_end(self._lines, self._room(), self.height)
        return Size(0, self.extent.lines + max(self.height - self._last_page, 0) if self._lines else 0)

    def _forget(self) -> None:
        self._first, self._lines = 0, []
        self.current = None
        self._moving = True
        self.virtual_size = Size(0, 0)
        self._moving = False
        # Now, not when it is laid out: a move to what is then the end would be taken for the user's.
        self._move_to(0)
        self.refresh()

    @property
    def _label_width(self) -> int:
        return label_width(self._longest_label, self.size.width) if len(self._scene.logs) > 1 else 0

    def _ask(self) -> None:
        """Ask for what is visible and two pages around it, unless that is here already."""
        if self._reader is None or not self._scene.logs:
            return
        height = max(self.height, 1)
        top = self.scroll_offset.y
        if self.follow:
            self._reader.wish(ReadRequest(self._scene, 0, height * 3, follow=True))
            return
        near_start = top - height >= self._first or self._first == 0
        near_end = top + 2 * height <= self._first + len(self._lines)
        at_end = self._first + len(self._lines) >= self.extent.lines
        if not (near_start and (near_end or at_end) and self._lines):
            self._reader.wish(ReadRequest(self._scene, max(top - 2 * height, 0), height * 5, follow=False))

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
        if old_value > self.max_scroll_y:  # not the user's move: there was room for more lines
            self._ask()
            return
        follow = new_value >= self.max_scroll_y
        if follow != self.follow:
            self.follow = follow
            self.held_at = self.extent.lines
        self._ask()
        self._tell()

    def on_resize(self) -> None:
        """Keep the end in sight while following."""
        if self.wrapped:
            self._grow(0)
        if self.follow:
            self._move_to(self.max_scroll_y)
        self._ask()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines; the style, which takes a quarter of that, is worked out once for all of them."""
        self._looks = Looks(self.rich_style, self.get_component_rich_style)
        if self.wrapped:
            self._page = page_of(self._loaded(self.scroll_offset.y), self._room(), self.height)
        try:
            return super().render_lines(crop)
        finally:
            self._looks, self._page = None, []

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        looks = self._looks or Looks(self.rich_style, self.get_component_rich_style)
        row = self._page[y] if y < len(self._page) else None
        number = top + (row.place if row is not None else y)
        place = number - self._first
        if not 0 <= place < len(self._lines) or (row is None and self.wrapped):
            return Strip.blank(width, looks.base)
        line, here = self._lines[place], number == self.current
        if row is not None:
            part, more = (row.start, row.stop), not row.last and y == self.height - 1
            return strip_of_row(
                line, looks, self.search_query, part, (width, self._label_width), here=here, more=more
            )
        return strip_of(line, looks, self.search_query, (left, width, self._label_width), here=here)

    def action_scroll_home(self) -> None:
        """Go to the first line; of a long log, as soon as its lines are counted."""
        self.set_follow(False)
        self.scroll_to(x=0, y=0, animate=False)
        if not self.extent.counted:
            self._go(Unit.PERCENT, 0)
        self._ask()

    def action_scroll_end(self) -> None:
        """Go to the end and follow."""
        self.scroll_to(x=0, animate=False)
        self.set_follow(True)
