"""Form of one-line fields, each with a title and a note."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Click, Key
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input
from textual.widgets.input import Selection

from launcher.fields import Field
from launcher.text import clean
from tui.theme import MODIFIED
from tui.widgets.line_input import LineInput
from tui.widgets.path_completion import PathBase, PathInput
from tui.widgets.styled_lines import StyledLines

_CLAUSE = re.compile(r"[,;:.] | \(")
"""End of a part of a note that stands for itself."""
_GLYPHS = {"": ("", "dim"), "warn": ("! ", "$text-warning"), "error": ("✗ ", "$text-error")}


class ChoiceInput(Widget, can_focus=True):
    """Choice of one of several values: ← and → cycle through them, enter lists them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "turn(-1)", "Previous", show=False),
        Binding("right,l,space", "turn(1)", "Next", show=False),
        Binding("enter", "list", "List", show=False),
    ]

    class ValueChanged(Message):
        """Another value was chosen."""

        def __init__(self, field: ChoiceInput) -> None:
            super().__init__()
            self.field = field

    class AllValuesRequested(Message):
        """The user wants a list of all values."""

        def __init__(self, field: ChoiceInput) -> None:
            super().__init__()
            self.field = field

    def __init__(self) -> None:
        super().__init__()
        self.value = ""
        self._values: tuple[str, ...] = ()

    def set_values(self, values: Sequence[str]) -> None:
        """Set the values to choose from."""
        if tuple(values) != self._values:
            self._values = tuple(values)
            self.refresh()

    def render(self) -> Content:
        """Return the value between arrows."""
        left, right = ("‹ ", " ›") if len(self._values) > 1 else ("  ", "")
        return Content.assemble((left, "dim"), clean(self.value) or "none", (right, "dim"))

    def choose(self, value: str) -> None:
        """Choose a value."""
        if value != self.value:
            self.value = value
            self.refresh()
            self.post_message(self.ValueChanged(self))

    def action_turn(self, step: int) -> None:
        """Choose the next or the previous value."""
        if not self._values:
            return
        index = self._values.index(self.value) if self.value in self._values else -step
        self.choose(self._values[(index + step) % len(self._values)])

    def action_list(self) -> None:
        """Request the list of values."""
        self.post_message(self.AllValuesRequested(self))

    def on_click(self, event: Click) -> None:
        """List the values if it has the focus already."""
        event.stop()
        if self.has_focus:
            self.action_list()


class NumberInput(LineInput):
    """Input for a number or a time, which has no `/`: that key is left to the screen."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether a key is text."""
        return key != "slash" and super().check_consume_key(key, character)

    async def _on_key(self, event: Key) -> None:
        if event.key == "slash":
            event.prevent_default()


class NextButton(Widget, can_focus=True):
    """The button at the end of a form."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "press", "Continue", show=False)]

    class Pressed(Message):
        """The button was pressed."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def set_label(self, text: str) -> None:
        """Set the button's label."""
        if text != self._text:
            self._text = text
            self.refresh(layout=True)

    def render(self) -> Content:
        """Return the label."""
        return Content(f" {self._text} ")

    def action_press(self) -> None:
        """Press the button."""
        self.post_message(self.Pressed())

    def on_click(self, event: Click) -> None:
        """Press the button."""
        event.stop()
        self.action_press()


@dataclass(frozen=True, slots=True)
class RowNote:
    """Note beside a field; in full it stands below the form, once the field has the focus."""

    text: str = ""
    level: str = ""
    short: str = ""
    """What is shown where the text does not fit."""

    def fitted(self, room: int) -> str:
        """Return as much as fits in so many cells: the text, its short form, or its first clauses.

        A description of which nothing fits is left out, a finding is cut.
        """
        if cell_len(self.text) <= room:
            return self.text
        if self.short and cell_len(self.short) <= room:
            return self.short
        clauses = [match.start() for match in _CLAUSE.finditer(self.text)]
        ends = [end for end in clauses if 0 < cell_len(self.text[:end]) <= room]
        if ends:
            return self.text[: ends[-1]]
        return Content(self.text).truncate(room, ellipsis=True).plain if self.level else ""


