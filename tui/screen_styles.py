"""Rules of the screens other than the list of runs, read when the first of these is opened or the list is painted.

Parsing them takes as long as painting the list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App

FIRST = Path(__file__).with_name("distill.tcss")
"""Rules of the list of runs, and of what all screens share."""
FURTHER = Path(__file__).with_name("screens.tcss")


class ScreenStyles:
    """Reads the further rules once."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._read = False

    def read(self) -> None:
        """Read them, unless they are read."""
        if self._read:
            return
        self._read = True
        self._app.stylesheet.read(FURTHER)
        self._app.stylesheet.parse()
