"""A monkey at the keyboard: random keys, text, pastes, clicks and sizes, on any screen of the app."""

from __future__ import annotations

import asyncio
import string
from dataclasses import dataclass, field
from random import Random
from typing import Any

from textual.events import Paste
from textual.pilot import OutOfBounds, Pilot

from tui.app import DistillApp

_NAMED = (
    "up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter", "escape", "tab", "shift+tab", "space",
    "backspace", "delete", "f1", "f2", "f3", "f5", "f10", "insert", "ctrl+p", "ctrl+l", "ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u",
    "ctrl+w", "ctrl+s", "ctrl+g", "ctrl+f", "ctrl+n", "ctrl+t", "ctrl+r", "ctrl+y", "ctrl+home", "ctrl+end", "ctrl+left",
    "ctrl+right", "shift+up", "shift+down", "shift+left", "shift+right", "alt+left", "ctrl+o", "ctrl+b", "ctrl+d", "ctrl+v",
    "ctrl+x", "ctrl+underscore", "ctrl+at",
)  # fmt: skip
_SIGNS = (
    "slash", "question_mark", "colon", "comma", "full_stop", "minus", "plus", "equals_sign", "number_sign",
    "left_square_bracket", "right_square_bracket", "left_curly_bracket", "right_curly_bracket", "exclamation_mark",
    "asterisk", "percent_sign", "ampersand", "vertical_line", "tilde", "apostrophe", "quotation_mark", "greater_than_sign",
    "less_than_sign", "backslash", "grave_accent", "circumflex_accent", "dollar_sign", "at", "semicolon", "underscore",
)  # fmt: skip
_LETTERS = tuple(string.ascii_letters + string.digits)
_PASTES = (
    "x" * 1_000_000, "a\nb\nc\n" * 3000, "/(a|aa)+$/", "\x1b[2J\x9b31m\u202e", "\ud800\udcff", "\x00", "größe 中文 🔍\u200d",
    "9" * 5000, "-1", "[red]x[/]", "${a.b}", "a: [", "~nosuch/x", "/dev/zero", "\t\t", "",
)  # fmt: skip
_SIZES = ((80, 24), (160, 48), (20, 5), (1, 1), (300, 3), (8, 100), (120, 30), (2, 2), (400, 100))
_MOST_SIZES = 8
LIMIT_S = 120.0
"""Time in which the app must have taken what was done, on a machine with ten times the work."""


@dataclass
class Monkey:
    """Presses what comes to its mind."""

    pilot: Pilot[Any]
    random: Random
    log: list[str] = field(default_factory=list)
    """What it did last."""

    @property
    def app(self) -> DistillApp:
        app = self.pilot.app
        assert isinstance(app, DistillApp)
        return app

    @property
    def is_over(self) -> bool:
        """Whether the app was left, as a key may do."""
        return self.app._exit or not self.app.is_running

    async def play(self, actions: int) -> int:
        """Do a number of things, or until the app is left; returns how many."""
        for number in range(actions):
            if self.is_over:
                return number
            await asyncio.wait_for(self._act(), LIMIT_S * _MOST_SIZES)
            assert self.app._exception is None, self.story()
        return actions

    def story(self) -> str:
        """Return what was done last, and where."""
        return f"{self.app._exception!r} on {self.app.screen!r} after {self.log[-40:]}"

    async def _act(self) -> None:
        chance = self.random.random()
        if chance < 0.02:
            await self._resize()
        elif chance < 0.06:
            await self._click()
        elif chance < 0.07:
            text = self.random.choice(_PASTES)
            self.log.append(f"paste {text[:10]!r}")
            self.app.post_message(Paste(text))
            await self.pilot.pause()
        elif chance < 0.075:
            keys = [
                "ctrl+p",
                *self.random.choices(_LETTERS, k=3),
                self.random.choice(("pageup", "end", "pagedown", "enter")),
            ]
            await self._press(*keys)
        elif chance < 0.5:
            await self._press(self.random.choice(_NAMED))
        elif chance < 0.62:
            await self._press(self.random.choice(_SIGNS))
        else:
            await self._press(self.random.choice(_LETTERS))

    async def _press(self, *keys: str) -> None:
        self.log += keys
        await self.pilot.press(*keys)

    async def _resize(self) -> None:
        sizes = self.random.choices(_SIZES, k=self.random.choice((1, 1, _MOST_SIZES)))
        self.log.append(f"sizes {sizes}")
        for width, height in sizes:
            await asyncio.wait_for(self.pilot.resize_terminal(width, height), LIMIT_S)

    async def _click(self) -> None:
        width, height = self.app.size
        offset = (self.random.randrange(max(width, 1)), self.random.randrange(max(height, 1)))
        self.log.append(f"click {offset}")
        try:
            await self.pilot.click(offset=offset, times=self.random.choice((1, 1, 2)))
        except OutOfBounds:  # the screen got smaller
            return
