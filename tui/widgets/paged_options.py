"""A list of options that takes every key, whatever its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widgets import OptionList

if TYPE_CHECKING:
    from textual._widget_navigation import Direction


class PagedOptions(OptionList):
    """Options that can be paged through before they have lines; in a terminal too narrow they have none."""

    def _move_page(self, direction: Direction) -> None:
        if (self.highlighted or 0) in self._index_to_line:
            super()._move_page(direction)
