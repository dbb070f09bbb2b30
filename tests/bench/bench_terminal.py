"""Bytes to the terminal and CPU of the monitor in 60 s, next to other viewers.

    uv run python tests/bench/bench_terminal.py [--seconds S] [--only-ours] [--viewers BIN]

Each viewer runs in a terminal of its own (a pty that takes everything at once), one after the other on the
same growing logs: an idle run, a run with a line a second and 40 more every 20 s, and 20 lines a second.
`wandb leet` is shown a run of W&B that prints these lines. BIN: folder of a virtual environment with toolong
and wandb, where they are not on PATH.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.log_lines import line  # noqa: E402 - the project is found first
from tests.bench.otherviewers import cpu_of_tree  # noqa: E402
from tests.bench.wandb_run import written_run  # noqa: E402
from tests.tui.replay import Replay, make_run  # noqa: E402
from tests.tui.terminal import Terminal, opened  # noqa: E402

SIZES = ((80, 24), (160, 48))


@dataclass(frozen=True)
class Load:
    """What is written while a viewer is looked at."""

    name: str
    lines_a_s: int
    burst: int = 0
    """Lines written at once every 20 s."""


LOADS = (Load("idle, the run has ended", 0), Load("1 line/s, 40 each 20 s", 1, 40), Load("20 lines/s", 20))


@contextmanager
def written(path: Path, load: Load) -> Iterator[None]:
    """Write lines meanwhile."""
    stop = threading.Event()

    def write() -> None:
        number, began = 0, time.monotonic()
        with path.open("a", encoding="utf-8", buffering=1) as file:
            while not stop.wait(max(began + number / load.lines_a_s - time.monotonic(), 0)):
                number += 1
                file.write(line(number))
                if load.burst and number % 20 == 0:
                    file.write("".join(line(number * 100 + extra) for extra in range(load.burst)))

    thread = threading.Thread(target=write, daemon=True)
    if load.lines_a_s:
        thread.start()
    try:
        yield
    finally:
        stop.set()


@dataclass(frozen=True)
class Result:
    """What a viewer sent and took."""

    kilobytes: float
    percent: float


def measure(terminal: Terminal, log: Path | None, load: Load, seconds: float) -> Result:
    """Count the bytes and the CPU of a viewer that has settled; without a log, one is written elsewhere."""
    terminal.read(4.0)
    with written(log, load) if log is not None else nullcontext():
        terminal.read(2.0)
        cpu, began = cpu_of_tree(terminal.pid), time.monotonic()
        size = len(terminal.read(seconds))
        percent = 100 * (cpu_of_tree(terminal.pid) - cpu) / (time.monotonic() - began)
    return Result(size / 1000, percent)


def ours(root: Path, load: Load, size: tuple[int, int], seconds: float, layout: str) -> Result:
    """Measure the app on a run with a driver, a head and two workers; `layout`: keys that choose it."""
    replay = Replay(make_run(root, host="elsewhere"), workers=2)
    replay.start()
    replay.drive("train_data_step12" if load.lines_a_s else "")
    if not load.lines_a_s:
        replay.finish(0)
    log = replay.logs / "ray-driver.log"
    environment = {"DISTILL_TUI_RUNS": str(root), "XDG_CONFIG_HOME": str(root / "config")}
    with opened(environment=environment, size=size) as terminal:
        terminal.see("demo")
        terminal.press(b"\r")
        terminal.see("Ray head up")
        terminal.press(b"3" + layout.encode())
        return measure(terminal, log, load, seconds)


def program(name: str, folder: Path | None) -> str | None:
    """Return a viewer's program: in the folder, else on PATH; None where it is not installed."""
    return shutil.which(name, path=f"{folder or ''}:{os.environ['PATH']}")


_FILE_VIEWERS = (("less +F", "less", ("+F",)), ("lnav", "lnav", ()), ("toolong", "tl", ()))


def others(
    load: Load, size: tuple[int, int], seconds: float, folder: Path | None
) -> Iterator[tuple[str, Result]]:
    """Measure the other viewers that are installed."""
    for name, command, options in _FILE_VIEWERS:
        path = program(command, folder)
        if path is None:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            log = Path(directory, "ray-driver.log")
            log.write_text("".join(map(line, range(300))), encoding="utf-8")
            environment = {"HOME": directory}
            with opened(*options, str(log), size=size, program=(path,), environment=environment) as terminal:
                yield name, measure(terminal, log, load, seconds)
    leet = program("wandb", folder)
    if leet is not None:
        yield "wandb leet", measure_leet(leet, load, size, seconds)


def measure_leet(leet: str, load: Load, size: tuple[int, int], seconds: float) -> Result:
    """Measure `wandb leet` on a run that is being written."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        python = str(Path(leet).resolve().parent / "python")
        with written_run(python, Path(directory), load.lines_a_s, load.burst) as runs:
            (run,) = runs.glob("offline-run-*")
            environment = {"HOME": directory, "WANDB_DIR": directory}
            arguments = ("leet", "run", str(run))
            with opened(*arguments, size=size, program=(leet,), environment=environment) as terminal:
                terminal.read(10.0)
                return measure(terminal, None, load, seconds)


def main() -> int:
    """Print a table of all viewers and loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only-ours", action="store_true")
    parser.add_argument("--viewers", type=Path, metavar="BIN")
    options = parser.parse_args()
    print(f"{'':44}{'kB in ' + format(options.seconds, '.0f') + ' s':>14}{'% of a core':>14}")
    for width, height in SIZES:
        for load in LOADS:
            size, panes = (width, height), "" if width < 120 else "pp"
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
                result = ours(Path(directory), load, size, options.seconds, panes)
            print_row(f"distill-tui {'4 panes' if panes else ''}", size, load, result)
            if not options.only_ours:
                for name, other in others(load, size, options.seconds, options.viewers):
                    print_row(name, size, load, other)
    return 0


def print_row(name: str, size: tuple[int, int], load: Load, result: Result) -> None:
    """Print one measurement."""
    title = f"{name}, {size[0]}x{size[1]}, {load.name}"
    print(f"{title:60}{result.kilobytes:10.1f}{result.percent:14.1f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
