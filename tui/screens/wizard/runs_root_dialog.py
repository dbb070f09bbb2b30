"""The wizard's question where runs are kept, asked once, before the first submission."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input

from launcher.paths import expand
from launcher.settings import KEEP
from launcher.storage.decision import StorageQuestion
from launcher.storage.location import Offer
from launcher.storage.size import gigabytes
from launcher.text import clean, clean_lines
from tui.screens.dialogs import ChoiceDialog, DialogChoice
from tui.widgets.dialog_text import DialogWithText
from tui.widgets.path_completion import PathInput

_TYPED = "typed"


class DirectoryDialog(DialogWithText[str | None]):
    """Asks for a directory; None where it is dismissed or left empty."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", show=False),
        Binding("f1", "app.help", "Help", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__(clean_lines(text))
        self._title = clean(title)
        self._field = PathInput()

    def compose(self) -> ComposeResult:
        """Lay out."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(self._title)
            yield self.dialog_text
            yield self._field

    def on_mount(self) -> None:
        """Focus the input."""
        self._field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the typed directory."""
        event.stop()
        self.dismiss(event.value.strip() or None)

    def action_leave(self) -> None:
        """Dismiss without an answer."""
        self.dismiss(None)


def ask_runs_root(screen: Screen[None], question: StorageQuestion, decide: Callable[[str], None]) -> None:
    """Ask where runs are kept; `decide` gets the answer: a directory, or `keep`."""
    choices = [
        DialogChoice(str(number) if number < 10 else "", _in_short(offer), str(offer.path))
        for number, offer in enumerate(question.offers, 1)
    ]
    choices += [
        DialogChoice("d", "another directory …", _TYPED),
        DialogChoice("k", f"keep {question.storage.root.path}", KEEP),
        DialogChoice("n", "not now: back to the review", ""),
    ]

    def answered(answer: str | None) -> None:
        if answer == _TYPED:
            text = (
                "A directory that the nodes can write; ~ and $NAME are replaced.\nEnter takes it, esc leaves."
            )
            screen.app.push_screen(DirectoryDialog("Directory of the runs", text), typed)
        else:
            typed(answer)

    def typed(directory: str | None) -> None:
        if directory:
            decide(directory)

    text = "\n".join(question.lines())
    screen.app.push_screen(ChoiceDialog("Where are runs to be kept?", text, choices), answered)


def _in_short(offer: Offer) -> str:
    """Return an offer within the width of a dialog: below the variable that names it."""
    base = expand(offer.source)
    path = str(offer.path)
    if offer.path.is_relative_to(base):
        path = f"{offer.source}/{offer.path.relative_to(base)}"
    free = f"  {gigabytes(offer.free_bytes)} free" if offer.free_bytes is not None else ""
    return path + free + (", may be purged" if offer.purged else "")
