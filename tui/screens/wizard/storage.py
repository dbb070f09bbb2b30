"""The wizard's question where runs are kept, asked once, before the first submission."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from textual.screen import Screen

from launcher.settings import KEEP
from launcher.storage.decision import StorageQuestion, decide
from recipes.errors import ExplainedError
from tui.screens.dialogs import ChoiceDialog, DialogChoice, error_dialog


def ask_runs_root(screen: Screen[None], question: StorageQuestion, decided: Callable[[Path], None]) -> None:
    """Ask where runs are kept, and remember the answer; `decided` is called with the directory."""
    offered = question.choices()
    choices = [
        DialogChoice(str(number) if number < 10 else "", words, directory)
        for number, (directory, words) in enumerate(offered, 1)
    ]
    choices.append(DialogChoice("k", f"keep {question.storage.root.path}", KEEP))
    choices.append(DialogChoice("n", "not now: back to the review", ""))

    def answered(answer: str | None) -> None:
        if not answer:
            return
        try:
            decided(decide(answer, os.environ))
        except ExplainedError as error:
            screen.app.push_screen(error_dialog(error))

    text = "\n".join((*question.lines(), "", "Another directory: `distill-tui settings storage.runs DIR`."))
    screen.app.push_screen(ChoiceDialog("Where are runs to be kept?", text, choices), answered)
