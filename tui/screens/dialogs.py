"""Dialogs: questions, errors, and waiting."""

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
from tui.widgets.dialog_text import DialogWithText
from tui.widgets.paged_options import PagedOptions


@dataclass(frozen=True, slots=True)
class DialogChoice:
    """An answer: its key, its text, and the value that the dialog returns."""

    key: str
    text: str
    value: str


class ChoiceDialog(DialogWithText[str | None]):
    """A question with answers to choose by their keys or with the arrows; None where it is dismissed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Leave", show=False),
        Binding("f1", "app.help", "Help", show=False),
    ]

    def __init__(self, title: str, text: str, choices: Sequence[DialogChoice], *, chosen: int = 0) -> None:
        super().__init__(clean_lines(text))
        self._title, self._has_text = clean(title), bool(text)
        self._choices, self._chosen = tuple(choices), chosen
        self._options = PagedOptions(*(Option(_answer(choice)) for choice in self._choices), compact=True)

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(self._title)
            if self._has_text:
                yield self.dialog_text
            yield self._options

    def on_mount(self) -> None:
        """Focus the answers."""
        self._options.highlighted = self._chosen
        self._options.focus()

    def on_key(self, event: Key) -> None:
        """Answer by the key of a choice."""
        for choice in self._choices:
            if choice.key and event.character == choice.key:
                event.stop()
                self.dismiss(choice.value)
                return

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer with the selected choice."""
        event.stop()
        self.dismiss(self._choices[event.option_index].value)

    def action_leave(self) -> None:
        """Dismiss without an answer."""
        self.dismiss(None)


def _answer(choice: DialogChoice) -> Content:
    key = f" {choice.key} " if choice.key else " "
    return Content.assemble((key, "bold"), f" {clean(choice.text)} ")


def error_dialog(error: ExplainedError) -> ChoiceDialog:
    """Return a dialog with an error: what happened, where, and what to do."""
    message, *rest = str(error).split("\n")
    text = "\n".join([f"✗ {message}", *(line.strip() for line in rest)])
    return ChoiceDialog("Error", text, [DialogChoice("o", "OK", "ok")])


class BusyDialog(ModalScreen[None]):
    """A message while the app is busy; accepts no keys."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(classes="dialog"):
            yield Static(Content(self._text), classes="dialog-text")
