"""The help: the commands of the screen it was opened from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from tui.background import call_on, in_background, post
from tui.commands import Command, Scope, commands, key_name
from tui.opening import ActionFailed

_KEYS = 19
_WIDTH = 86
_LEAST_WIDTH = 20
"""Columns of a text in a terminal of fewer."""
_FRAME = 12
"""Columns that the frame, its padding and the scroll bar take."""


class HelpScreen(ModalScreen[None]):
    """Keys and their effects, from the table of commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,question_mark,enter", "leave", "Leave", show=False),
        Binding("k", "scroll('up')", "Up", show=False),
        Binding("j", "scroll('down')", "Down", show=False),
    ]

    def __init__(self, scopes: tuple[Scope, ...], about: str, facts: Callable[[], list[str]] = list) -> None:
        """`facts` returns lines on what the app takes; it is called on a thread."""
        super().__init__()
        self._scopes, self._about, self._read_facts = scopes, about, facts
        self._facts: list[str] = []
        self._width = _WIDTH
        self._text = Static(Content(""))
        self._box = VerticalScroll(self._text, id="help")

    def compose(self) -> ComposeResult:
        """Lay out."""
        self._box.border_title = Content("Help")
        self._box.border_subtitle = Content("↑ ↓ to scroll · esc or q to close")
        yield self._box

    def on_mount(self) -> None:
        """Focus the text, so that the arrows scroll."""
        self._box.focus()
        in_background(self._read, "usage", lambda error: post(self, ActionFailed(error)))

    def _read(self) -> None:
        facts = self._read_facts()
        call_on(self, lambda: self._show(facts))

    def _show(self, facts: list[str]) -> None:
        self._facts = facts
        self._update()

    def on_resize(self, event: Resize) -> None:
        """Wrap the lines again."""
        self._width = max(min(event.size.width - _FRAME, _WIDTH), _LEAST_WIDTH)
        self._update()

    def _update(self) -> None:
        text = help_text(self._scopes, self._about, self._width, self._facts)
        self._text.update(text)

    def action_scroll(self, direction: str) -> None:
        """Scroll a line."""
        self._box.scroll_relative(y=-1 if direction == "up" else 1, animate=False)

    def action_leave(self) -> None:
        """Close."""
        self.dismiss()


def help_text(scopes: tuple[Scope, ...], about: str, width: int, facts: Sequence[str] = ()) -> Content:
    """Return the help: a heading for each scope, and its commands; before them, what the app takes."""
    parts = [Content("\n".join(wrap(about, width)))]
    parts += [Content("\n".join(wrap(fact, width, subsequent_indent="  "))) for fact in facts]
    for scope in scopes:
        parts += [Content(""), Content.assemble((scope.value, "bold $text-primary"))]
        parts += [_entry(command, width) for command in commands(scope)]
    return Content("\n").join(parts)


def _entry(command: Command, width: int) -> Content:
    keys = "  ".join(key_name(key) for key in command.keys) or key_name("ctrl+p")
    text = f"{command.title}. {command.help}" if command.help else command.title
    margin = "\n" + " " * (_KEYS + 1)
    gap = " " * max(_KEYS - cell_len(keys), 1)
    return Content.assemble(
        (f" {keys}{gap}", "bold"), margin.join(wrap(text, max(width - _KEYS - 1, _LEAST_WIDTH)))
    )
