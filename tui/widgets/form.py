"""A form of one-line fields: what is typed, what is chosen, and what is said beside each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from launcher.text import clean
from recipes.fields import Field
from tui.widgets.styled_lines import StyledLines

_GLYPHS = {"": ("", "dim"), "warn": ("! ", "$text-warning"), "error": ("✗ ", "$text-error")}


class Pick(Widget, can_focus=True):
    """One of several values: ← and → go through them, enter lists them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "turn(-1)", "Previous", show=False),
        Binding("right,l,space", "turn(1)", "Next", show=False),
        Binding("enter", "list", "List", show=False),
    ]

    class ValueChanged(Message):
        """Another value is chosen."""

        def __init__(self, pick: Pick) -> None:
            super().__init__()
            self.pick = pick

    class AllValuesRequested(Message):
        """The user wants to see all values."""

        def __init__(self, pick: Pick) -> None:
            super().__init__()
            self.pick = pick

    def __init__(self) -> None:
        super().__init__()
        self.value = ""
        self._values: tuple[str, ...] = ()

    def offer(self, values: Sequence[str]) -> None:
        """Take the values that can be chosen."""
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
        """Choose the next value, or the one before."""
        if not self._values:
            return
        place = self._values.index(self.value) if self.value in self._values else -step
        self.choose(self._values[(place + step) % len(self._values)])

    def action_list(self) -> None:
        """Ask for the list."""
        self.post_message(self.AllValuesRequested(self))

    def on_click(self, event: Click) -> None:
        """List the values when it has the keys already."""
        event.stop()
        if self.has_focus:
            self.action_list()


class Go(Widget, can_focus=True):
    """What ends a form: enter goes on."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,space", "go", "Go on", show=False)]

    class Pressed(Message):
        """The user wants to go on."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def say(self, text: str) -> None:
        """Show where it goes."""
        if text != self._text:
            self._text = text
            self.refresh()

    def render(self) -> Content:
        """Return its words."""
        return Content(f" {self._text} ")

    def action_go(self) -> None:
        """Go on."""
        self.post_message(self.Pressed())

    def on_click(self, event: Click) -> None:
        """Go on."""
        event.stop()
        self.action_go()


class FieldRow(Horizontal):
    """One field: its title, what is typed, what is said of it."""

    def __init__(self, item: Field) -> None:
        super().__init__(
            classes="-long" if item.kind == "path" or item.name in ("student", "teacher") else ""
        )
        self.item = item
        self._title = StyledLines(classes="row-title")
        self.entry: Input | Pick = (
            Pick() if item.kind == "choice" else Input(compact=True, select_on_focus=False)
        )
        self._note = StyledLines(classes="row-note")
        self._shown = ("", "")
        self._taken = ""
        """What stands here as far as the one who asks knows."""

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self._title
        yield self.entry
        yield self._note

    def on_mount(self) -> None:
        """Show the title."""
        self._title.say([Content(self.item.title)])

    def on_resize(self) -> None:
        """Cut the note anew."""
        self._paint_note()

    def show(self, value: str, values: Sequence[str], note: str, level: str) -> None:
        """Show a value that was not typed here, and a note (the unit, if there is none).

        What was typed since the last time, and is not taken yet, is left alone.
        """
        present = self.entry.value.strip()
        if value == present:
            self._taken = present
        elif self._taken == present:
            self._taken = value
            self._set(value)
        if isinstance(self.entry, Pick):
            self.entry.offer(values)
        self._shown = (note, level)
        self._paint_note()

    def _set(self, value: str) -> None:
        if isinstance(self.entry, Pick):
            self.entry.value = value
            self.entry.refresh()
            return
        with self.entry.prevent(Input.Changed):
            self.entry.value = value
            self.entry.cursor_position = len(value)

    def _paint_note(self) -> None:
        note, level = self._shown
        glyph, style = _GLYPHS[level]
        text = Content.assemble((f"{glyph}{clean(note) or self.item.unit}", style))
        self._note.say([text.truncate(max(self._note.size.width, 1), ellipsis=True)])


class Form(VerticalScroll, can_focus=False):
    """Rows of fields, and what goes on."""

    class Edited(Message):
        """A field's text changed."""

        def __init__(self, name: str, text: str) -> None:
            super().__init__()
            self.name = name
            self.text = text

    class ChoicesRequested(Message):
        """What can be chosen in a field is to be listed."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self) -> None:
        super().__init__(id="form")
        self.rows: tuple[FieldRow, ...] = ()
        self.go = Go()

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.go

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that are shown."""
        return tuple(row.item.name for row in self.rows)

    @property
    def focused_row(self) -> FieldRow | None:
        """The row that has the keys."""
        return next((row for row in self.rows if row.entry.has_focus), None)

    async def ask(self, fields: Sequence[Field]) -> None:
        """Show other fields; rows of fields that stay keep what is typed."""
        kept = {row.item.name: row for row in self.rows}
        rows = tuple(kept.get(item.name) or FieldRow(item) for item in fields)
        await self.remove_children([row for row in self.rows if row not in rows])
        stay = [row for row in rows if row.is_attached]
        self.rows = rows
        if not stay:
            await self.mount_all(rows, before=self.go)
            return
        for place, row in enumerate(rows):
            if not row.is_attached:
                after = next((item for item in rows[place + 1 :] if item.is_attached), self.go)
                await self.mount(row, before=after)

    def focus_first(self) -> None:
        """Give the keys to the first field."""
        (self.rows[0].entry if self.rows else self.go).focus()

    def focus_on(self, name: str) -> None:
        """Give the keys to a field."""
        for row in self.rows:
            if row.item.name == name:
                row.entry.focus()

    def _row_of(self, entry: Widget) -> FieldRow | None:
        return next((row for row in self.rows if row.entry is entry), None)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell what is typed."""
        event.stop()
        row = self._row_of(event.input)
        if row is not None:
            self.post_message(self.Edited(row.item.name, event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field."""
        event.stop()
        self.screen.focus_next()

    def on_pick_value_changed(self, event: Pick.ValueChanged) -> None:
        """Tell what is chosen."""
        event.stop()
        row = self._row_of(event.pick)
        if row is not None:
            self.post_message(self.Edited(row.item.name, event.pick.value))

    def on_pick_all_values_requested(self, event: Pick.AllValuesRequested) -> None:
        """Ask for a list."""
        event.stop()
        row = self._row_of(event.pick)
        if row is not None:
            self.post_message(self.ChoicesRequested(row.item.name))
