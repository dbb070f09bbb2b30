"""Lines of text that are repainted only when they change."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content, Span
from textual.widgets import Static


class StyledLines(Static):
    """Lines of styled text."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(Content(""), id=id, classes=classes)
        self._shown: list[tuple[str, tuple[Span, ...]]] = []

    def set_lines(self, lines: Sequence[Content]) -> None:
        """Show the lines."""
        shown = [(line.plain, tuple(line.spans)) for line in lines]
        if shown != self._shown:
            height_changed = len(shown) != len(self._shown)
            self._shown = shown
            self.update(Content("\n").join(lines), layout=height_changed)
