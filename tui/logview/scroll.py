"""Moving about in a log by keys: line by line, by pages, and sideways."""

from __future__ import annotations

from tui.widgets.scrolling import LineView

_SIDEWAYS = 8


class LogScroll(LineView):
    """A view that scrolls at once, without animation: over a slow line each frame would be sent."""

    @property
    def height(self) -> int:
        """Lines that fit."""
        return self.scrollable_content_region.height

    def page_lines(self, direction: int) -> int:
        """Return how many lines the page has that is shown (1), or the one above it (-1)."""
        return max(self.height, 1)

    @property
    def bottom(self) -> int:
        """The last line that is visible."""
        return self.scroll_offset.y + self.page_lines(1) - 1

    def top_for(self, line: int) -> int:
        """Return the line to begin with so that `line` is well in sight."""
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
