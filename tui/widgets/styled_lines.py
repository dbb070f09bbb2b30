"""Lines of text that are repainted only when they change."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static


def are_same(lines: Sequence[Content], others: Sequence[Content]) -> bool:
    """Return whether text and styles are the same. Their markup would take ten times as long to compare."""
    if len(lines) != len(others):
        return False
    return all(line.is_same(other) for line, other in zip(lines, others, strict=True))


class StyledLines(Static):
    """Lines of styled text."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(Content(""), id=id, classes=classes)
        self._lines: tuple[Content, ...] = ()

    def set_lines(self, lines: Sequence[Content]) -> None:
        """Show the lines."""
        if are_same(lines, self._lines):
            return
        height_changed = len(lines) != len(self._lines)
        self._lines = tuple(lines)
        self.update(Content("\n").join(lines), layout=height_changed)
