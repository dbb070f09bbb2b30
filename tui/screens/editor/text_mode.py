"""Text mode: the file's text in an editor, highlighted without a parser of its own."""

from __future__ import annotations

import re
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.message import Message
from textual.widgets import TextArea

from tui.commands import Scope, bindings
from tui.widgets.yaml_tokens import KINDS, ScanState, scan_line

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_STAND_IN = "�"
"""Painted for a control character: escape sequences of a file must not reach the terminal."""


class RecipeTextArea(TextArea):
    """The text under edit; its keys that are no text are those of the screen."""

    BINDINGS = bindings(Scope.TEXT_MODE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"yaml--{kind}" for kind in KINDS}

    class CommandRequested(Message):
        """A command of the screen was asked for."""

        def __init__(self, command: str) -> None:
            super().__init__()
            self.command = command

    def __init__(self, text: str, line: int) -> None:
        super().__init__(
            text,
            language=None,
            soft_wrap=False,
            show_line_numbers=True,
            tab_behavior="indent",
            max_checkpoints=1,
        )
        self.cursor_blink = False
        self.indent_width = 2
        self._states: list[ScanState] = []
        self._inks: dict[str, Style] = {}
        self._first_line = line

    def on_mount(self) -> None:
        """Begin on the line."""
        self.call_after_refresh(self.move_cursor, (max(self._first_line - 1, 0), 0), center=True)

    def action_leave_text(self) -> None:
        """Ask to leave the text mode."""
        self.post_message(self.CommandRequested("leave_text"))

    def action_undo(self) -> None:
        """Ask for the session's undo: it has the changes made in the tree, too."""
        self.post_message(self.CommandRequested("undo"))

    def action_redo(self) -> None:
        """Ask for the session's redo."""
        self.post_message(self.CommandRequested("redo"))

    def action_fix(self) -> None:
        """Ask for the fix of the finding on the line's key."""
        self.post_message(self.CommandRequested("fix"))

    def action_diff(self) -> None:
        """Ask for the difference to the file."""
        self.post_message(self.CommandRequested("diff"))

    def action_save(self) -> None:
        """Ask to save."""
        self.post_message(self.CommandRequested("save"))

    def replace_by(self, text: str) -> None:
        """Show another text, the cursor on the same line."""
        row = self.cursor_location[0]
        self.load_text(text)
        self._forget_from(0)
        self.move_cursor((min(row, self.document.line_count - 1), 0))

    def _forget_from(self, row: int) -> None:
        del self._states[row:]

    def on_text_area_changed(self) -> None:
        """Colour from the cursor's line on anew; the lines above are as they were."""
        self._forget_from(max(min(self.selection.start[0], self.selection.end[0]) - 1, 0))

    def get_line(self, line_index: int) -> Text:
        """Return a line with its colours, control characters replaced."""
        plain = self.document.get_line(line_index)
        shown = _CONTROLS.sub(_STAND_IN, plain)
        text = Text(shown, end="", no_wrap=True)
        tokens, _ = scan_line(shown, self._state_before(line_index))
        for token in tokens:
            text.stylize(self._ink(token.kind), token.start, token.end)
        return text

    def notify_style_update(self) -> None:
        """Compute the styles anew for another theme."""
        super().notify_style_update()
        self._inks = {}

    def _ink(self, kind: str) -> Style:
        """Return the colour of a token, without a background."""
        if kind not in self._inks:
            style = self.get_component_rich_style(f"yaml--{kind}")
            self._inks[kind] = style.without_color + Style(color=style.color)
        return self._inks[kind]

    def _state_before(self, line_index: int) -> ScanState:
        """Return what the lines above leave open; computed once for each line."""
        while len(self._states) < line_index:
            row = len(self._states)
            before = self._states[row - 1] if row else ScanState()
            self._states.append(scan_line(self.document.get_line(row), before)[1])
        return self._states[line_index - 1] if line_index else ScanState()
