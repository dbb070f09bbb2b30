"""Cost of the list with 1,000 runs and 300 jobs, and of charts with 100 scalars of 100,000 steps.

    uv run python tests/bench/bench_home.py [--runs N] [--jobs N] [--scalars N] [--steps N] [--idle SECONDS]
        [--viewers BIN] [--only list|charts]

CPU seconds, since wall clock depends on what else the machine does: of the whole process for what is read,
of the screen's thread for a key; also the Slurm commands that an idle list runs. With BIN, the folder of a
virtual environment that has wandb, the app and `wandb leet` show the same scalars, each in a terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.tui.pilot import Screen  # noqa: E402 - the project is found first
from tests.tui.replay import running  # noqa: E402
from tui.run_list import LIST_S  # noqa: E402

NOW = 1_796_000_000.0
SQUEUE = """#!/bin/sh
echo squeue >>{log}
cat {rows}
"""


def environment(directory: Path) -> None:
    """Keep everything that the app writes below a directory."""
    for name in ("CACHE", "STATE", "CONFIG"):
        os.environ[f"XDG_{name}_HOME"] = str(directory / name.lower())
    os.environ["PATH"] = f"{directory / 'bin'}:{os.environ['PATH']}"


def make_runs(root: Path, count: int) -> None:
    """Write runs that have ended, as copies of one with other names."""
    replay = running(root, "", host="elsewhere", identity="20261101-000000-demo-0000")
    replay.finish(0)
    first = Path(replay.run.directory)
    spec = (first / "run.json").read_text()
    for number in range(1, count):
        name = f"20261101-{number // 3600:02d}{number // 60 % 60:02d}{number % 60:02d}-demo-{number:04x}"
        shutil.copytree(first, root / name)
        changed = spec.replace(first.name, name).replace('"demo"', f'"demo-{number}"')
        (root / name / "run.json").write_text(changed)


def make_slurm(directory: Path, jobs: int) -> Path:
    """Let squeue list so many jobs; returns the file of its calls."""
    states = ("RUNNING", "PENDING", "COMPLETED")
    rows = [
        f"{number}|{states[number % 3]}|{NOW - number * 60:.0f}|{NOW:.0f}|{NOW + 7200:.0f}|jwb{number:04d}"
        f"|None|||booster|4|train-{number}"
        for number in range(1, jobs + 1)
    ]
    (directory / "rows").write_text("\n".join(rows) + "\n")
    (directory / "bin").mkdir()
    log = directory / "calls"
    for name, text in (("squeue", SQUEUE), ("sacct", "#!/bin/sh\necho sacct >>{log}\n")):
        path = directory / "bin" / name
        path.write_text(text.format(log=log, rows=directory / "rows"))
        path.chmod(0o755)
    return log


async def measure_list(root: Path, size: tuple[int, int], total: int, seconds: float) -> dict[str, float]:
    """Open the list, press keys, and leave it alone for so many seconds."""
    from tui.app import DistillApp
    from tui.app_settings import AppSettings

    result: dict[str, float] = {}
    begun = time.process_time()
    app = DistillApp(AppSettings(root, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot)
        await screen.until(lambda: len(app.screen.runs.rows) == total, "all rows", 300)  # type: ignore[attr-defined]
        await pilot.pause(0)
        result["all rows, s"] = time.process_time() - begun
        lister = app.screen._sources.here._lister  # type: ignore[attr-defined]
        await screen.until(lambda: settled(lister), "nothing left to read", 300)
        result["all read, s"] = time.process_time() - begun
        for key in ("down", "pagedown", "end", "o", "v", "space", "right"):
            result[f"key {key}, ms"] = 1000 * await cost(lambda key=key: pilot.press(key), pilot)  # type: ignore[misc]
        # Idle begins once the other screens are imported, and the sizes of the rows on the screen counted.
        await screen.until(lambda: not is_busy(app.screen), "idle", 120)
        await asyncio.sleep(2 * lister_pause_s(total))
        begun, wall = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        result["idle, % of a core"] = 100 * (time.process_time() - begun) / (time.monotonic() - wall)
    return result


def settled(lister: Any) -> bool:
    """Return whether every run has ended and is read, and the sizes of those on the screen are counted."""
    entries = list(lister._entries.values())
    return all(entry.due == float("inf") for entry in entries) and not lister._unsaved


def is_busy(home: Any) -> bool:
    """Return whether screens are being imported, or a size on the screen is not counted yet."""
    shown = set(home.runs.visible_directories)
    uncounted = any(row.bytes is None for row in home.runs.rows if row.directory in shown)
    return uncounted or any(thread.name == "imports" for thread in threading.enumerate())


def lister_pause_s(rows: int) -> float:
    """Return the seconds between two listings of so many runs, at least."""
    return max(LIST_S, 0.005 * rows)


async def cost(press: Callable[[], Any], pilot: Any) -> float:
    """Return the CPU seconds of the screen's thread for a key until it is painted."""
    begun = time.thread_time()
    await press()
    await pilot.pause(0)
    return time.thread_time() - begun


