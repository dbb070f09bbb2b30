"""Lines of text that are repainted only when they change."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static


class StyledLines(Static):
    """Lines of styled text."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(Content(""), id=id, classes=classes)
        self._markup: list[str] = []

    def set_lines(self, lines: Sequence[Content]) -> None:
        """Show the lines."""
        markup = [line.markup for line in lines]
        if markup != self._markup:
            height_changed = len(markup) != len(self._markup)
            self._markup = markup
            self.update(Content("\n").join(lines), layout=height_changed)
