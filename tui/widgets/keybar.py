"""The bar of keys at the bottom."""

from __future__ import annotations

from collections.abc import Container

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from tui.commands import Command, Scope, commands, key_name

_ALWAYS = ("app.help", "app.quit")


class KeyBar(Widget):
    """Shows what can be done here, as much as fits; help and quit always."""

    auto_links = False
    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; width: 100%; background: $panel; color: $text-muted; }"

    def __init__(self, *places: Scope) -> None:
        super().__init__()
        self._places = places
        self._painted: list[Command] = []
        self._painted_first: tuple[str, ...] = ()

    def look_again(self) -> None:
        """Repaint if other commands are valid now than were painted."""
        if self._shown() != self._painted or self._first() != self._painted_first:
            self.refresh()

    def render(self) -> Content:
        """Return the keys that are valid now."""
        self._painted, self._painted_first = self._shown(), self._first()
        return bar(self._painted, self.size.width, self._painted_first)

    def _first(self) -> tuple[str, ...]:
        first: tuple[str, ...] = getattr(self.screen, "bar_first", ())
        return first

    def _shown(self) -> list[Command]:
        return [item for item in commands(*self._places) if item.bar and self._valid(item)]

    def _valid(self, command: Command) -> bool:
        if command.where is Scope.APP:
            return True
        return bool(self.screen.check_action(command.action.partition("(")[0], ()))


def bar(shown: list[Command], width: int, first: Container[str] = ()) -> Content:
    """Lay commands out on one line; what does not fit is left to the help.

    `first` names the commands that matter most now.
    """
    room = width
    kept = set()
    for item in sorted(shown, key=lambda item: (item.id not in _ALWAYS, item.id not in first)):
        if _width(item) <= room:
            room -= _width(item)
            kept.add(item.id)
    parts: list[Content | tuple[str, str | Style]] = []
    for item in [item for item in shown if item.id in kept]:
        space = "app" if item.where is Scope.APP else "screen"
        entry = Content.assemble((f" {key_name(item.keys[0])}", "$text bold"), f" {item.bar} ")
        parts.append(entry.stylize(Style.from_meta({"@click": f"{space}.{item.action}"})))
    return Content.assemble(*parts)


def _width(command: Command) -> int:
    return cell_len(key_name(command.keys[0])) + cell_len(command.bar) + 3
