"""The line below a log in which one types what to search for, where to go, or what to show."""

from __future__ import annotations

import re
from enum import StrEnum

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input, Static


class PromptKind(StrEnum):
    """What is typed for; the value stands before the field."""

    SEARCH = "search"
    GO = "go to"
    ONLY = "only"


_HINTS = {
    PromptKind.SEARCH: "text, or /pattern/; esc goes back",
    PromptKind.GO: "a line, as 1234, or a place, as 50%",
    PromptKind.ONLY: "text, /pattern/, rank=3, actor=Name; !… hides",
}


class LogPrompt(Horizontal):
    """Asks for one line."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = PromptKind.SEARCH
        self._label = Static("")
        self.field = Input(compact=True)
        self.display = False

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self._label
        yield self.field

    def ask(self, asked: PromptKind) -> None:
        """Show the field, empty."""
        self.asked = asked
        self._label.update(f" {asked.value} ")
        self.field.placeholder = _HINTS[asked]
        with self.prevent(Input.Changed):
            self.field.value = ""
        self.display = True
        # At once, not when the loop gets to it: keys typed right after belong to the field.
        self.screen.set_focus(self.field)


def parse_place(typed: str) -> tuple[int | None, float | None] | None:
    """Return the line or the percentage that was typed; None where it is neither."""
    if match := re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*(%?)\s*", typed.replace(",", "").replace("_", "")):
        if match[2]:
            return None, float(match[1])
        return (int(match[1]), None) if match[1].isdigit() else None
    return None
