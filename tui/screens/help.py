"""The help: every command that works on the screen it was opened from."""

from __future__ import annotations

from textwrap import wrap
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.commands import Command, Scope, commands, key_name

_KEYS = 19
_WIDTH = 86
_FRAME = 12
"""Columns that the frame, its padding and the scroll bar take."""


class HelpScreen(ModalScreen[None]):
    """Lists keys and what they do, from the table of commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark,enter", "leave", "Leave", show=False),
        Binding("k", "scroll('up')", "Up", show=False),
        Binding("j", "scroll('down')", "Down", show=False),
    ]

    def __init__(self, places: tuple[Scope, ...], about: str) -> None:
        super().__init__()
        self._places, self._about = places, about

    def compose(self) -> ComposeResult:
        """Lay out."""
        with VerticalScroll(id="help") as box:
            box.border_title = Content("Help")
            box.border_subtitle = Content("↑ ↓ scroll · esc or q closes")
            yield Static(Content(""))

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self.query_one(VerticalScroll).focus()

    def on_resize(self, event: Resize) -> None:
        """Break the lines anew."""
        width = min(event.size.width - _FRAME, _WIDTH)
        self.query_one(Static).update(help_text(self._places, self._about, width))

    def action_scroll(self, direction: str) -> None:
        """Scroll a line."""
        box = self.query_one(VerticalScroll)
        box.scroll_relative(y=-1 if direction == "up" else 1, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss()


def help_text(places: tuple[Scope, ...], about: str, width: int) -> Content:
    """Return the help's text: a heading a place, a line or more a command."""
    parts = [Content("\n".join(wrap(about, width)))]
    for place in places:
        parts += [Content(""), Content.assemble((place.value, "bold $text-primary"))]
        parts += [_entry(command, width) for command in commands(place)]
    return Content("\n").join(parts)


def _entry(command: Command, width: int) -> Content:
    keys = "  ".join(key_name(key) for key in command.keys) or key_name("ctrl+p")
    told = f"{command.title}. {command.help}" if command.help else command.title
    margin = "\n" + " " * (_KEYS + 1)
    gap = " " * max(_KEYS - cell_len(keys), 1)
    return Content.assemble((f" {keys}{gap}", "bold"), margin.join(wrap(told, max(width - _KEYS - 1, 20))))
