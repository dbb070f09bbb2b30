"""The monitor on large and lively logs, next to other viewers: what it takes, and whether the screen waits.

CPU is that of the whole process, in percent of a core; the machine may be busy, so a longest wait is an upper
bound. The app runs without a terminal; the others in one of their own (a pty), where they are installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from launcher.logs.watch import watch_directory
from launcher.transports.local import LocalTransport
from tui.app import DistillApp, Settings
from tui.opening import About, Opened
from tui.screens.monitor import MonitorScreen

LIVE_S = 8.0
LINES_A_S = 50_000
WORKERS, BUSY, BUSY_LINES_A_S = 938, 30, 1_000
MARK = "the newest line"
_LINE = "(PolicyWorker[rank={}] pid=77, ip=10.0.0.3) GPU Memory after offload: 12.25GB allocated, at {:>12}"
_TICK_S = 0.005
_FOREVER_S = 120.0
_WRITER = """
import sys, time
files = [open(name, "ab", buffering=0) for name in sys.argv[3:]]
rate, seconds, line = int(sys.argv[1]), float(sys.argv[2]), sys.stdin.buffer.readline()
began, ticks = time.monotonic(), 0
while (now := time.monotonic() - began) < seconds:
    for file in files:
        file.write(line * (rate // 20))
    ticks += 1
    time.sleep(max(ticks / 20 - (time.monotonic() - began), 0))
"""
_IDLE = """
import signal, sys, time
worst = 0.0
def tell(*_):
    print(worst)
    sys.exit()
signal.signal(signal.SIGTERM, tell)
before = time.monotonic()
while True:
    time.sleep(0.005)
    now = time.monotonic()
    worst = max(worst, now - before - 0.005)
    before = now
"""


class Row(NamedTuple):
    """What one viewer took; None where that cannot be told."""

    name: str
    shown_ms: float | None = None
    memory_mb: float | None = None
    cpu_percent: float | None = None
    wait_ms: float | None = None
    """The longest time that its event loop did not turn."""
    idle_ms: float | None = None
    """The longest wait of a process that only waits, at the same time: what the machine adds."""
    whole_s: float | None = None
    """Until everything was read."""


@dataclass
class Meter:
    """What this process takes from now on."""

    began: float
    cpu: float
    memory: float
    wait: float = 0.0
    idle: float = 0.0
    """The longest that a process which does nothing else waited meanwhile: the machine's own part."""

    @classmethod
    def start(cls) -> Meter:
        return cls(time.monotonic(), time.process_time(), memory_of(os.getpid()))

    async def watch(self) -> None:
        """Note the longest time between two turns of the event loop."""
        before = time.monotonic()
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            self.wait = max(self.wait, now - before - _TICK_S)
            before = now

    @property
    def percent(self) -> float:
        return 100 * (time.process_time() - self.cpu) / (time.monotonic() - self.began)


def memory_of(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.asynccontextmanager
async def metered() -> AsyncIterator[Meter]:
    """Measure this process."""
    argv = [sys.executable, "-c", _IDLE]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as idle:  # noqa: ASYNC220 - before measuring
        await asyncio.sleep(0.2)
        meter = Meter.start()
        task = asyncio.create_task(meter.watch())
        try:
            yield meter
        finally:
            task.cancel()
            idle.terminate()
            meter.idle = float(idle.communicate()[0])


@contextlib.contextmanager
def writing(paths: list[Path], lines_a_s: int) -> Iterator[None]:
    """Let another process write lines to files, so many a second to each."""
    line = _LINE.format(3, "x").encode() + b"\n"
    argv = [sys.executable, "-c", _WRITER, str(lines_a_s), str(LIVE_S + 4), *map(str, paths)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(line)
        writer.stdin.close()
        try:
            yield
        finally:
            writer.kill()


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
    """Wait until the screen shows a text."""

    def shows() -> bool:
        strips = app.screen._compositor.render_strips()
        return any(text in segment.text for strip in strips for segment in strip)

    await until(shows, f"{text} on the screen")


def monitor_of(app: DistillApp, directory: Path) -> MonitorScreen:
    opened = Opened(About("bench"), watch_directory(LocalTransport(), str(directory)), LocalTransport())
    return MonitorScreen(app, lambda: opened, "bench")


@contextlib.asynccontextmanager
async def app_on(root: Path, size: tuple[int, int] = (120, 40)) -> AsyncIterator[DistillApp]:
    """Run the app, with everything loaded that a first log needs."""
    small = root / "small"
    small.mkdir(exist_ok=True)
    (small / "ray-driver.log").write_text("a small log\n")
    app = DistillApp(Settings(root / "none"))
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
            screen.action_search()
            screen.logs.prompt.field.value = typed
            await asyncio.sleep(0.2)
            await until(lambda: not screen.logs.text.searching, "the end of the search")
            took = time.monotonic() - meter.began
        assert "nothing shows" in screen.logs.text.note
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
            screen.action_merge_logs()
        with writing(busy, lines_a_s):
            await asyncio.sleep(1)
            memory = memory_of(os.getpid())
            async with metered() as meter:
                await asyncio.sleep(LIVE_S)
                percent = meter.percent
                behind = sum(path.stat().st_size for path in busy) - screen.logs.text.extent.bytes
            more = memory_of(os.getpid()) - memory
        if merged or len(busy) == 1:
            assert behind < 2 * len(busy) * lines_a_s * len(_LINE), f"{behind} bytes behind"
        return Row(name, None, more, percent, meter.wait * 1000, meter.idle * 1000)


def peer(name: str, argv: list[str], mark: str | None, busy: list[Path], lines_a_s: int = 0) -> Row | None:
    """Run another viewer in a terminal, until it shows the mark, or while files grow; None without it."""
    program = shutil.which(argv[0])
    if program is None:
        return None
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", HOME=str(busy[0].parent))
        os.execv(program, argv)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        if mark is not None:
            shown = _until(terminal, mark.encode(), began)
            memory = memory_of(pid)
            return Row(name, shown, memory)
        _drain(terminal, 3)
        with writing(busy, lines_a_s):
            _drain(terminal, 1)
            cpu, began = _cpu_of(pid), time.monotonic()
            _drain(terminal, LIVE_S)
            percent = 100 * (_cpu_of(pid) - cpu) / (time.monotonic() - began)
            return Row(name, None, memory_of(pid), percent)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def _until(terminal: int, mark: bytes, began: float) -> float | None:
    text = b""
    while time.monotonic() - began < 60:
        if select.select([terminal], [], [], 0.05)[0]:
            text = text[-4096:] + os.read(terminal, 65536)
            if mark in text:
                return (time.monotonic() - began) * 1000
    return None


def _drain(terminal: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            os.read(terminal, 65536)


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peers_of(files: list[str], toolong: str) -> list[tuple[str, list[str]]]:
    """Return the other viewers and how they are called."""
    return [
        ("less +F", ["less", "+F", files[0]]),
        ("lnav", ["lnav", *files]),
        ("toolong", [toolong, *files]),
    ]


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
        log.write_text("\n".join(_LINE.format(number, "start") for number in range(20)) + "\n")
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


def print_viewers(tables: dict[str, list[Row]]) -> None:
    """Print the tables."""
    for title, rows in tables.items():
        print(f"\n{title:52}{'shown ms':>10}{'MB':>8}{'% core':>8}{'wait ms':>9}{'idle ms':>9}{'all s':>8}")
        for row in rows:
            cells = (row.shown_ms, row.memory_mb, row.cpu_percent, row.wait_ms, row.idle_ms)
            text = "".join(
                f"{cell:{width}.0f}" if cell is not None else " " * (width - 1) + "-"
                for cell, width in zip(cells, (10, 8, 8, 9, 9), strict=True)
            )
            print(f"{row.name:52}{text}" + (f"{row.whole_s:8.1f}" if row.whole_s is not None else ""))
    if tables:
        print(
            "\nMB: of distill-tui what the log added; of the others the whole process. wait: the longest that"
        )
        print("the screen's loop did not turn; idle: the same of a process beside it that only waits.")
