"""What all views that draw their own lines share."""

from __future__ import annotations

from textual.scroll_view import ScrollView


class LineView(ScrollView, inherit_bindings=False):
    """A scroll view whose bars stand where the view is, also when they appear after it moved.

    Textual tells a bar of a move only while the bar is shown (`ScrollView.watch_scroll_y`).
    """

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Place the bar."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_show_horizontal_scrollbar(self, shown: bool) -> None:
        """Place the bar."""
        if shown:
            self.horizontal_scrollbar.position = self.scroll_x
