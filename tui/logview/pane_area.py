"""The area of the log panes: each at its rectangle, with lines between those side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from rich.segment import Segment
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, WidgetPlacement
from textual.layout import Layout as TextualLayout
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.logview.layouts import Rectangle


class _RectanglesLayout(TextualLayout):
    name = "rectangles"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        """Give each child its rectangle."""
        assert isinstance(parent, PaneArea)
        return [
            WidgetPlacement(Region(*parent.places[child]), NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if child in parent.places
        ]


class PaneArea(Widget):
    """Holds panes at given rectangles."""

    DEFAULT_CSS = "PaneArea { height: 1fr; width: 1fr; }"
    COMPONENT_CLASSES: ClassVar[set[str]] = {"panes--line"}
    auto_links = False

    class Resized(Message):
        """The area has another size."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Mapping[Widget, Rectangle] = {}
        self._rectangles = _RectanglesLayout()

    @property
    def layout(self) -> TextualLayout:
        """The layout of the panes."""
        return self._rectangles

    def set_places(self, places: Mapping[Widget, Rectangle]) -> None:
        """Move the panes; those without a rectangle are hidden."""
        if dict(places) == dict(self.places):
            return
        self.places = dict(places)
        for child in self.children:
            child.display = child in self.places
            child.refresh(layout=True)  # which drops the arrangement that the area keeps for its size
        self.refresh()  # the lines between panes

    def on_resize(self) -> None:
        """Have the panes placed anew."""
        self.post_message(self.Resized())

    def render_line(self, y: int) -> Strip:
        """Draw the lines between panes."""
        base = self.get_component_rich_style("panes--line")
        ends = sorted(
            place.x + place.width
            for place in self.places.values()
            if place.y <= y < place.y + place.height and place.x + place.width < self.size.width
        )
        segments, x = [], 0
        for end in ends:
            segments += [Segment(" " * (end - x), base), Segment("│", base)]
            x = end + 1
        return Strip([*segments, Segment(" " * max(self.size.width - x, 0), base)], self.size.width)
