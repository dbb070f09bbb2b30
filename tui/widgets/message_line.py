"""Message line: what has just happened or what is wrong, in one line above the key bar."""

from __future__ import annotations

from textual.content import Content

from launcher.text import clean
from tui.theme import OUTCOME_MARKS
from tui.widgets.styled_lines import StyledLines


class MessageLine(StyledLines):
    """One line: a mark for its level, and the message."""

    DEFAULT_CSS = "MessageLine { height: 1; width: 100%; padding: 0 1; }"

    def __init__(self) -> None:
        super().__init__()
        self._message = ("", "")

    @property
    def text(self) -> str:
        """The message."""
        return self._message[1]

    def say(self, text: str, level: str = "") -> None:
        """Show a message; `level` is that of an outcome (pass, warn, fail), or empty for a remark."""
        self._message = (level, clean(text))
        self._paint()

    def on_resize(self) -> None:
        """Cut the message to the new width."""
        self._paint()

    def _paint(self) -> None:
        level, text = self._message
        mark = OUTCOME_MARKS.get(level)
        line = Content.assemble((f"{mark.glyph} ", mark.style) if mark else "", text)
        self.set_lines([line.truncate(max(self.size.width - 2, 1), ellipsis=True)])
