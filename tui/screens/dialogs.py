"""Small questions and messages over the screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from launcher.text import clean, clean_lines
from recipes.errors import ExplainedError


@dataclass(frozen=True, slots=True)
class DialogChoice:
    """An answer: the key that gives it, what it says, and the value it stands for."""

    key: str
    text: str
    value: str


class Ask(ModalScreen[str | None]):
    """A question with answers to choose from, by their keys or with the arrows; None when it is left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Leave", show=False)]

    def __init__(self, title: str, text: str, choices: Sequence[DialogChoice], *, chosen: int = 0) -> None:
        super().__init__()
        self._title, self._text = clean(title), clean_lines(text)
        self._choices, self._chosen = tuple(choices), chosen

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(self._title)
            if self._text:
                yield Static(Content(self._text), classes="dialog-text")
            yield OptionList(*(Option(_answer(choice)) for choice in self._choices), compact=True)

    def on_mount(self) -> None:
        """Let the arrows choose."""
        options = self.query_one(OptionList)
        options.highlighted = self._chosen
        options.focus()

    def on_key(self, event: Key) -> None:
        """Answer by a choice's key."""
        for choice in self._choices:
            if choice.key and event.character == choice.key:
                event.stop()
                self.dismiss(choice.value)
                return

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with what was chosen."""
        event.stop()
        self.dismiss(self._choices[event.option_index].value)

    def action_leave(self) -> None:
        """Leave without an answer."""
        self.dismiss(None)


def _answer(choice: DialogChoice) -> Content:
    key = f" {choice.key} " if choice.key else " "
    return Content.assemble((key, "bold"), f" {clean(choice.text)} ")


def tell(error: ExplainedError) -> Ask:
    """Return a dialog that shows an error: what, where, what to do."""
    what, *rest = str(error).split("\n")
    text = "\n".join([f"✗ {what}", *(line.strip() for line in rest)])
    return Ask("That did not work", text, [DialogChoice("o", "OK", "ok")])


class Wait(ModalScreen[None]):
    """Says that something is under way; nothing can be done meanwhile."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(classes="dialog"):
            yield Static(Content(self._text), classes="dialog-text")
