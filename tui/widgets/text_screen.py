"""A text on the whole screen, to read: a script, a list of variables, a command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from tui.widgets.panel import Panel
from tui.widgets.styled_lines import StyledLines


class TextScreen(ModalScreen[None]):
    """Shows lines; the usual keys scroll, and leave."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,b,enter", "leave", "Back", show=False),
        Binding("up,k", "scroll(-1)", "Up", show=False),
        Binding("down,j", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-10)", "Page up", show=False),
        Binding("pagedown,space", "scroll(10)", "Page down", show=False),
        Binding("home,g", "edge(0)", "First line", show=False),
        Binding("end,G", "edge(1)", "Last line", show=False),
        Binding("f1", "app.help", "Help", show=False),
    ]
    DEFAULT_CSS = """
    TextScreen { background: $background; align: left top; }
    TextScreen Panel { height: 1fr; }
    TextScreen VerticalScroll { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    TextScreen .text-keys { dock: bottom; height: 1; background: $panel; color: $text-muted; }
    """

    def __init__(self, title: str, subtitle: str, lines: Sequence[Content]) -> None:
        super().__init__()
        self._lines = tuple(lines)
        self._text = StyledLines()
        self._box = VerticalScroll(self._text)
        self._panel = Panel(self._box, title=title)
        self._subtitle, self._title = subtitle, title

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self._panel
        keys = StyledLines(classes="text-keys")
        keys.set_lines([Content.assemble((" b", "$text bold"), " back ")])
        yield keys

    def on_mount(self) -> None:
        """Show the lines."""
        self._panel.set_title(self._title, self._subtitle)
        self._text.set_lines(self._lines)
        self._box.focus()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self._box.scroll_to(y=self._box.scroll_offset.y + lines, animate=False)

    def action_edge(self, end: int) -> None:
        """Scroll to the first or the last line."""
        if end:
            self._box.scroll_end(animate=False)
        else:
            self._box.scroll_home(animate=False)

    def action_leave(self) -> None:
        """Leave."""
        self.dismiss(None)
