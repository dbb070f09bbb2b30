"""Rules of the screens other than the list of runs: parsed once it is painted, or another one is opened.

Parsing them takes as long as painting the list.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from textual.app import App

FIRST = Path(__file__).with_name("distill.tcss")
"""Rules of the list of runs, and of what all screens share."""
FURTHER = Path(__file__).with_name("screens.tcss")


class ScreenStyles:
    """Adds the further rules once; their file is read before the event loop begins."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._text = _further_rules()

    def add(self) -> None:
        """Add them, unless it is done."""
        if self._text:
            self._app.stylesheet.add_source(self._text, read_from=(str(FURTHER), ""))
            self._app.stylesheet.parse()
            self._text = ""


@cache
def _further_rules() -> str:
    return FURTHER.read_text(encoding="utf-8")
