"""Input of one line: its text does not lay out the screen, and a long path is shown in short."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Size
from textual.reactive import Reactive
from textual.strip import Strip
from textual.widgets import Input

from launcher.text import clean
from tui.widgets.line_wrap import shortened_path


class LineInput(Input):
    """Input whose text does not lay out the screen: Textual does so at every key, for its size changes.

    Without the focus a path that is longer than the field is shortened in its middle.
    """

    virtual_size = Reactive(Size(0, 0))

    def render_line(self, y: int) -> Strip:
        """Return the line: in full while it has the focus, where it scrolls."""
        width = self.scrollable_content_region.width
        if y != 0 or self.has_focus or cell_len(self.value) < width:
            return super().render_line(y)
        shown = Segment(shortened_path(clean(self.value), width))
        return Strip([shown]).extend_cell_length(width + 1).apply_style(self.rich_style)
