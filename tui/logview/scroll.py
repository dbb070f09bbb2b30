"""Scrolling in a log by keys: by lines, by pages, and sideways."""

from __future__ import annotations

from tui.widgets.line_view import LineView

_SIDEWAYS = 8


class LogScroll(LineView):
    """A view that scrolls without animation: over a slow connection each frame would be sent."""

    @property
    def height(self) -> int:
        """Rows of the view."""
        return self.scrollable_content_region.height

    def page_lines(self, direction: int) -> int:
        """Return the number of lines on the visible page (1) or on the one above it (-1)."""
        return max(self.height, 1)

    @property
    def top_line(self) -> int:
        """The first visible line."""
        return self.scroll_offset.y

    @property
    def bottom_line(self) -> int:
        """The last visible line."""
        return self.scroll_offset.y + self.page_lines(1) - 1

    def top_for(self, line: int) -> int:
        """Return the line to begin the page with so that `line` is well visible."""
        return line - self.height // 2

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
        self._by(-max(self.page_lines(-1) - 1, 1))

    def action_page_down(self) -> None:
        """Go a page down."""
        self._by(max(self.page_lines(1) - 1, 1))

    def action_scroll_left(self) -> None:
        """Scroll sideways."""
        self.scroll_to(x=self.scroll_offset.x - _SIDEWAYS, animate=False)

    def action_scroll_right(self) -> None:
        """Scroll sideways."""
        self.scroll_to(x=self.scroll_offset.x + _SIDEWAYS, animate=False)
