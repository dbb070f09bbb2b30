"""The monitor on large and lively logs, next to other viewers: what it takes, and whether the screen waits.

CPU is that of the whole process, in percent of a core; the machine may be busy, so a longest wait is an upper
bound. The app runs without a terminal; the others in one of their own (a pty), where they are installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from launcher.monitor.watch import watch_directory
from launcher.transports.local import LocalTransport
from tests.bench.measuring import LINE, LIVE_S, Row, memory_of, metered, writing
from tests.bench.otherviewers import peer, peers_of
from tui.app import DistillApp
from tui.app_settings import AppSettings
from tui.opening import OpenedRun, RunSummary
from tui.screens.monitor import MonitorScreen

LINES_A_S = 50_000
WORKERS, BUSY, BUSY_LINES_A_S = 938, 30, 1_000
MARK = "the newest line"
_FOREVER_S = 600.0


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something."""
    deadline = time.monotonic() + _FOREVER_S
    while True:
        if condition():
            return
        assert time.monotonic() < deadline, f"never: {what}"
        await asyncio.sleep(0.005)


def all_read(screen: MonitorScreen) -> bool:
    """Whether all logs were scanned, and the lines of the shown one counted."""
    return bool(screen.view.logs) and not screen.view.reading and screen.logs.text.extent.counted


async def seen(app: DistillApp, text: str) -> None:
    """Wait until the screen shows a text; looked for where the log pane has it, as drawing takes long."""

    def shows() -> bool:
        screen = app.screen
        if isinstance(screen, MonitorScreen) and not any(
            text in line.text for line in screen.logs.text.visible_lines()
        ):
            return False
        strips = app.screen._compositor.render_strips()
        return any(text in segment.text for strip in strips for segment in strip)

    await until(shows, f"{text} on the screen")


def monitor_of(app: DistillApp, directory: Path) -> MonitorScreen:
    opened = OpenedRun(
        RunSummary("bench"), watch_directory(LocalTransport(), str(directory)), LocalTransport()
    )
    return MonitorScreen(app, lambda: opened, "bench")


