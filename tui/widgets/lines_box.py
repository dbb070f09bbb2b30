"""A scrolled box of styled lines that paints the visible ones alone.

Other lines, and another number of them, do not lay out the screen again, unless the scroll bar comes or goes:
with a text widget that took longer than everything else that follows a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content, Span
from textual.geometry import Size
from textual.strip import Strip
from textual.visual import Visual

from tui.widgets.line_view import LineView
from tui.widgets.styled_lines import are_same

_MOST_STRIPS = 500


class LinesBox(LineView, can_focus=True, inherit_bindings=False):
    """Lines of styled text; each is cut at the width."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "scroll_home", "First line", show=False),
        Binding("end,G", "scroll_end", "Last line", show=False),
    ]
    auto_links = False
    DEFAULT_CSS = """
    LinesBox { height: 1fr; padding: 0 1; overflow-x: hidden; }
    LinesBox { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines: tuple[Content, ...] = ()
        self._strips: dict[tuple[str, tuple[Span, ...], int], Strip] = {}
        """Painted lines, by text, styles and width."""

    def set_lines(self, lines: Sequence[Content]) -> None:
        """Show other lines; only those are painted that differ from the ones in their place."""
        if are_same(lines, self.lines):
            return
        before, self.lines = self.lines, tuple(lines)
        size, height = Size(0, len(lines)), self.container_size.height
        if height and (self.virtual_size.height > height) == (size.height > height):
            self.set_reactive(LinesBox.virtual_size, size)
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = size.height
            self.scroll_to(y=min(self.scroll_offset.y, self.max_scroll_y), animate=False)
        else:
            self.virtual_size = size
        for number, pair in enumerate(zip_longest(before, self.lines)):
            if None in pair or not pair[0].is_same(pair[1]):
                self.refresh_line(number)

    def notify_style_update(self) -> None:
        """Paint anew for another theme."""
        super().notify_style_update()
        self._strips = {}

    def render_line(self, y: int) -> Strip:
        """Return a line, cut at the width."""
        number, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if number >= len(self.lines):
            return Strip.blank(width, self.rich_style)
        line = self.lines[number]
        key = (line.plain, tuple(line.spans), width)
        strip = self._strips.get(key)
        if strip is None:
            cut = line.truncate(max(width, 1), ellipsis=True)
            (strip, *_) = Visual.to_strips(self, cut, width, 1, self.visual_style, pad=True) or [
                Strip.blank(width)
            ]
            if len(self._strips) >= _MOST_STRIPS:
                self._strips.clear()
            self._strips[key] = strip
        return strip

    def action_move(self, rows: int) -> None:
        """Scroll by lines."""
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False)

    def action_page(self, pages: int) -> None:
        """Scroll by pages, also where nothing is left to scroll."""
        self.scroll_to(y=self.scroll_offset.y + pages * max(self.size.height - 1, 1), animate=False)

    def action_scroll_home(self) -> None:
        """Scroll to the first line."""
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the last line."""
        self.scroll_end(animate=False)
