"""Four panes on large logs, and on a lively one: `uv run python tests/bench/bench_panes.py [--size MB]`.

The app runs without a terminal at 160x48, in the grid layout. The logs are one file under four names, which
the app cannot know; waits are those of its event loop, next to those of a process that only waits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bench_logs import make_log  # noqa: E402 - the project is found first
from tests.bench.measuring import LIVE_S, Row, memory_of, metered, print_viewers, writing  # noqa: E402
from tests.bench.viewer import LINES_A_S, MARK, app_on, monitor_of, seen, until  # noqa: E402
from tui.logview.layouts import PaneLayout  # noqa: E402
from tui.screens.monitor import MonitorScreen  # noqa: E402

NAMES = ("ray-driver.log", "ray-head.log", "ray-worker-1.log", "ray-worker-2.log")
SIZE = (160, 48)


def all_show(screen: MonitorScreen, text: str) -> bool:
    """Return whether each of four panes shows a text."""
    shown = [any(text in line.text for line in pane.text.visible_lines()) for pane in screen.panes.panes]
    return len(shown) == len(NAMES) and all(shown)


async def opening(root: Path, directory: Path) -> Row:
    """Show four large logs in a monitor that is open; wait until their lines are counted."""
    async with app_on(root, SIZE) as app:
        screen = monitor_of(app, directory)
        await app.push_screen(screen)
        screen.action_show_pane("logs")
        screen.panes.set_choices(PaneLayout.ONE, {})
        await seen(app, MARK)
        await until(lambda: not screen.view.reading and screen.logs.text.extent.counted, "all read")
        async with metered() as meter:
            screen.panes.set_layout(PaneLayout.GRID)
            await until(lambda: all_show(screen, MARK), "four panes")
            shown = time.monotonic() - meter.began
            panes = screen.panes.panes
            await until(lambda: all(pane.text.extent.counted for pane in panes), "all lines counted")
            more = memory_of(os.getpid()) - meter.memory
            whole = time.monotonic() - meter.began
        return Row("four panes", shown * 1000, more, None, meter.wait * 1000, meter.idle * 1000, whole)


async def following(root: Path, directory: Path, busy: Path) -> Row:
    """Follow four logs, one of which grows."""
    async with app_on(root, SIZE) as app:
        screen = monitor_of(app, directory)
        await app.push_screen(screen)
        screen.action_show_pane("logs")
        screen.panes.set_choices(PaneLayout.GRID, {})
        await until(lambda: all_show(screen, "begin"), "four panes")
        with writing([busy], LINES_A_S):
            await asyncio.sleep(1)
            memory = memory_of(os.getpid())
            async with metered() as meter:
                await asyncio.sleep(LIVE_S)
                percent = meter.percent
            more = memory_of(os.getpid()) - memory
        return Row("four panes, one lively", None, more, percent, meter.wait * 1000, meter.idle * 1000)


def main() -> int:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000, metavar="MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        big, lively = root / "big", root / "lively"
        big.mkdir()
        lively.mkdir()
        make_log(big / NAMES[0], options.size * 10**6)
        with (big / NAMES[0]).open("ab") as file:
            file.write(f"\n{MARK}\n".encode())
        for name in NAMES[1:]:
            os.link(big / NAMES[0], big / name)
        for name in NAMES:
            (lively / name).write_text("begin\n")
        title = f"{len(NAMES)} logs of {options.size / 1000:.1f} GB, and {LINES_A_S:,} lines a second"
        rows = [asyncio.run(opening(root, big)), asyncio.run(following(root, lively, lively / NAMES[0]))]
        print_viewers({title: rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
