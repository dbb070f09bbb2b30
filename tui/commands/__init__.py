"""The table of commands: keys, titles, help, and the screen on which each is valid.

Key bindings, the footer, the command palette, the help screen and the documentation are made from it; each
screen's part is a module of its own. Keys are letters, F-keys, enter, escape, tab and arrows only: tmux takes
ctrl+b and does not pass shift+enter. Whatever escape does, another key does too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.actions import parse
from textual.binding import Binding, BindingType

from tui.commands.app_keys import APP_COMMANDS
from tui.commands.chart_keys import CHART_COMMANDS
from tui.commands.command import Command, Scope
from tui.commands.doctor_keys import DOCTOR_COMMANDS
from tui.commands.editor_keys import EDITOR_COMMANDS
from tui.commands.monitor_keys import MONITOR_COMMANDS, PANE_LAYOUTS
from tui.commands.run_list_keys import RUN_LIST_COMMANDS
from tui.commands.wizard_keys import WIZARD_COMMANDS

if TYPE_CHECKING:
    from textual.screen import Screen

__all__ = [
    "COMMANDS",
    "PANE_LAYOUTS",
    "Command",
    "Scope",
    "bindings",
    "commands",
    "enabled",
    "key_name",
    "key_tables",
]

COMMANDS: tuple[Command, ...] = (
    *RUN_LIST_COMMANDS,
    *CHART_COMMANDS,
    *MONITOR_COMMANDS,
    *WIZARD_COMMANDS,
    *EDITOR_COMMANDS,
    *DOCTOR_COMMANDS,
    *APP_COMMANDS,
)

_KEY_NAMES = {
    "colon": ":", "ampersand": "&", "number_sign": "#", "delete": "Del", "plus": "+",
    "minus": "-", "greater_than_sign": ">", "less_than_sign": "<", "equals_sign": "=", "asterisk": "*",
    "comma": ",", "full_stop": ".", "slash": "/", "question_mark": "?", "escape": "esc",
    "pageup": "PgUp", "pagedown": "PgDn", "f1": "F1",
    "f2": "F2", "f3": "F3", "f4": "F4", "f5": "F5", "f6": "F6", "f7": "F7", "f8": "F8", "f9": "F9",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "home": "Home", "end": "End",
}  # fmt: skip


def commands(*scopes: Scope) -> tuple[Command, ...]:
    """Return the commands of some scopes, in the table's order."""
    return tuple(command for command in COMMANDS if command.scope in scopes)


def enabled(command: Command, screen: Screen[object]) -> bool:
    """Return whether a command is valid on the screen now."""
    if command.scope is Scope.APP:
        return True
    _, name, parameters = parse(command.action)
    return bool(screen.check_action(name, parameters))


def bindings(scope: Scope) -> list[BindingType]:
    """Return the key bindings of a scope."""
    return [
        Binding(
            ",".join(command.keys),
            command.action,
            command.title,
            show=False,
            priority=command.priority,
            tooltip=command.help,
            id=command.id,
        )
        for command in commands(scope)
        if command.keys
    ]


def key_name(key: str) -> str:
    """Return a key as it is shown to the user."""
    return _KEY_NAMES.get(key, key)


def key_tables() -> str:
    """Return the commands as Markdown tables, for the documentation: `python -m tui.commands`."""
    parts = []
    for scope in Scope:
        rows = [
            f"| {' '.join(f'`{key_name(key)}`' for key in command.keys) or '(palette)'} "
            f"| {command.title} | {command.help} |"
            for command in commands(scope)
        ]
        parts.append("\n".join([f"### {scope.value}", "", "| Key | | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"
