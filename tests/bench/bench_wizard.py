"""Time from a key press in the wizard to its paint, and to the checks of what was typed.

Run as `python tests/bench/bench_wizard.py`: sizes are typed in the wizard on a login node of scripts, without
a terminal. Each key is one measurement, and the next one follows when everything is resolved. Prints
milliseconds of CPU (all threads of the process) at the median and the 95th percentile, by the clock in
brackets, and exits with 1 where CPU is above a target. The clock has the pause between keys in which the
checks wait for the next one (`poller.TYPING_S`), and on a busy machine what other processes take.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.events import Key

from tests.tui.fakeslurm import LoginNode
from tui.app import DistillApp
from tui.app_settings import AppSettings
from tui.screens.wizard.findings import Assessment
from tui.screens.wizard.model import WizardState
from tui.screens.wizard.screen import WizardScreen

PRESSES = 60
PAINT_MS, CHECKS_MS = 50.0, 100.0
_NO_PAINT_S = 0.05
"""Pause after which the checks are taken to look as before, so that nothing is painted."""
_KEYS = {"parallelism": ("1", "backspace", "4", "backspace"), "batches": ("2", "backspace", "3", "backspace")}
"""Keys that are pressed in turn in the first field of a step."""


class _TimedApp(DistillApp):
    """The app, with the times of its paints."""

    def __init__(self, settings: AppSettings) -> None:
        super().__init__(settings)
        self.paints: list[tuple[float, float]] = []

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if renderable is not None:
            self.paints.append(now())

    async def painted(self, limit_s: float) -> tuple[float, float]:
        """Return the time of the next paint; where nothing is painted for so long, now."""
        count, end = len(self.paints), time.monotonic() + limit_s
        await until(lambda: len(self.paints) > count or time.monotonic() > end)
        return self.paints[count] if len(self.paints) > count else now()


@dataclass
class _Times:
    """Milliseconds from key presses to an event, of CPU and by the clock."""

    cpu: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    def add(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.cpu.append((end[0] - start[0]) * 1000)
        self.clock.append((end[1] - start[1]) * 1000)

    def __str__(self) -> str:
        by_clock = f"{statistics.median(self.clock):.0f}, {p95(self.clock):.0f}"
        return f"{statistics.median(self.cpu):5.1f} ms, p95 {p95(self.cpu):5.1f} (clock {by_clock})"


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 - the screen has no event for it
        await asyncio.sleep(0.004)


def now() -> tuple[float, float]:
    """Return CPU seconds of this process, and the clock."""
    return time.process_time(), time.monotonic()


async def measure(node: LoginNode, step: str, size: tuple[int, int]) -> tuple[_Times, _Times]:
    """Return the times from each key to its paint, and to its checks on the screen."""
    state = WizardState({"recipe": str(node.recipe)})
    app = _TimedApp(AppSettings(node.runs, wizard_state=state))
    paints, checks = _Times(), _Times()
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, WizardScreen)
        await until(lambda: screen.status.settled and screen.status.detection is not None)
        while screen.step.id != step:
            await pilot.press("pagedown")
        await pilot.press("ctrl+u")
        for number in range(PRESSES):
            await until(lambda: screen.status.settled and screen.status.state is screen.wizard_state)
            await asyncio.sleep(0.1)
            key = _KEYS[step][number % 4]
            before, shown, start = screen.wizard_state, screen.assessment, now()
            app.post_message(Key(key, key if len(key) == 1 else None))
            paints.add(start, await app.painted(5.0))

            def resolved(before: WizardState = before, shown: Assessment = shown) -> bool:
                state = screen.wizard_state
                return state is not before and screen.status.state is state and screen.assessment is not shown

            await until(resolved)
            checks.add(start, await app.painted(_NO_PAINT_S))
    return paints, checks


def p95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def main() -> int:
    """Measure each step at two sizes."""
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        node = LoginNode.at(Path(directory) / "node")
        os.environ.update(node.environment, XDG_STATE_HOME=str(node.root / "state"))
        for step in _KEYS:
            for size in ((80, 24), (160, 48)):
                paints, checks = asyncio.run(measure(node, step, size))
                late = p95(paints.cpu) > PAINT_MS or p95(checks.cpu) > CHECKS_MS
                failed = failed or late
                verdict = "   above the target" if late else ""
                print(f"{step:<12} {size[0]}x{size[1]}  paint: {paints}   checks: {checks}{verdict}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
