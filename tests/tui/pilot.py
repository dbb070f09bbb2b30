"""Driving the app in tests: waiting for what is to be seen, reading the screen."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blockbuster import BlockBuster
from textual.pilot import Pilot

from tests.tui.replay import LATER
from tui.app import DistillApp
from tui.app_settings import AppSettings
from tui.screens import cancelling, dialogs, help, monitor  # noqa: A004, F401 - imports on the loop would block it
from tui.screens.wizard import screen as wizard_screen  # noqa: F401 - as above

NARROW, WIDE = (80, 24), (160, 48)


@dataclass
class Screen:
    """The running app and what it shows."""

    app: DistillApp
    pilot: Pilot[Any]

    @property
    def text(self) -> str:
        """Everything that is painted, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    def shows(self, *wanted: str) -> bool:
        text = self.text
        return all(part in text for part in wanted)

    async def until(self, condition: Callable[[], object], what: str = "", limit_s: float = 10.0) -> None:
        """Wait until the condition holds; the screen is shown where it never does."""
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"never: {what}\n{self.text}"
            await self.pilot.pause(0.02)

    async def see(self, *wanted: str, limit_s: float = 10.0) -> None:
        """Wait until all of it is on the screen."""
        await self.until(lambda: self.shows(*wanted), f"{wanted} on the screen", limit_s)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    @property
    def monitor(self) -> monitor.MonitorScreen:
        screen = self.app.screen
        assert isinstance(screen, monitor.MonitorScreen)
        return screen


@asynccontextmanager
async def shown(root: Path, size: tuple[int, int] = NARROW, **settings: Any) -> AsyncIterator[Screen]:
    """Run the app; nothing of ours may block its event loop meanwhile."""
    app = DistillApp(replace(AppSettings(root, now=lambda: LATER), **settings))
    async with app.run_test(size=size, notifications=True) as pilot:
        watchdog = BlockBuster(scanned_modules=["tui", "launcher", "recipes"])
        watchdog.activate()
        try:
            yield Screen(app, pilot)
        finally:
            watchdog.deactivate()
