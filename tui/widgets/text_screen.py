"""A text on the whole screen, to read: a script, a list of variables, a command, a difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines

Answer = TypeVar("Answer")


class ReadingScreen(ModalScreen[Answer | None]):
    """Lines under a title, with a line of keys; the usual keys scroll, and leave without an answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,b", "leave", "Back", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
        Binding("home,g", "edge(0)", "First line", show=False),
        Binding("end,G", "edge(1)", "Last line", show=False),
        Binding("f1", "app.help", "Help", show=False),
    ]
    DEFAULT_CSS = """
    ReadingScreen { background: $background; align: left top; }
    ReadingScreen Panel { height: 1fr; }
    ReadingScreen VerticalScroll { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    ReadingScreen .reading-keys { dock: bottom; height: 1; background: $panel; color: $text-muted; }
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self.text = StyledLines()
        self.box = VerticalScroll(self.text)
        self.panel = Panel(self.box, title=title)
        self._keys = StyledLines(classes="reading-keys")

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.panel
        yield self._keys

    def show_keys(self, *keys: tuple[str, str]) -> None:
        """Show keys and their labels in the last line."""
        parts: list[tuple[str, str]] = []
        for key, label in keys:
            parts += [(f" {key}", "$text bold"), (f" {label} ", "")]
        self._keys.set_lines([Content.assemble(*parts)])

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.box.scroll_to(y=self.box.scroll_offset.y + lines, animate=False)

    def action_edge(self, end: int) -> None:
        """Scroll to the first or the last line."""
        if end:
            self.box.scroll_end(animate=False)
        else:
            self.box.scroll_home(animate=False)

    def action_leave(self) -> None:
        """Leave."""
        self.dismiss(None)


class TextScreen(ReadingScreen[None]):
    """Shows lines."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "leave", "Back", show=False)]

    def __init__(self, title: str, subtitle: str, lines: Sequence[Content]) -> None:
        super().__init__(title)
        self._title, self._subtitle = title, subtitle
        self._lines = tuple(lines)

    def on_mount(self) -> None:
        """Show the lines."""
        self.panel.set_title(self._title, self._subtitle)
        self.text.set_lines(self._lines)
        self.show_keys(("b", "back"))
        self.box.focus()
