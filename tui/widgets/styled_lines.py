"""Text that is painted again only when it looks different."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static


class StyledLines(Static):
    """Some lines of text."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(Content(""), id=id, classes=classes)
        self._said: list[str] = []

    def say(self, lines: Sequence[Content]) -> None:
        """Show the lines, if they are not what is shown."""
        said = [line.markup for line in lines]
        if said != self._said:
            taller = len(said) != len(self._said)
            self._said = said
            self.update(Content("\n").join(lines), layout=taller)
