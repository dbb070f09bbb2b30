"""The terminal driver: Textual's, but only cells that differ are sent, and the output is measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from textual.drivers.linux_driver import LinuxDriver

from tui.cell_frame import CellFrame
from tui.output_meter import MeteredFile, OutputMeter

_SYNC_BEGIN, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
_BCE = (
    "xterm", "tmux", "rxvt", "alacritty", "kitty", "foot", "wezterm", "ghostty", "konsole", "linux", "st-",
    "vte", "gnome", "contour",
)  # fmt: skip
"""Beginnings of $TERM of terminals that erase with the current background; GNU screen by default does not."""


def erases_in_colour(environ: Mapping[str, str]) -> bool:
    """Return whether erased cells get the current background."""
    return bool(environ.get("TMUX")) or environ.get("TERM", "").startswith(_BCE)


class CellDriver(LinuxDriver):
    """Sends what changes on the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as Textual calls drivers
        super().__init__(*arguments, **options)
        self._frame = CellFrame(erases_in_colour=erases_in_colour(os.environ))
        self._held = ""
        """The begin of a synchronised update that is sent only before output."""
        self.meter = OutputMeter()
        self._file = cast(Any, MeteredFile(cast(Any, self._file), self.meter))

    def write(self, data: str) -> None:
        """Write output of Textual, reduced."""
        if data == _SYNC_BEGIN:
            self._held = data
            return
        if data == _SYNC_END and self._held:
            self._held = ""
            return
        reduced = self._frame.reduce(data)
        if reduced:
            super().write(self._held + reduced)
            self._held = ""

    def resized(self, width: int, height: int) -> None:
        """Adopt the terminal's size; all cells are sent again."""
        self._frame.resize(width, height)

    def forget(self) -> None:
        """Send all cells again that are painted from now on."""
        self._frame.forget()