class FieldRow(Horizontal):
    """One field: title, input, and note."""

    def __init__(self, item: Field, base: PathBase | None = None) -> None:
        super().__init__(
            classes="-long"
            if item.kind == "path" or item.repeatable or item.name in ("student", "teacher")
            else ""
        )
        self.item = item
        self._title = StyledLines(classes="row-title")
        self.entry = _entry_for(item, base)
        self._note = StyledLines(classes="row-note")
        self._shown = RowNote()
        self._confirmed = ""
        """Value that was last set or confirmed by `show`."""

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self._title
        yield self.entry
        yield self._note

    def on_mount(self) -> None:
        """Show the title."""
        self.mark(changed=False)

    @property
    def lists_values(self) -> bool:
        """Whether the input goes through values, or completes them."""
        return isinstance(self.entry, ChoiceInput | PathInput)

    def mark(self, *, changed: bool, both: bool = False) -> None:
        """Show whether the user changed the value, and whether for student and teacher."""
        mark = (MODIFIED.glyph, MODIFIED.style) if changed else (" ", "")
        tail = (" (both)", "dim") if both else ("", "")
        self._title.set_lines([Content.assemble(mark, f" {self.item.title}", tail)])

    def on_resize(self) -> None:
        """Cut the note to the new width."""
        self._paint_note()

    def show(self, value: str, values: Sequence[str], note: RowNote) -> None:
        """Show a value and a note (the unit, if the note is empty).

        Input typed since the last call is kept until a call confirms it.
        """
        typed = self.entry.value.strip()
        if value == typed:
            self._confirmed = typed
        elif self._confirmed == typed:
            self._confirmed = value
            self._set(value)
        if isinstance(self.entry, ChoiceInput | PathInput):
            self.entry.set_values(values)
        self._shown = note
        self._paint_note()

    def select(self) -> None:
        """Select the text, so that typing replaces it."""
        if isinstance(self.entry, Input):
            self.entry.select_all()

    def _set(self, value: str) -> None:
        if isinstance(self.entry, ChoiceInput):
            self.entry.value = value
            self.entry.refresh()
            return
        selected = self.entry.has_focus and self.entry.selection == Selection(0, len(self.entry.value))
        with self.entry.prevent(Input.Changed):
            self.entry.value = value
            self.entry.cursor_position = len(value)
        if selected:
            # A default that arrives after the focus is replaced by typing, too.
            self.entry.select_all()

    def _paint_note(self) -> None:
        glyph, style = _GLYPHS[self._shown.level]
        room = max(self._note.size.width - 1 - len(glyph), 1)
        text = clean(self._shown.fitted(room)) or self.item.unit * (not self._shown.text)
        self._note.set_lines([Content.assemble((f"{glyph}{text}", style)).truncate(room + len(glyph))])


def _entry_for(item: Field, base: PathBase | None) -> Input | ChoiceInput:
    if item.kind in ("choice", "switch"):
        return ChoiceInput()
    if item.kind == "path":
        return PathInput(base)
    typed = LineInput if item.kind == "text" else NumberInput
    return typed(compact=True, select_on_focus=True)


class Form(VerticalScroll, can_focus=False):
    """Rows of fields, and the button to the next step."""

    path_base: PathBase | None = None
    """Returns a path of the machine whose paths are typed, on a thread; None: this one."""

    class Edited(Message):
        """A field's text changed."""

        def __init__(self, name: str, text: str) -> None:
            super().__init__()
            self.name = name
            self.text = text

    class ChoicesRequested(Message):
        """The user wants a list of a field's values: of all, or of some."""

        def __init__(self, name: str, candidates: tuple[str, ...] = ()) -> None:
            super().__init__()
            self.name = name
            self.candidates = candidates

    def __init__(self) -> None:
        super().__init__(id="form")
        self.rows: tuple[FieldRow, ...] = ()
        self.next_button = NextButton()

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.next_button

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are shown."""
        return tuple(row.item.name for row in self.rows)

    @property
    def focused_row(self) -> FieldRow | None:
        """The row that has the focus."""
        return next((row for row in self.rows if row.entry.has_focus), None)

    async def set_fields(self, fields: Sequence[Field]) -> None:
        """Show other fields; rows that remain keep their input."""
        current = {row.item.name: row for row in self.rows}
        rows = tuple(current.get(item.name) or FieldRow(item, self.path_base) for item in fields)
        await self.remove_children([row for row in self.rows if row not in rows])
        self.rows = rows
        if not any(row.is_attached for row in rows):
            await self.mount_all(rows, before=self.next_button)
            return
        for index, row in enumerate(rows):
            if not row.is_attached:
                following = next((item for item in rows[index + 1 :] if item.is_attached), self.next_button)
                await self.mount(row, before=following)

    def go_to(self, name: str) -> None:
        """Focus a field, if it is there."""
        row = next((row for row in self.rows if row.item.name == name), None)
        if row is not None:
            self.screen.set_focus(row.entry)

    def focus_first(self) -> None:
        """Focus the first field."""
        # At once: `focus` would leave it to a later message, and keys that are typed ahead come before.
        self.screen.set_focus(self.rows[0].entry if self.rows else self.next_button)

    def _row_of(self, entry: Widget) -> FieldRow | None:
        return next((row for row in self.rows if row.entry is entry), None)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Report typed input."""
        event.stop()
        row = self._row_of(event.input)
        if row is not None:
            self.post_message(self.Edited(row.item.name, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Focus the next field."""
        event.stop()
        self.screen.focus_next()

    def on_path_input_ambiguous(self, event: PathInput.Ambiguous) -> None:
        """Request the list of the ways in which a text may go on."""
        event.stop()
        row = self._row_of(event.field)
        if row is not None:
            self.post_message(self.ChoicesRequested(row.item.name, event.candidates))

    def on_choice_input_value_changed(self, event: ChoiceInput.ValueChanged) -> None:
        """Report a chosen value."""
        event.stop()
        row = self._row_of(event.field)
        if row is not None:
            self.post_message(self.Edited(row.item.name, event.field.value))

    def on_choice_input_all_values_requested(self, event: ChoiceInput.AllValuesRequested) -> None:
        """Request the list of a field's values."""
        event.stop()
        row = self._row_of(event.field)
        if row is not None:
            self.post_message(self.ChoicesRequested(row.item.name))
