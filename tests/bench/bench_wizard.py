"""Time from a key press in the wizard to its paint, and to the checks of what was typed.

Run as `python tests/bench/bench_wizard.py`: sizes are typed in the wizard on a login node of scripts, without
a terminal. Prints milliseconds of CPU (all threads of the process) at the median and the 95th percentile, and
exits with 1 above a target. By the clock they are the same on an idle machine, but for the pause between keys
in which the checks wait for the next one (`poller.TYPING_S`).
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.tui.fakeslurm import LoginNode
from tui.app import DistillApp
from tui.app_settings import AppSettings
from tui.screens.wizard.model import WizardState
from tui.screens.wizard.screen import WizardScreen

PRESSES = 40
PAINT_MS, CHECKS_MS = 50.0, 100.0
_FIELDS = {"parallelism": "14", "batches": "23"}
"""Digits that are typed in turn into the first field of a step."""


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 - the screen has no event for it
        await asyncio.sleep(0.002)


async def measure(node: LoginNode, step: str, size: tuple[int, int]) -> tuple[list[float], list[float]]:
    """Return CPU milliseconds from each key to its paint, and to its checks."""
    state = WizardState({"recipe": str(node.recipe)})
    app = DistillApp(AppSettings(node.runs, wizard_state=state))
    paints, checks = [], []
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert isinstance(screen, WizardScreen)
        await until(lambda: screen.status.settled and screen.status.detection is not None)
        while screen.step.id != step:
            await pilot.press("pagedown")
        await asyncio.sleep(1.0)
        for number in range(PRESSES):
            digit = _FIELDS[step][number % 2]
            start = time.process_time()
            await pilot.press("ctrl+u", digit)
            paints.append((time.process_time() - start) * 1000)
            await until(lambda: screen.status.state is screen.wizard_state)
            await pilot.pause(0)
            checks.append((time.process_time() - start) * 1000)
            await until(lambda: screen.status.settled)
    return paints, checks


def p95(values: list[float]) -> float:
    """Return the 95th percentile."""
    return statistics.quantiles(values, n=20)[-1]


def main() -> int:
    """Measure each step at two sizes; two keys each: the field is cleared, then a digit typed."""
    failed = False
    with tempfile.TemporaryDirectory() as directory:
        node = LoginNode.at(Path(directory) / "node")
        os.environ.update(node.environment, XDG_STATE_HOME=str(node.root / "state"))
        for step in _FIELDS:
            for size in ((80, 24), (160, 48)):
                paints, checks = asyncio.run(measure(node, step, size))
                late = p95(paints) / 2 > PAINT_MS or p95(checks) > CHECKS_MS
                failed = failed or late
                print(
                    f"{step:<12} {size[0]}x{size[1]}  "
                    f"paint of a key: {statistics.median(paints) / 2:5.1f} ms, "
                    f"p95 {p95(paints) / 2:5.1f}   checks: {statistics.median(checks):5.1f} ms, "
                    f"p95 {p95(checks):5.1f}{'   above the target' if late else ''}"
                )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
