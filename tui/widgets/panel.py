"""Panel: a region under a rule that carries its title, and at the right what it holds now."""

from __future__ import annotations

from rich.cells import cell_len
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget

_LIGHT, _HEAVY = "─", "━"
_LEAST_RULE = 2


class PanelTitle(Widget):
    """The rule above a panel: heavy while the panel has the focus, so that this shows without colour."""

    DEFAULT_CSS = """
    PanelTitle { height: 1; width: 100%; color: $text-muted; }
    PanelTitle.-active { color: $text-primary; text-style: bold; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.subtitle = ""

    def render(self) -> Content:
        """Return the rule with both titles."""
        return title_rule(self.title, self.subtitle, self.size.width, active=self.has_class("-active"))


def title_rule(title: str, subtitle: str, width: int, *, active: bool) -> Content:
    """Return `─ title ─── subtitle ─` in `width` cells; without the subtitle where both do not fit."""
    stroke = _HEAVY if active else _LIGHT
    left = Content(f" {title} ").truncate(max(width - 2, 0), ellipsis=True) if title else Content("")
    right = Content(f" {subtitle} ") if subtitle else Content("")
    room = width - left.cell_length - right.cell_length - 2
    if room < _LEAST_RULE:
        right = Content("")
        room = width - left.cell_length - 2
    style = "" if active else "$foreground 30%"
    return Content.assemble(
        (stroke, style), left, (stroke * max(room, 0), style), right.stylize("not bold"), (stroke, style)
    )


class Panel(Vertical):
    """A titled region; its children follow under the rule."""

    def __init__(self, *children: Widget, title: str = "", id: str | None = None) -> None:  # noqa: A002 - Textual's name
        self._heading = PanelTitle()
        self._heading.title = title
        super().__init__(self._heading, *children, id=id, classes="panel")

    def set_title(self, title: str, subtitle: str = "") -> None:
        """Set the title, and what stands at the right of the rule."""
        if (title, subtitle) != (self._heading.title, self._heading.subtitle):
            self._heading.title, self._heading.subtitle = title, subtitle
            self._heading.refresh()

    @property
    def title(self) -> str:
        """The title."""
        return self._heading.title

    def on_descendant_focus(self) -> None:
        """Mark the panel as the one that keys go to."""
        self._show_focus()

    def on_descendant_blur(self) -> None:
        """Take the mark away, unless the focus only moved within the panel."""
        self._show_focus()

    def _show_focus(self) -> None:
        self._heading.set_class(self.has_focus_within, "-active")


def fitted(text: str, width: int) -> str:
    """Return text of exactly `width` cells: cut with an ellipsis, or padded; tables never wrap in a cell."""
    if width <= 0:
        return ""
    if text.isascii() and text.isprintable():  # a table has thousands of these
        return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
    if cell_len(text) > width:
        text = Content(text).truncate(width, ellipsis=True).plain
    return text + " " * (width - cell_len(text))
