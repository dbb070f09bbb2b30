"""The footer: keys and their labels."""

from __future__ import annotations

from collections.abc import Container

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from tui.commands import Command, Scope, commands, enabled, key_name

_ALWAYS = ("app.help", "app.quit")


class KeyBar(Widget):
    """The commands that are valid now, as many as fit; always help and quit."""

    auto_links = False
    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; width: 100%; background: $panel; color: $text-muted; }"

    def __init__(self, *scopes: Scope) -> None:
        super().__init__()
        self._scopes = scopes
        self._hidden: tuple[str, ...] = ()
        self._painted: list[Command] = []
        self._painted_first: tuple[str, ...] = ()

    def use_scopes(self, *scopes: Scope, hidden: tuple[str, ...] = ()) -> None:
        """Show the commands of other scopes, without those whose keys are typed as text there."""
        self._scopes, self._hidden = scopes, hidden
        self.refresh()

    def update_keys(self) -> None:
        """Repaint if other commands are valid now than were painted."""
        if not self.is_attached:  # the screen is not composed yet
            return
        if self._valid() != self._painted or self._first() != self._painted_first:
            self.refresh()

    def render(self) -> Content:
        """Return the keys that are valid now."""
        self._painted, self._painted_first = self._valid(), self._first()
        return footer(self._painted, self.size.width, self._painted_first)

    def _first(self) -> tuple[str, ...]:
        first: tuple[str, ...] = getattr(self.screen, "footer_first", ())
        return first

    def _valid(self) -> list[Command]:
        return [
            item
            for item in commands(*self._scopes)
            if item.footer and item.id not in self._hidden and enabled(item, self.screen)
        ]


def footer(valid: list[Command], width: int, first: Container[str] = ()) -> Content:
    """Lay out commands on one line; those that do not fit are only in the help.

    `first` holds the ids of the commands that matter most now.
    """
    room = width
    fitting = set()
    for item in sorted(valid, key=lambda item: (item.id not in _ALWAYS, item.id not in first)):
        if _width(item) <= room:
            room -= _width(item)
            fitting.add(item.id)
    parts: list[Content | tuple[str, str | Style]] = []
    for item in [item for item in valid if item.id in fitting]:
        namespace = "app" if item.scope is Scope.APP else "screen"
        entry = Content.assemble((f" {key_name(item.keys[0])}", "$text bold"), f" {item.footer} ")
        parts.append(entry.stylize(Style.from_meta({"@click": f"{namespace}.{item.action}"})))
    return Content.assemble(*parts)


def _width(command: Command) -> int:
    return cell_len(key_name(command.keys[0])) + cell_len(command.footer) + 3
