"""A difference on the whole screen, in one or several parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from tui.widgets.diff_lines import changed_count, diff_lines
from tui.widgets.text_screen import ReadingScreen


class DiffScreen(ReadingScreen[str]):
    """Shows unified diffs, one at a time; answers `save` where the user saves from here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "leave", "Back", show=False),
        Binding("tab,p", "next_part", "Next part", show=False),
        Binding("w", "save", "Save", show=False),
    ]

    def __init__(self, title: str, parts: Mapping[str, str]) -> None:
        super().__init__(title)
        self._title, self._parts = title, tuple(parts.items())
        self._part = 0

    def on_mount(self) -> None:
        """Show the first part."""
        self._show()
        self.box.focus()

    def _show(self) -> None:
        name, diff = self._parts[self._part]
        added, removed = changed_count(diff)
        self.panel.set_title(f"{self._title}: {name}", f"+{added} −{removed}" if diff else "")
        self.text.set_lines(diff_lines(diff) if diff else [Content("no difference").stylize("dim")])
        self.box.scroll_home(animate=False)
        keys = [("b", "back")]
        if len(self._parts) > 1:
            keys.append(("tab", self._parts[(self._part + 1) % len(self._parts)][0]))
        if self._title == "Diff" and self._parts[0][1]:
            keys.append(("w", "save"))
        self.show_keys(*keys)

    def action_next_part(self) -> None:
        """Show the next part."""
        self._part = (self._part + 1) % len(self._parts)
        self._show()

    def action_save(self) -> None:
        """Save, and leave."""
        if self._title == "Diff":
            self.dismiss("save")
