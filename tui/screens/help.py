"""The help: the commands of the screen it was opened from."""

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
    """Keys and their effects, from the table of commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark,enter", "leave", "Leave", show=False),
        Binding("k", "scroll('up')", "Up", show=False),
        Binding("j", "scroll('down')", "Down", show=False),
    ]

    def __init__(self, scopes: tuple[Scope, ...], about: str) -> None:
        super().__init__()
        self._scopes, self._about = scopes, about

    def compose(self) -> ComposeResult:
        """Lay out."""
        with VerticalScroll(id="help") as box:
            box.border_title = Content("Help")
            box.border_subtitle = Content("↑ ↓ to scroll · esc or q to close")
            yield Static(Content(""))

    def on_mount(self) -> None:
        """Focus the text, so that the arrows scroll."""
        self.query_one(VerticalScroll).focus()

    def on_resize(self, event: Resize) -> None:
        """Wrap the lines again."""
        width = min(event.size.width - _FRAME, _WIDTH)
        self.query_one(Static).update(help_text(self._scopes, self._about, width))

    def action_scroll(self, direction: str) -> None:
        """Scroll a line."""
        box = self.query_one(VerticalScroll)
        box.scroll_relative(y=-1 if direction == "up" else 1, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss()


def help_text(scopes: tuple[Scope, ...], about: str, width: int) -> Content:
    """Return the help: a heading for each scope, and its commands."""
    parts = [Content("\n".join(wrap(about, width)))]
    for scope in scopes:
        parts += [Content(""), Content.assemble((scope.value, "bold $text-primary"))]
        parts += [_entry(command, width) for command in commands(scope)]
    return Content("\n").join(parts)


def _entry(command: Command, width: int) -> Content:
    keys = "  ".join(key_name(key) for key in command.keys) or key_name("ctrl+p")
    text = f"{command.title}. {command.help}" if command.help else command.title
    margin = "\n" + " " * (_KEYS + 1)
    gap = " " * max(_KEYS - cell_len(keys), 1)
    return Content.assemble((f" {keys}{gap}", "bold"), margin.join(wrap(text, max(width - _KEYS - 1, 20))))
