"""Movement of a border between panes by the mouse."""

from __future__ import annotations

from collections.abc import Sequence

from tui.logview.layouts import Border, Rectangle, border_at


class BorderDrag:
    """The border that the mouse holds, if any, and where it held it last."""

    def __init__(self) -> None:
        self._border: Border | None = None
        self._last = (0, 0)

    @property
    def active(self) -> bool:
        """Whether a border is held."""
        return self._border is not None

    def begin(self, shape: Sequence[int], places: Sequence[Rectangle], x: int, y: int) -> bool:
        """Take the border at a cell of the area; False where there is none."""
        self._border = border_at(shape, places, x, y)
        self._last = (x, y)
        return self.active

    def moved(self, x: int, y: int) -> tuple[int, int, int] | None:
        """Return the pane that grows, and by how many columns and rows; None for a border that stays."""
        if self._border is None:
            return None
        columns, rows = x - self._last[0], y - self._last[1]
        self._last = (x, y)
        if self._border.vertical:
            return (self._border.pane, columns, 0) if columns else None
        return (self._border.pane, 0, rows) if rows else None

    def end(self) -> bool:
        """Leave the border where it is; False where none was held."""
        held = self.active
        self._border = None
        return held
