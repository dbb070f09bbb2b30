"""Entry dialog: one field with choices below it, over the screen or in place over a cell of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Offset
from textual.screen import ModalScreen
from textual.widgets import Input

from launcher.text import clean
from tui.theme import OUTCOME_MARKS
from tui.widgets.choice_list import ChoiceList, ListChoice
from tui.widgets.line_wrap import wrapped
from tui.widgets.styled_lines import StyledLines

_MOST_CHOICES = 9
_MOST_HINT_LINES = 4
_LEAST_WIDTH = 34
_BOX_WIDTH, _BOX_EDGES = 76, 4
"""Columns of a box that is not in place, and those of its border and padding."""


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Cell of the screen that an entry stands over, and its width."""

    offset: Offset
    width: int


@dataclass(frozen=True, slots=True)
class EntryRequest:
    """What is asked for: title, present text, and a line that says what is accepted."""

    title: str
    text: str = ""
    hint: str = ""
    choices: tuple[ListChoice, ...] = ()
    filtered: bool = False
    """Whether typing filters the choices; else it only marks the one that is typed."""
    select: bool = True
    """Whether the present text is selected, so that typing replaces it."""
    choose: bool = False
    """Whether the answer is the value of the choice under the cursor, rather than the text."""


class EntryDialog(ModalScreen[str | None]):
    """A field whose arrows go through choices; answers with the text, None where it is dismissed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f2", "leave", "Leave", show=False, priority=True),
        Binding("up", "move(-1)", "Previous choice", show=False, priority=True),
        Binding("down", "move(1)", "Next choice", show=False, priority=True),
        Binding("pageup", "move(-8)", "Page up", show=False, priority=True),
        Binding("pagedown", "move(8)", "Page down", show=False, priority=True),
        Binding("f1", "app.help", "Help", show=False),
    ]
    DEFAULT_CSS = """
    EntryDialog { background: transparent; }
    EntryDialog.-in-place { align: left top; }
    EntryDialog .entry-box { height: auto; background: $surface; }
    EntryDialog.-over .entry-box { width: 76; max-width: 96%; border: round $primary; padding: 0 1; }
    EntryDialog.-over .entry-box { border-title-color: $text-primary; border-title-style: bold; }
    EntryDialog.-in-place .entry-box { position: absolute; }
    EntryDialog Input { height: 1; width: 1fr; border: none; padding: 0; background: $panel; }
    EntryDialog.-in-place Input { background: $primary 40%; }
    EntryDialog.-in-place ChoiceList, EntryDialog.-in-place .entry-hint { border-left: outer $primary; }
    EntryDialog.-list Input { height: 0; }
    EntryDialog.-list ChoiceList { margin: 0; }
    EntryDialog ChoiceList { max-height: 9; background: $surface; }
    EntryDialog.-over ChoiceList { margin: 1 0 0 0; }
    EntryDialog .entry-hint { height: auto; color: $text-muted; }
    EntryDialog.-over .entry-hint { margin: 1 0 0 0; }
    """

    def __init__(
        self,
        entry: EntryRequest,
        *,
        place: EntryPlace | None = None,
        typed: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(classes="-over" if place is None else "-in-place")
        # Without a search there is nothing to type: only the list is shown.
        self.set_class(entry.choose and typed is None, "-list")
        self._entry, self._place, self._typed = entry, place, typed
        self._all = entry.choices
        self._touched = False
        self._hint = (entry.hint, "")
        self._hint_text = Content("")
        """What is shown below the field: the hint, or what is said of the choice under the cursor."""
        self.field = Input(clean(entry.text), compact=True, select_on_focus=entry.select)
        self.field.cursor_blink = False
        self.list = ChoiceList()
        self._hint_line = StyledLines(classes="entry-hint")
        self._box = Vertical(self.field, self.list, self._hint_line, classes="entry-box")

    def compose(self) -> ComposeResult:
        """Lay out."""
        if self._place is None:
            self._box.border_title = Content(clean(self._entry.title))
        yield self._box

    def on_mount(self) -> None:
        """Show the choices, and focus the field."""
        self.set_choices(self._all)
        self._paint_hint()
        self.field.focus()
        if not self._entry.select:
            self.call_after_refresh(self._show_end)

    def _show_end(self) -> None:
        """Scroll to the cursor, which is behind the text: only a move of it scrolls."""
        if self.field.cursor_position == len(self.field.value):
            self.field.action_home()
            self.field.action_end()

    def on_resize(self) -> None:
        """Stay over the cell, within the screen."""
        self.call_after_refresh(self._arrange)

    @property
    def text(self) -> str:
        """The text of the field."""
        return self.field.value

    def set_choices(self, choices: Sequence[ListChoice]) -> None:
        """Offer other choices; an answer may come before the dialog is shown, or after."""
        self._all = tuple(choices)
        if not self.is_attached or not self.field.is_attached:
            return
        shown = [item for item in self._all if not self._filtering or self.text.lower() in item.text.lower()]
        at = next((number for number, item in enumerate(shown) if item.text == self.text), -1)
        self.list.display = bool(shown)
        self.list.show(shown, 0 if self._entry.choose and at < 0 else at)
        self._paint_hint()

    def say(self, text: str, outcome: str = "") -> None:
        """Show a line below the field, such as what would fail with the text."""
        if (text, outcome) != self._hint:
            self._hint = (text, outcome)
            if self.is_attached:
                self._paint_hint()

    @property
    def _filtering(self) -> bool:
        return self._entry.filtered and self._touched

    def _paint_hint(self) -> None:
        text, outcome = self._hint
        current = self.list.current
        if not outcome and current is not None and current.detail:
            text, outcome = current.detail, current.outcome
        mark = OUTCOME_MARKS.get(outcome)
        self._hint_text = Content.assemble((f"{mark.glyph} ", mark.style) if mark else "", clean(text))
        self._hint_line.display = bool(text)
        self._arrange()

    def _arrange(self) -> None:
        """Place the box: its field over the cell, its list below it, or above where there is no room."""
        if not self.is_mounted:
            return
        if self._place is None:
            self._wrap_hint(min(_BOX_WIDTH, self.size.width * 96 // 100) - _BOX_EDGES)
            return
        width = min(max(self._place.width, _LEAST_WIDTH), self.size.width)
        x = min(self._place.offset.x, self.size.width - width)
        rows = 1 + (min(len(self.list.choices), _MOST_CHOICES) if self.list.display else 0)
        rows += self._wrap_hint(width - 1)
        y = min(self._place.offset.y, max(self.size.height - rows, 0))
        self._box.styles.width = width
        self._box.styles.offset = (x, y)

    def _wrap_hint(self, width: int) -> int:
        """Show the hint in lines of a width; returns how many there are."""
        lines = wrapped(self._hint_text, width) if self._hint_line.display else []
        if len(lines) > _MOST_HINT_LINES:
            last = Content.assemble(lines[_MOST_HINT_LINES - 1], " …").truncate(width, ellipsis=True)
            lines = [*lines[: _MOST_HINT_LINES - 1], last]
        self._hint_line.set_lines(lines)
        return len(lines)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter or mark the choices, and report the text."""
        event.stop()
        self._touched = self._touched or event.value != clean(self._entry.text)
        self.set_choices(self._all)
        self._report(event.value)

    def _report(self, text: str) -> None:
        """Report the text, once it is another one than at first."""
        if self._typed is not None and self._touched:
            self._typed(text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the text, or with the choice under the cursor."""
        event.stop()
        current = self.list.current
        if self._entry.choose:
            self.dismiss(current.value if current is not None else None)
        else:
            self.dismiss(self.text)

    def on_choice_list_choice_clicked(self, event: ChoiceList.ChoiceClicked) -> None:
        """Take the choice that was clicked."""
        event.stop()
        choice = self.list.choices[event.index]
        self.dismiss(choice.value if self._entry.choose else choice.text)

    def action_move(self, step: int) -> None:
        """Go through the choices; the field takes the text of each."""
        if not self.list.choices:
            return
        self.list.move(step)
        self._paint_hint()
        current = self.list.current
        if current is not None and not self._entry.choose:
            with self.field.prevent(Input.Changed):
                self.field.value = current.text
            self.field.cursor_position = len(current.text)
            self._touched = True
            self._report(current.text)

    def action_leave(self) -> None:
        """Dismiss."""
        self.dismiss(None)
