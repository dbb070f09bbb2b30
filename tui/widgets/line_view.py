"""Base of the views that draw their own lines."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView


class LineView(ScrollView, inherit_bindings=False):
    """A scroll view whose bars have the right position also when they appear after a move.

    Textual updates a bar only while it is shown (`ScrollView.watch_scroll_y`).
    """

    def __init__(self) -> None:
        super().__init__()
        self._row_styles: dict[str, Style] = {}

    def notify_style_update(self) -> None:
        """Compute the styles anew for another theme."""
        super().notify_style_update()
        self._row_styles = {}

    @property
    def base(self) -> Style:
        """The view's own style; computing it walks up to the app, which takes 0.1 ms a line."""
        if "" not in self._row_styles:
            self._row_styles[""] = self.rich_style
        return self._row_styles[""]

    def ink(self, name: str) -> Style:
        """Return the colour and weight of a component class, without a background, to lay over any row."""
        if name not in self._row_styles:
            style = self.get_component_rich_style(name)
            self._row_styles[name] = style.without_color + Style(color=style.color)
        return self._row_styles[name]

    def fill(self, name: str) -> Style:
        """Return the background and weight of a component class, for a whole row."""
        key = f"{name} fill"
        if key not in self._row_styles:
            style = self.get_component_rich_style(name)
            self._row_styles[key] = style.without_color + Style(bgcolor=style.bgcolor)
        return self._row_styles[key]

    def set_content_size(self, size: Size) -> None:
        """Set the size of the content; lays the screen out again only where the vertical bar comes or goes.

        Textual does so at every change of the size, which paints everything: half of the time that it takes
        to follow a log. The horizontal bar must have no height.
        """
        if size == self.virtual_size:
            return
        height = self.container_size.height
        if self.show_vertical_scrollbar and size.height > height and self.virtual_size.height > height:
            self.set_reactive(LineView.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        else:
            self.virtual_size = size

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Position the bar."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_show_horizontal_scrollbar(self, shown: bool) -> None:
        """Position the bar."""
        if shown:
            self.horizontal_scrollbar.position = self.scroll_x