@contextlib.asynccontextmanager
async def app_on(root: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[DistillApp]:
    """Run the app, with everything loaded that a first log needs."""
    small = root / "small"
    small.mkdir(exist_ok=True)
    (small / "ray-driver.log").write_text("a small log\n")
    app = DistillApp(AppSettings(root / "none"))
    async with app.run_test(size=size):
        screen = monitor_of(app, small)
        await app.push_screen(screen)
        screen.action_show_pane("logs")
        await seen(app, "a small log")
        await asyncio.sleep(1)
        app.pop_screen()
        await asyncio.sleep(0.5)
        gc.freeze()  # as the app does on a terminal
        yield app


async def opening(root: Path, big: Path) -> Row:
    """Open a monitor of a large log; wait until all of it was scanned and its lines are counted."""
    async with app_on(root) as app:
        async with metered() as meter:
            screen = monitor_of(app, big.parent)
            await app.push_screen(screen)
            screen.action_show_pane("logs")
            await seen(app, MARK)
            shown = time.monotonic() - meter.began
            meter.wait = most = 0.0  # what counts is the reading, not the making of the screen

            def done() -> bool:
                nonlocal most
                most = max(most, memory_of(os.getpid()))
                return all_read(screen)

            await until(done, "all read")
            whole = time.monotonic() - meter.began
        return Row(
            "distill-tui",
            shown * 1000,
            most - meter.memory,
            None,
            meter.wait * 1000,
            meter.idle * 1000,
            whole,
        )


async def choosing(root: Path, big: Path) -> Row:
    """Choose a large log in a monitor that is open."""
    async with app_on(root) as app:
        screen = monitor_of(app, root / "small")
        await app.push_screen(screen)
        screen.action_show_pane("logs")
        await seen(app, "a small log")
        async with metered() as meter:
            screen.logs.text.open(("", str(big)))
            await seen(app, MARK)
            shown = time.monotonic() - meter.began
            await until(lambda: screen.logs.text.extent.counted, "all lines counted")
            more = memory_of(os.getpid()) - meter.memory
            whole = time.monotonic() - meter.began
        return Row(
            "distill-tui, the log alone",
            shown * 1000,
            more,
            None,
            meter.wait * 1000,
            meter.idle * 1000,
            whole,
        )


async def searching(root: Path, big: Path, typed: str) -> Row:
    """Search a large log for what it does not hold."""
    async with app_on(root) as app:
        screen = monitor_of(app, big.parent)
        await app.push_screen(screen)
        screen.action_show_pane("logs")
        await seen(app, MARK)
        await until(lambda: all_read(screen), "all read")
        async with metered() as meter:
            screen.log_commands.run("search")
            screen.logs.prompt.field.value = typed
            await asyncio.sleep(0.2)
            await until(lambda: "searching" not in screen.logs.text.navigator.note, "the end of the search")
            took = time.monotonic() - meter.began
        assert "no match" in screen.logs.text.navigator.note
        name = f"distill-tui, search for {typed}"
        return Row(name, None, None, meter.percent, meter.wait * 1000, meter.idle * 1000, took)


async def following(root: Path, directory: Path, busy: list[Path], lines_a_s: int, *, merged: bool) -> Row:
    """Follow logs that grow."""
    name = "distill-tui, all by time" if merged else "distill-tui"
    async with app_on(root) as app:
        screen = monitor_of(app, directory)
        await app.push_screen(screen)
        screen.action_show_pane("logs")
        await until(lambda: all_read(screen), "all read")
        if merged:
            screen.log_commands.run("merge_logs")
        with writing(busy, lines_a_s):
            await asyncio.sleep(1)
            memory = memory_of(os.getpid())
            async with metered() as meter:
                await asyncio.sleep(LIVE_S)
                percent = meter.percent
                behind = sum(path.stat().st_size for path in busy) - screen.logs.text.extent.bytes
            more = memory_of(os.getpid()) - memory
        if merged or len(busy) == 1:
            assert behind < 2 * len(busy) * lines_a_s * len(LINE), f"{behind} bytes behind"
        return Row(name, None, more, percent, meter.wait * 1000, meter.idle * 1000)


def compare_viewers(root: Path, big: Path, toolong: str) -> dict[str, list[Row]]:
    """Measure all; `big` is a log of which the last line holds MARK."""
    tables: dict[str, list[Row]] = {}
    rows: list[Row | None] = [asyncio.run(choosing(root, big)), asyncio.run(opening(root, big))]
    rows += [asyncio.run(searching(root, big, typed)) for typed in ("not in there", "/not.{1,3}there$/")]
    rows += [peer(name, argv, MARK, [big]) for name, argv in peers_of([str(big)], toolong)]
    tables[f"a log of {big.stat().st_size / 1e9:.1f} GB"] = [row for row in rows if row is not None]

    live = root / "live"
    live.mkdir()
    log = live / "ray-driver.log"
    log.write_text("begin\n")
    rows = [asyncio.run(following(root, live, [log], LINES_A_S, merged=False))]
    for name, argv in peers_of([str(log)], toolong):
        log.write_text("begin\n")
        rows.append(peer(name, argv, None, [log], LINES_A_S))
    tables[f"{LINES_A_S:,} lines a second for {LIVE_S:.0f} s"] = [row for row in rows if row is not None]

    many = root / "many"
    many.mkdir()
    logs = [many / f"ray-worker-{number}.log" for number in range(1, WORKERS + 1)]
    for log in logs:
        log.write_text("\n".join(LINE.format(number, "start") for number in range(20)) + "\n")
    busy = logs[:BUSY]
    rows = [
        asyncio.run(following(root, many, busy, BUSY_LINES_A_S, merged=False)),
        asyncio.run(following(root, many, busy, BUSY_LINES_A_S, merged=True)),
    ]
    for name, argv in peers_of([str(log) for log in logs], toolong)[1:]:
        rows.append(peer(name, argv, None, busy, BUSY_LINES_A_S))
    tables[f"{WORKERS} logs, {BUSY} of them with {BUSY_LINES_A_S:,} lines a second"] = [
        row for row in rows if row is not None
    ]
    return tables
