"""What a viewer of logs takes, and logs that grow while it is looked at."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

LIVE_S = 8.0
LINE = "(PolicyWorker[rank={}] pid=77, ip=10.0.0.3) GPU Memory after offload: 12.25GB allocated, at {:>12}"
_TICK_S = 0.005
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
    line = LINE.format(3, "x").encode() + b"\n"
    argv = [sys.executable, "-c", _WRITER, str(lines_a_s), str(LIVE_S + 4), *map(str, paths)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(line)
        writer.stdin.close()
        try:
            yield
        finally:
            writer.kill()


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
