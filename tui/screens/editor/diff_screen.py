"""A difference on the whole screen, in one or several parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from tui.widgets.diff_lines import changed_count, diff_lines
from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines


class DiffScreen(ModalScreen[str | None]):
    """Shows unified diffs, one at a time; answers `save` where the user saves from here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,b,D", "leave", "Back", show=False),
        Binding("tab,p", "next_part", "Next part", show=False),
        Binding("w", "save", "Save", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
    ]
    DEFAULT_CSS = """
    DiffScreen { background: $background; align: left top; }
    DiffScreen Panel { height: 1fr; }
    DiffScreen VerticalScroll { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    DiffScreen .diff-keys { dock: bottom; height: 1; background: $panel; color: $text-muted; }
    """

    def __init__(self, title: str, parts: Mapping[str, str]) -> None:
        super().__init__()
        self._title, self._parts = title, tuple(parts.items())
        self._part = 0
        self._lines = StyledLines()
        self._box = VerticalScroll(self._lines)
        self._panel = Panel(self._box, title=title)
        self._keys = StyledLines(classes="diff-keys")

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self._panel
        yield self._keys

    def on_mount(self) -> None:
        """Show the first part."""
        self._show()
        self._box.focus()

    def _show(self) -> None:
        name, diff = self._parts[self._part]
        added, removed = changed_count(diff)
        self._panel.set_title(f"{self._title}: {name}", f"+{added} −{removed}" if diff else "")
        self._lines.set_lines(diff_lines(diff) if diff else [Content("no difference").stylize("dim")])
        self._box.scroll_home(animate=False)
        keys = [("b", "back")]
        if len(self._parts) > 1:
            keys.append(("tab", self._parts[(self._part + 1) % len(self._parts)][0]))
        if self._title == "Diff" and self._parts[0][1]:
            keys.append(("w", "save"))
        parts: list[tuple[str, str]] = []
        for key, label in keys:
            parts += [(f" {key}", "$text bold"), (f" {label} ", "")]
        self._keys.set_lines([Content.assemble(*parts)])

    def action_next_part(self) -> None:
        """Show the next part."""
        self._part = (self._part + 1) % len(self._parts)
        self._show()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self._box.scroll_to(y=self._box.scroll_offset.y + lines, animate=False)

    def action_save(self) -> None:
        """Save, and leave."""
        if self._title == "Diff":
            self.dismiss("save")

    def action_leave(self) -> None:
        """Leave."""
        self.dismiss(None)
