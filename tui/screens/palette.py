"""The palette of commands."""

from __future__ import annotations

from contextlib import suppress

from textual.command import CommandPalette


class Palette(CommandPalette):
    """Finds a command by its name."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):  # a list that is not laid out yet has no line to page to
            super()._action_command_list(action)
