"""Choice list: rows of choices with a note each, filtered by typing, one of them current."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from launcher.text import clean
from tui.theme import CURRENT, OUTCOME_MARKS
from tui.widgets.line_view import LineView
from tui.widgets.line_wrap import shortened_name
from tui.widgets.panel import fitted


@dataclass(frozen=True, slots=True)
class ListChoice:
    """A choice: its text, a note beside it, a mark by outcome, and the value that it stands for."""

    text: str
    note: str = ""
    outcome: str = ""
    value: str = ""
    detail: str = ""
    """What is said in full while the choice is the current one."""


class ChoiceList(LineView, can_focus=False, inherit_bindings=False):
    """Choices below a field; the field keeps the focus and moves the cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"choice--cursor", "choice--note"}
    DEFAULT_CSS = """
    ChoiceList { height: auto; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; overflow-x: hidden; }
    ChoiceList > .choice--cursor { background: $primary 30%; text-style: bold; }
    ChoiceList > .choice--note { color: $text-muted; }
    """

    class ChoiceClicked(Message):
        """A choice was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    class Moved(Message):
        """The cursor moved."""

    def __init__(self) -> None:
        super().__init__()
        self._choices: tuple[ListChoice, ...] = ()
        self.cursor = 0

    @property
    def choices(self) -> tuple[ListChoice, ...]:
        """The choices that are listed."""
        return self._choices

    @property
    def current(self) -> ListChoice | None:
        """The choice under the cursor."""
        return self._choices[self.cursor] if 0 <= self.cursor < len(self._choices) else None

    def show(self, choices: Sequence[ListChoice], cursor: int = 0) -> None:
        """List choices; the cursor is on one of them (-1: on none)."""
        self._choices = tuple(choices)
        self.cursor = min(cursor, len(self._choices) - 1)
        self.virtual_size = Size(0, len(self._choices))
        self._reveal()
        self.refresh()

    def move(self, step: int) -> None:
        """Move the cursor by rows; it stays within the list."""
        if self._choices:
            self.cursor = min(max(self.cursor + step, 0), len(self._choices) - 1)
            self._reveal()
            self.refresh()

    def _reveal(self) -> None:
        height = max(self.size.height, 1)
        top = self.scroll_offset.y
        if self.cursor < top or self.cursor >= top + height:
            self.scroll_to(
                y=max(self.cursor - height + 1, 0) if self.cursor >= top else self.cursor, animate=False
            )

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of choices."""
        return len(self._choices)

    def on_click(self, event: Click) -> None:
        """Choose the row that was clicked."""
        event.stop()
        index = event.y + self.scroll_offset.y
        if index < len(self._choices):
            self.post_message(self.ChoiceClicked(index))

    def render_line(self, y: int) -> Strip:
        """Return a row: cursor, mark, text, and the note at a common column."""
        index, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if index >= len(self._choices):
            return Strip.blank(width, self.rich_style)
        choice, current = self._choices[index], index == self.cursor
        base = self.rich_style
        if current:
            base = base + self.fill("choice--cursor")
        column = self._text_column(width)
        mark = OUTCOME_MARKS[choice.outcome].glyph if choice.outcome else " "
        head = f"{CURRENT.glyph if current else ' '}{mark} "
        note = base + self.ink("choice--note")
        room = max(width - len(head) - column, 0)
        gap = 1 if column < width else 0  # also behind a text that is cut
        text = shortened_name(clean(choice.text), column - gap)
        return Strip(
            [
                Segment(head + fitted(text, column - gap) + " " * gap, base),
                Segment(fitted(clean(choice.note), room), base if current else note),
            ]
        ).adjust_cell_length(width, base)

    def _text_column(self, width: int) -> int:
        """Return the columns of the texts: all where nothing has a note, else at most two thirds."""
        if not any(item.note for item in self._choices):
            return width
        return min(max(cell_len(clean(item.text)) for item in self._choices) + 2, width * 2 // 3)
