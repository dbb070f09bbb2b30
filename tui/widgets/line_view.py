"""Base of the views that draw their own lines."""

from __future__ import annotations

from textual.scroll_view import ScrollView


class LineView(ScrollView, inherit_bindings=False):
    """A scroll view whose bars have the right position also when they appear after a move.

    Textual updates a bar only while it is shown (`ScrollView.watch_scroll_y`).
    """

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Position the bar."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_show_horizontal_scrollbar(self, shown: bool) -> None:
        """Position the bar."""
        if shown:
            self.horizontal_scrollbar.position = self.scroll_x
