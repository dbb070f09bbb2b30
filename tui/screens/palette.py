"""The palette of commands."""

from __future__ import annotations

from textual.command import CommandList, CommandPalette


class Palette(CommandPalette):
    """Finds a command by its name; a list that has no room yet is not paged through, which would fail."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region.area:
            super()._action_command_list(action)
