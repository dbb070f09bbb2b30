"""The input line below a log: a search, a line to go to, or a filter."""

from __future__ import annotations

import re
from enum import StrEnum

from textual.containers import Horizontal
from textual.widgets import Input, Static

from tui.logview.linear_pattern import LONGEST


class PromptKind(StrEnum):
    """Purpose of the input; the value is the label before the field."""

    SEARCH = "search"
    GO_TO = "go to"
    FILTER = "filter"


_HINTS = {
    PromptKind.SEARCH: "text or /pattern/; esc cancels",
    PromptKind.GO_TO: "line number (1234) or percentage (50%)",
    PromptKind.FILTER: "text, /pattern/, rank=3, actor=Name; !… excludes",
}


class LogPrompt(Horizontal):
    """A label and an input field; hidden while it is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = PromptKind.SEARCH
        self._label = Static("")
        self.field = Input(compact=True, max_length=LONGEST)
        self.field.cursor_blink = False  # each blink is sent to the terminal
        self.display = False

    def open(self, kind: PromptKind) -> None:
        """Show an empty field and focus it."""
        if not self.field.is_attached:  # at its first use: four panes open a tenth sooner without it
            self.mount(self._label, self.field)
        self.kind = kind
        self._label.update(f" {kind.value} ")
        self.field.placeholder = _HINTS[kind]
        with self.prevent(Input.Changed):
            self.field.value = ""
        self.display = True
        # At once, not when the loop gets to it: keys typed next belong to the field.
        self.screen.set_focus(self.field)


def parse_position(typed: str) -> tuple[int | None, float | None] | None:
    """Parse a line number or a percentage; None where it is neither."""
    if match := re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*(%?)\s*", typed.replace(",", "").replace("_", "")):
        if match[2]:
            return None, float(match[1])
        return (int(match[1]), None) if match[1].isdigit() else None
    return None
