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
from tui.app import DistillApp  # noqa: E402
from tui.logview.layouts import PaneLayout  # noqa: E402
from tui.screens.monitor import MonitorScreen  # noqa: E402

NAMES = ("ray-driver.log", "ray-head.log", "ray-worker-1.log", "ray-worker-2.log")
SIZE = (160, 48)
PAGES = 200


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
            shown, cpu = time.monotonic() - meter.began, time.process_time() - meter.cpu
            print(f"four panes show their ends after {shown * 1000:.0f} ms, {cpu * 1000:.0f} ms of CPU")
            panes = screen.panes.panes
            await until(lambda: all(pane.text.extent.counted for pane in panes), "all lines counted")
            more = memory_of(os.getpid()) - meter.memory
            whole = time.monotonic() - meter.began
        return Row("four panes", shown * 1000, more, None, meter.wait * 1000, meter.idle * 1000, whole)


async def searching(root: Path, directory: Path) -> Row:
    """Search one of four large logs for what it does not hold."""
    async with app_on(root, SIZE) as app:
        screen = await four_panes(app, directory)
        async with metered() as meter:
            screen.log_commands.run("search")
            screen.logs.prompt.field.value = "not in there"
            await asyncio.sleep(0.2)
            await until(lambda: "searching" not in screen.logs.text.navigator.note, "the end of the search")
            took = time.monotonic() - meter.began
        assert "no match" in screen.logs.text.navigator.note
        return Row("four panes, one searched", None, None, meter.percent, meter.wait * 1000,
                   meter.idle * 1000, took)  # fmt: skip


async def paging(root: Path, directory: Path) -> Row:
    """Go a page up in one of four large logs, time and again; `shown`: a page, on average."""
    async with app_on(root, SIZE) as app:
        screen = await four_panes(app, directory)
        text = screen.logs.text
        async with metered() as meter:
            for _ in range(PAGES):
                text.action_page_up()
                await until(lambda: len(text.visible_lines()) >= text.height, "a page")
            took, percent = time.monotonic() - meter.began, meter.percent
        row = ("four panes, a page up in one", took * 1000 / PAGES, None, percent)
        return Row(*row, meter.wait * 1000, meter.idle * 1000)


async def four_panes(app: DistillApp, directory: Path) -> MonitorScreen:
    """Show four large logs, all of them read."""
    screen = monitor_of(app, directory)
    await app.push_screen(screen)
    screen.action_show_pane("logs")
    screen.panes.set_choices(PaneLayout.GRID, {})
    await until(lambda: all_show(screen, MARK), "four panes")
    await until(lambda: not screen.view.reading, "all read")
    await until(lambda: all(pane.text.extent.counted for pane in screen.panes.panes), "all lines counted")
    return screen


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
        measurements = (opening(root, big), searching(root, big), paging(root, big))
        rows = [asyncio.run(measurement) for measurement in measurements]
        rows.append(asyncio.run(following(root, lively, lively / NAMES[0])))
        print_viewers({title: rows})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
