"""The file's text, read only: highlighted, with line numbers, and marks of the current key and of changes."""

from __future__ import annotations

from collections.abc import Container
from itertools import pairwise
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from launcher.text import clean
from tui.commands import Scope, bindings
from tui.widgets.line_view import LineView
from tui.widgets.yaml_tokens import KINDS, ScanState, Token, scan_line

_CHANGED, _UNCHANGED = "▌", " "


class RecipeTextView(LineView, can_focus=True, inherit_bindings=False):
    """Lines of the text; only the visible ones are painted."""

    BINDINGS = bindings(Scope.OUTLINE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "text--cursor", "text--range", "text--number", "text--changed", "text--error",
        *(f"yaml--{kind}" for kind in KINDS),
    }  # fmt: skip

    class LineFocused(Message):
        """The cursor moved to another line, counted from 1."""

        def __init__(self, line: int) -> None:
            super().__init__()
            self.line = line

    class TextRequested(Message):
        """The text was opened with the mouse."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._tokens: list[tuple[Token, ...]] = []
        self._changed: Container[int] = ()
        self._range = (0, 0)
        self._error_line = 0
        self.line = 1
        """Line of the cursor, counted from 1."""

    def show(self, text: str, changed: Container[int], error_line: int = 0) -> None:
        """Show a text; `changed`: lines that differ from the file. Lines are those of YAML."""
        lines = [clean(line) for line in split_lines(text)]
        if lines != self._lines:
            self._lines = lines
            self._tokens = []
            state = ScanState()
            for line in lines:
                tokens, state = scan_line(line, state)
                self._tokens.append(tokens)
            self.virtual_size = Size(max(map(len, lines), default=0) + self._gutter + 1, len(lines))
            self.line = min(max(self.line, 1), max(len(lines), 1))
        self._changed, self._error_line = changed, error_line
        self.refresh()

    def mark(self, first: int, last: int) -> None:
        """Mark the lines of the current key and bring them into view; (0, 0) for a key that is not here."""
        self._range = (first, last)
        if first:
            self.line = first
            self._reveal(first, last)
        self.refresh()

    def mark_quietly(self, first: int, last: int) -> None:
        """Mark the lines of the current key without moving."""
        self._range = (first, last)
        self.refresh()

    @property
    def _gutter(self) -> int:
        return len(str(max(len(self._lines), 1))) + 3

    def _reveal(self, first: int, last: int) -> None:
        """Bring lines into view, moving no more than needed, with a line of context."""
        height, top = self.size.height, self.scroll_offset.y
        if not height:  # not shown: the resize reveals it
            return
        if first - 1 < top:
            self.scroll_to(y=max(first - 2, 0), animate=False, force=True)
        elif min(last, first + height - 1) > top + height:
            self.scroll_to(y=min(last, first + height - 2) - height + 1, animate=False, force=True)

    def on_resize(self) -> None:
        """Keep the current line in view."""
        self._reveal(*(self._range if self._range[0] else (self.line, self.line)))

    def on_click(self, event: Click) -> None:
        """Move to the line that was clicked; a second click edits the text."""
        event.stop()
        line = event.y + self.scroll_offset.y + 1
        if self.has_focus and line == self.line:
            self.post_message(self.TextRequested())
        self.focus()
        self.go_to(line)

    def action_cursor(self, step: int) -> None:
        """Move by lines."""
        self.go_to(self.line + step)

    def action_page(self, direction: int) -> None:
        """Move by a page."""
        self.go_to(self.line + direction * max(self.size.height - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move to the first or the last line."""
        self.go_to(1 if direction < 0 else len(self._lines))

    def action_fold(self) -> None:
        """Scroll to the left."""
        self.scroll_to(x=self.scroll_offset.x - 8, animate=False)

    def action_unfold(self) -> None:
        """Scroll to the right."""
        self.scroll_to(x=self.scroll_offset.x + 8, animate=False)

    def action_fold_all(self) -> None:
        """Scroll back to the first column."""
        self.scroll_to(x=0, animate=False)

    def go_to(self, line: int) -> None:
        """Move to a line, counted from 1."""
        self.line = min(max(line, 1), max(len(self._lines), 1))
        self._reveal(self.line, self.line)
        self.refresh()
        self.post_message(self.LineFocused(self.line))

    def render_line(self, y: int) -> Strip:
        """Return a line: number, mark of a change, text."""
        left, top = self.scroll_offset
        width, index = self.scrollable_content_region.width, y + top
        base = self.rich_style
        if index >= len(self._lines):
            return Strip.blank(width, base)
        number = index + 1
        if number == self.line and self.has_focus:
            base = base + self.fill("text--cursor")
        elif self._range[0] <= number <= self._range[1]:
            base = base + self.fill("text--range")
        wrong = number == self._error_line
        gutter = [
            Segment(
                f"{number:>{self._gutter - 3}} ",
                base + self.ink("text--error" if wrong else "text--number"),
            ),
            Segment(
                "✗ " if wrong else f"{_CHANGED if number in self._changed else _UNCHANGED} ",
                base + self.ink("text--error" if wrong else "text--changed"),
            ),
        ]
        room = max(width - self._gutter + 1, 1)
        body = Strip(self._segments(index, base)).crop_extend(left, left + room, base)
        return Strip([*gutter, *body]).adjust_cell_length(width, base)

    def _segments(self, index: int, base: Style) -> list[Segment]:
        line, tokens = self._lines[index], self._tokens[index]
        edges = sorted({0, len(line), *(edge for token in tokens for edge in token[:2])})
        kinds = {token.start: token for token in tokens}
        segments = []
        for start, end in pairwise(edges):
            token = kinds.get(start)
            style = base + self.ink(f"yaml--{token.kind}") if token is not None else base
            segments.append(Segment(line[start:end], style))
        return segments


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as YAML counts them, without a last empty one."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines
