"""The wizard's question where runs are kept, asked once, before the first submission."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen

from launcher.settings import KEEP
from launcher.storage.decision import StorageQuestion
from tui.screens.dialogs import ChoiceDialog, DialogChoice


def ask_runs_root(screen: Screen[None], question: StorageQuestion, decide: Callable[[str], None]) -> None:
    """Ask where runs are kept; `decide` gets the answer: a directory, or `keep`."""
    choices = [
        DialogChoice(str(number) if number < 10 else "", words, directory)
        for number, (directory, words) in enumerate(question.choices(), 1)
    ]
    choices.append(DialogChoice("k", f"keep {question.storage.root.path}", KEEP))
    choices.append(DialogChoice("n", "not now: back to the review", ""))

    def answered(answer: str | None) -> None:
        if answer:
            decide(answer)

    text = "\n".join((*question.lines(), "", "Another directory: `distill-tui settings storage.runs DIR`."))
    screen.app.push_screen(ChoiceDialog("Where are runs to be kept?", text, choices), answered)
