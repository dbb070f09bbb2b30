"""The footer: keys and their labels."""

from __future__ import annotations

from collections.abc import Container

from rich.cells import cell_len
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from tui.commands import Command, Scope, commands, enabled, key_name

_ALWAYS = ("app.help", "app.quit", "app.quit-now")


class KeyBar(Widget):
    """The commands that are valid now, as many as fit; always help and quit."""

    auto_links = False
    DEFAULT_CSS = "KeyBar { dock: bottom; height: 1; width: 100%; background: $panel; color: $text-muted; }"

    def __init__(self, *scopes: Scope) -> None:
        super().__init__()
        self._scopes = scopes
        self._painted: list[tuple[Command, str]] = []
        self._painted_first: tuple[str, ...] = ()

    def on_mount(self) -> None:
        """Follow the focus: in a field letters are text."""
        self.watch(self.screen, "focused", self.update_keys, init=False)

    def use_scopes(self, *scopes: Scope) -> None:
        """Show the commands of other scopes."""
        self._scopes = scopes
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

    def _valid(self) -> list[tuple[Command, str]]:
        """Return the valid commands, each with its first key that the focused field does not take as text."""
        valid = [
            (item, key)
            for item in commands(*self._scopes)
            if item.footer and (key := self._free_key(item)) and enabled(item, self.screen)
        ]
        quits = any(item.id == "app.quit" for item, _ in valid)
        return [pair for pair in valid if not (quits and pair[0].id == "app.quit-now")]

    def _free_key(self, command: Command) -> str:
        focused = self.screen.focused
        if command.priority or focused is None:
            return command.keys[0]
        return next((key for key in command.keys if not focused.check_consume_key(key, _character(key))), "")


def footer(valid: list[tuple[Command, str]], width: int, first: Container[str] = ()) -> Content:
    """Lay out commands on one line; those that do not fit are only in the help.

    `valid`: each command with the key that is shown; `first`: ids of the commands that matter most now.
    """
    room = width
    fitting = set()
    for item, key in sorted(valid, key=lambda pair: _rank(pair[0], first)):
        if _width(item, key) <= room:
            room -= _width(item, key)
            fitting.add(item.id)
    parts: list[Content | tuple[str, str | Style]] = []
    for item, key in [pair for pair in valid if pair[0].id in fitting]:
        namespace = "app" if item.scope is Scope.APP else "screen"
        entry = Content.assemble((f" {key_name(key)}", "$text bold"), f" {item.footer} ")
        parts.append(entry.stylize(Style.from_meta({"@click": f"{namespace}.{item.action}"})))
    return Content.assemble(*parts)


def _rank(command: Command, first: Container[str]) -> tuple[bool, bool, bool]:
    """Return what orders commands: help and quit, what matters now, the way back, the others."""
    return command.id not in _ALWAYS, command.id not in first, not command.id.endswith(".back")


def _character(key: str) -> str | None:
    """Return what a key types; None for a key that is no character."""
    name = key_name(key)
    return name if len(name) == 1 and name.isascii() else None


def _width(command: Command, key: str) -> int:
    return cell_len(key_name(key)) + cell_len(command.footer) + 3