def write_scalars(file: Path, scalars: int, steps: int) -> None:
    """Write an event file as torch's SummaryWriter does: one record for each scalar and step."""

    def varint(number: int) -> bytes:
        digits = b""
        while number > 0x7F:
            digits, number = digits + bytes([number & 0x7F | 0x80]), number >> 7
        return digits + bytes([number])

    def field(key: int, data: bytes) -> bytes:
        return bytes([key]) + varint(len(data)) + data

    tags = [field(0x0A, f"train/scalar_{index:03d}".encode()) for index in range(scalars)]
    noise = random.Random(1)
    file.parent.mkdir(parents=True)
    with file.open("wb") as out:
        for step in range(1, steps + 1):
            head = b"\x09" + struct.pack("<d", NOW + step) + b"\x10" + varint(step)
            base = 3.0 / (1 + step / 1000) + noise.random() / 5
            for index, tag in enumerate(tags):
                value = tag + b"\x15" + struct.pack("<f", base + index)
                event = head + field(0x2A, field(0x0A, value))
                out.write(struct.pack("<Q", len(event)) + b"\0\0\0\0" + event + b"\0\0\0\0")


async def measure_charts(run: Path, root: Path, size: tuple[int, int]) -> dict[str, float]:
    """Open the charts of a run, and press keys."""
    from tui.app import DistillApp
    from tui.app_settings import AppSettings
    from tui.opening import open_run
    from tui.screens.charts import ChartsScreen

    result: dict[str, float] = {}
    app = DistillApp(AppSettings(root, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        screen = Screen(app, pilot)

        def opener() -> Any:
            from launcher.runs import load
            from tui.opening import local

            return open_run(load(local(), str(run)))

        begun = time.process_time()
        charts = ChartsScreen(opener, "bench")
        app.push_screen(charts)
        await screen.until(lambda: any("scalar" in item.title for item in charts.grid.charts), "charts", 60)
        result["first charts, s"] = time.process_time() - begun
        await screen.until(lambda: not charts._reading, "everything read", 300)
        result["all read, s"] = time.process_time() - begun
        await pilot.pause(1.0)
        for key in ("plus", "greater_than_sign", "minus", "L", "x", "right", "pagedown", "enter", "left"):
            result[f"key {key}, ms"] = 1000 * await cost(lambda key=key: pilot.press(key), pilot)  # type: ignore[misc]
    return result


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("runs", 1000), ("jobs", 300), ("scalars", 100), ("steps", 100_000), ("idle", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--viewers", type=Path, metavar="BIN")
    parser.add_argument("--only", choices=("list", "charts"))
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        environment(directory)
        log = make_slurm(directory, options.jobs)
        if options.only != "charts":
            results |= list_results(directory / "runs", options.runs, options.jobs, options.idle, log)
        if options.only != "list":
            results |= chart_results(directory / "charts", options.scalars, options.steps, options.viewers)
    print(json.dumps({name: rounded(value) for name, value in results.items()}, indent=1))


def rounded(value: Any) -> Any:
    """Return figures with three digits."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return round(value, 3)


def list_results(root: Path, runs: int, jobs: int, idle_s: int, log: Path) -> dict[str, Any]:
    """Measure the list with an empty cache at 80x24, then with a full one at 160x48."""
    make_runs(root, runs)
    results: dict[str, Any] = {}
    for label, size, seconds in (("cold", (80, 24), 20), ("warm", (160, 48), idle_s)):
        log.unlink(missing_ok=True)
        measured: dict[str, float] = asyncio.run(measure_list(root, size, runs + jobs, seconds))
        results[f"list, {label}"] = measured
        measured["slurm calls"] = len(log.read_text().splitlines()) if log.exists() else 0
    return results


def chart_results(root: Path, scalars: int, steps: int, viewers: Path | None) -> dict[str, Any]:
    """Measure the charts of one run, and `wandb leet` beside them."""
    from tests.bench.chart_viewers import leet, ours

    replay = running(root, "", host="elsewhere")
    replay.finish(0)
    run = Path(replay.run.directory)
    file = run / "output" / "logs" / "tensorboard" / "events.out.tfevents.1.host"
    with (replay.logs / "ray-driver.log").open("a") as driver:
        driver.write(f"Initialized TensorboardLogger at {file.parent}\n")
    write_scalars(file, scalars, steps)
    results: dict[str, Any] = {"event file, MB": file.stat().st_size / 1e6}
    for size in ((80, 24), (160, 48)):
        name = f"{size[0]}x{size[1]}"
        results[f"charts {name}"] = asyncio.run(measure_charts(run, root, size))
        if viewers is not None:
            results[f"in a terminal, distill-tui {name}"] = ours(root, size)
            results[f"in a terminal, wandb leet {name}"] = leet(str(viewers / "wandb"), size, scalars, steps)
    return results


if __name__ == "__main__":
    main()
