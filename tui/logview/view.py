"""A log's lines on the screen. Only the visible lines and a few pages around them are in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from textual.geometry import Region, Size
from textual.strip import Strip

from tui.commands import Scope, bindings
from tui.logview.line import Line
from tui.logview.line_index import Extent
from tui.logview.log_reader import LogReader
from tui.logview.match import LineFilterTerm
from tui.logview.navigator import LogNavigator
from tui.logview.paint import LogStyles, label_width, strip_of, strip_of_row, width_of
from tui.logview.read_requests import (
    JumpResult,
    LinesRead,
    LogSelection,
    MatchesCounted,
    ReadRequest,
    SearchFinished,
    SearchProgress,
    Unit,
)
from tui.logview.reader_thread import ReaderThread
from tui.logview.scroll import LogScroll
from tui.logview.wrap import WrappedRow, lines_on_last_page, page_of, whole_lines

_UNREAD = -1
"""Generation of a log of which nothing has been read."""


class LogView(LogScroll, can_focus=True, inherit_bindings=False):
    """A log, or several merged: following its end, or paused where it was scrolled to."""

    BINDINGS = bindings(Scope.LOG)
    COMPONENT_CLASSES: ClassVar[set[str]] = LogStyles.CLASSES

    def __init__(self, status_changed: Callable[[], None]) -> None:
        super().__init__()
        self.post_status = status_changed
        """Announces that the status line has changed: at once, so that it is painted with the lines."""
        self._reader: LogReader | None = None
        self._reading = True
        self._selection = LogSelection()
        self._longest_label = 0
        self._first = 0
        self._lines: list[Line] = []
        self._moving = False
        self._log_styles: LogStyles | None = None
        self._page: list[WrappedRow] = []
        """Rows that are being drawn, while lines are wrapped."""
        self._last_page = 1
        """Number of lines on the last page, while lines are wrapped."""
        self.extent = Extent(generation=_UNREAD)
        self.follow = True
        self._awaited_top: int | None = None
        """First line of the page that a jump leads to, until it is read."""
        self.navigator = LogNavigator(self)
        self.wrapped = False
        """Whether long lines continue on the next row rather than beyond the edge."""
        self.untimed: tuple[str, ...] = ()
        """Of merged logs, those without times."""
        self.lines_at_pause = 0
        """Number of lines when following was paused."""

    def read_on(self, thread: ReaderThread) -> None:
        """Read on this thread from now on."""
        self._reader = LogReader(thread, self)
        self.navigator.attach(self._reader)
        self.request_lines()

    def set_reading(self, reading: bool) -> None:
        """Read while the view is visible."""
        if reading != self._reading:
            self._reading = reading
            if self._reader is not None and reading:
                self._reader.resume()
            elif self._reader is not None:
                self._reader.stop()

    def on_unmount(self) -> None:
        """End reading."""
        if self._reader is not None:
            self._reader.stop()

    def open(self, *logs: tuple[str, str]) -> None:
        """Show other logs (label and path; several are merged), at their end. A filter stays."""
        if logs == self._selection.logs:
            return
        added = len(self._selection.logs) > 1 and set(self._selection.logs) <= set(logs)
        selection = LogSelection(logs, self._selection.terms)
        self._select(selection, keep_lines=added, follow=self.follow if added else True)

    def set_terms(self, terms: tuple[LineFilterTerm, ...]) -> None:
        """Show only lines that match all terms; keeps the position as far as possible."""
        if terms != self._selection.terms:
            selection = LogSelection(self._selection.logs, terms)
            self._select(selection, keep_lines=False, follow=self.follow)

    def _select(self, selection: LogSelection, *, keep_lines: bool, follow: bool) -> None:
        previous, self._selection = self._selection, selection
        self._longest_label = max((cell_len(label) for label, _ in selection.logs), default=0)
        line = self.active_line()
        self.navigator.stop_search()
        self.navigator.note = ""
        if not (keep_lines and not selection.terms):
            self._clear()
            self.extent = Extent(counted=False, generation=_UNREAD)
        self.follow = follow
        if not follow and line is not None and {*previous.logs} <= {*selection.logs}:
            self.navigator.jump(Unit.OFFSET, line.offset)
        elif self._reader is not None:
            self._reader.jump(None)
        self.request_lines()
        self.post_status()

    @property
    def unanswered(self) -> float:
        """Seconds since the file system stopped answering; 0 below two seconds."""
        busy_s = self._reader.busy_for if self._reader is not None else 0.0
        return busy_s if busy_s > 2 else 0.0

    @property
    def new_lines(self) -> int:
        """Number of lines added since following was paused."""
        return 0 if self.follow else max(self.extent.lines - self.lines_at_pause, 0)

    def set_follow(self, follow: bool) -> None:
        """Follow the log's end, or pause."""
        if follow != self.follow:
            self.follow = follow
            self.lines_at_pause = self.extent.lines
            self.post_status()
        if follow:
            self.move_to(self.max_scroll_y)
            self.request_lines()

    def set_wrapped(self, wrapped: bool) -> None:
        """Continue long lines on the next row, or beyond the edge."""
        self.wrapped = wrapped
        self._moving = True
        self.scroll_to(x=0, animate=False, force=True)
        self.virtual_size = Size(0, self.virtual_size.height)
        self._moving = False
        self._resize_content(0)
        self.request_lines()
        self.refresh()
        self.post_status()

    def _room(self) -> int:
        return self.scrollable_content_region.width - self._label_width

    def _loaded(self, first: int) -> list[Line]:
        """Return the lines that were read, from one on."""
        return self._lines[max(first - self._first, 0) :]

    def page_lines(self, direction: int) -> int:
        """Return the number of lines on the visible page (1) or on the one above it (-1)."""
        if not self.wrapped:
            return super().page_lines(direction)
        top = self.scroll_offset.y
        if direction > 0:
            return whole_lines(page_of(self._loaded(top), self._room(), self.height))
        return lines_on_last_page(self._lines[: max(top - self._first, 0)], self._room(), self.height)

    def top_for(self, line: int) -> int:
        """Return the line to begin the page with so that `line` is well visible."""
        return line if self.wrapped else super().top_for(line)

    @property
    def _active_number(self) -> int:
        """Number of the current line where that is visible, else of the first visible one."""
        navigator = self.navigator
        if navigator.current_visible and navigator.current is not None:
            return navigator.current
        return self.scroll_offset.y

    def active_line(self) -> Line | None:
        """Return the current line where that is visible, else the first visible one."""
        index = self._active_number - self._first
        return self._lines[index] if 0 <= index < len(self._lines) else None

    def file_position(self) -> tuple[str, int, int | None]:
        """Return the active line's file, its offset there, and its number (None where unknown)."""
        line = self.active_line()
        path = self._selection.logs[0][1] if self._selection.logs else ""
        if line is None:
            return path, 0, None
        if line.origin is not None:
            return *line.origin, None
        numbered = self.extent.counted and not self._selection.terms
        return path, line.offset, self._active_number + 1 if numbered else None

    def visible_lines(self) -> list[Line]:
        """Return the visible lines, as far as they have been read."""
        return self._loaded(self.scroll_offset.y)[: self.page_lines(1)]

    def on_lines_read(self, event: LinesRead) -> None:
        """Show lines that were read."""
        event.stop()
        if event.selection != self._selection:
            return
        previous = self.extent
        if event.extent.problem or event.extent.prepared < 1:  # the lines that were read stay visible
            self.extent = replace(previous, problem=event.extent.problem, prepared=event.extent.prepared)
            self.post_status()
            return
        self.extent = event.extent
        self.untimed = event.untimed
        same_file = event.extent.generation == previous.generation
        if not same_file and previous.generation != _UNREAD:
            self.navigator.note = "the log was reset"
            self.follow = True
            self._clear()
        self._first, self._lines = event.first, event.lines
        self._resize_content(event.extent.shift - previous.shift if same_file else 0)
        self.request_lines()
        self.refresh()
        self.post_status()

    def on_search_progress(self, event: SearchProgress) -> None:
        """Show the progress of a search."""
        event.stop()
        self.navigator.show_progress(event)

    def on_search_finished(self, event: SearchFinished) -> None:
        """Go to the match."""
        event.stop()
        self.navigator.finish_search(event)

    def on_matches_counted(self, event: MatchesCounted) -> None:
        """Show the position of the current match."""
        event.stop()
        self.navigator.show_position(event)

    def on_jump_result(self, event: JumpResult) -> None:
        """Go to the line of a jump."""
        event.stop()
        self.navigator.finish_jump(event)

    def _resize_content(self, moved: int) -> None:
        """Adopt the log's length; `moved` lines were counted before the line that was the first."""
        size = self._wrapped_size() if self.wrapped else self._unwrapped_size()
        self._moving = True
        self.set_content_size(size)
        if self.follow:
            self.move_to(self.max_scroll_y)
        elif moved:
            self.lines_at_pause += moved
            navigator = self.navigator
            navigator.current = navigator.current + moved if navigator.current is not None else None
            self.move_to(self.scroll_offset.y + moved)
        elif self._awaited_top is not None:  # a jump was answered before the first lines
            self.move_to(self._awaited_top)
        self._moving = False

    def _unwrapped_size(self) -> Size:
        widest = max((width_of(line) for line in self._lines), default=0) + self._label_width
        return Size(max(widest + 1, self.virtual_size.width if self._lines else 0), self.extent.lines)

    def _wrapped_size(self) -> Size:
        """Return a size at which the last page begins with the last lines that fit on one."""
        if self._first + len(self._lines) >= self.extent.lines:
            self._last_page = lines_on_last_page(self._lines, self._room(), self.height)
        return Size(0, self.extent.lines + max(self.height - self._last_page, 0) if self._lines else 0)

    def _clear(self) -> None:
        self._first, self._lines = 0, []
        self.navigator.current = None
        self._moving = True
        self.virtual_size = Size(0, 0)
        self._moving = False
        # At once, not at the next layout: a move to the end of that time would be taken for the user's.
        self.move_to(0)
        self.refresh()

    @property
    def _label_width(self) -> int:
        return label_width(self._longest_label, self.size.width) if len(self._selection.logs) > 1 else 0

    def request_lines(self) -> None:
        """Request the visible lines and two pages around them, unless they have been read."""
        if self._reader is None or not self._selection.logs:
            return
        height = max(self.height, 1)
        top = self.scroll_offset.y
        if self.follow:
            self._reader.request(ReadRequest(self._selection, 0, height * 3, follow=True))
            return
        near_start = top - height >= self._first or self._first == 0
        near_end = top + 2 * height <= self._first + len(self._lines)
        at_end = self._first + len(self._lines) >= self.extent.lines
        if not (near_start and (near_end or at_end) and self._lines):
            self._reader.request(
                ReadRequest(self._selection, max(top - 2 * height, 0), height * 5, follow=False)
            )

    def move_to(self, line: int) -> None:
        """Begin the page with a line, or show the last page; one that is not read yet, once it is."""
        self._awaited_top = line if self.extent.generation == _UNREAD or line >= self.extent.lines else None
        was_moving, self._moving = self._moving, True
        self.scroll_to(y=line, animate=False, force=True)
        self._moving = was_moving

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow at the end, pause elsewhere; the log's own growth changes neither."""
        super().watch_scroll_y(old_value, new_value)
        if self._moving or round(old_value) == round(new_value):
            return
        if old_value > self.max_scroll_y:  # not the user's move: the view became taller
            self.request_lines()
            return
        self._awaited_top = None
        follow = new_value >= self.max_scroll_y
        if follow != self.follow:
            self.follow = follow
            self.lines_at_pause = self.extent.lines
        self.request_lines()
        self.post_status()

    def on_resize(self) -> None:
        """Keep the end visible while following."""
        if self.wrapped:
            self._resize_content(0)
        if self.follow:
            self.move_to(self.max_scroll_y)
        self.request_lines()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines; the style, a quarter of the cost, is resolved once for all of them."""
        self._log_styles = LogStyles(self.rich_style, self.get_component_rich_style)
        if self.wrapped:
            self._page = page_of(self._loaded(self.scroll_offset.y), self._room(), self.height)
        try:
            return super().render_lines(crop)
        finally:
            self._log_styles, self._page = None, []

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        left, top = self.scroll_offset
        width = self.scrollable_content_region.width
        styles = self._log_styles or LogStyles(self.rich_style, self.get_component_rich_style)
        row = self._page[y] if y < len(self._page) else None
        number = top + (row.index if row is not None else y)
        index = number - self._first
        if not 0 <= index < len(self._lines) or (row is None and self.wrapped):
            return Strip.blank(width, styles.base)
        line, query = self._lines[index], self.navigator.query
        current = number == self.navigator.current
        if row is not None:
            part, cut = (row.start, row.stop), not row.last and y == self.height - 1
            frame = width, self._label_width
            return strip_of_row(line, styles, query, part, frame, current=current, cut=cut)
        return strip_of(line, styles, query, (left, width, self._label_width), current=current)

    def action_scroll_home(self) -> None:
        """Go to the first line; in a long log, once its lines are counted."""
        self.set_follow(False)
        self.scroll_to(x=0, y=0, animate=False)
        if not self.extent.counted:
            self.navigator.jump(Unit.PERCENT, 0)
        self.request_lines()

    def action_scroll_end(self) -> None:
        """Go to the end and follow."""
        self.scroll_to(x=0, animate=False)
        self.set_follow(True)
