"""Bytes to the terminal and CPU of the monitor in 60 s, next to other viewers.

    uv run python tests/bench/bench_terminal.py [--seconds S] [--only-ours]

Each viewer runs in a terminal of its own (a pty that takes everything at once), one after the other on the
same growing logs: an idle run, a run with a line a second and 40 more every 20 s, and 20 lines a second.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.otherviewers import cpu_of  # noqa: E402 - the project is found first
from tests.tui.replay import Replay, make_run  # noqa: E402
from tests.tui.terminal import Terminal, opened  # noqa: E402

SIZES = ((80, 24), (160, 48))
_LINES = (
    "▶ Generating responses for batch of size 8...",
    "(VllmGenerationWorker pid={pid}, ip=10.0.0.{rank}) Processed prompts: {value}/512 [{value}s, 3 it/s]",
    "▶ Computing teacher logprobs...",
    "(DTensorPolicyWorkerV2[rank={rank}] pid={pid}, ip=10.0.0.3) GPU Memory after offload: {value}.25GB",
    "▶ Training policy...",
    "  • Mean Generation Length: {value}.0625",
    "INFO 11-28 02:14:{rank:02d} [loggers.py:{pid}] Engine 000: avg prompt throughput: {value}.3 tokens/s",
)


def line(number: int) -> str:
    """Return a line as a driver prints them: of several kinds and lengths."""
    form = _LINES[number * 7919 % len(_LINES)]
    return form.format(pid=70_000 + number % 8, rank=number % 8, value=number * 31 % 512) + "\n"


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


def measure(terminal: Terminal, log: Path, load: Load, seconds: float) -> Result:
    """Count the bytes and the CPU of a viewer that has settled."""
    terminal.read(4.0)
    with written(log, load):
        terminal.read(2.0)
        cpu, began = cpu_of(terminal.pid), time.monotonic()
        size = len(terminal.read(seconds))
        percent = 100 * (cpu_of(terminal.pid) - cpu) / (time.monotonic() - began)
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


def peers(log: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return the other viewers that are installed, and how they are called."""
    called = (("less +F", "less", ("+F",)), ("lnav", "lnav", ()), ("toolong", "tl", ()))
    return [
        (name, (program, *options, str(log)))
        for name, command, options in called
        if (program := shutil.which(command)) is not None
    ]


def main() -> int:
    """Print a table of all viewers and loads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only-ours", action="store_true")
    options = parser.parse_args()
    print(f"{'':44}{'kB in ' + format(options.seconds, '.0f') + ' s':>14}{'% of a core':>14}")
    for width, height in SIZES:
        for load in LOADS:
            panes = "" if width < 120 else "pp"
            with tempfile.TemporaryDirectory() as directory:
                result = ours(Path(directory), load, (width, height), options.seconds, panes)
            print_row(f"distill-tui {'4 panes' if panes else ''}", (width, height), load, result)
            if options.only_ours:
                continue
            with tempfile.TemporaryDirectory() as directory:
                log = Path(directory, "ray-driver.log")
                for name, argv in peers(log):
                    log.write_text("".join(map(line, range(300))), encoding="utf-8")
                    with opened(*argv[1:], size=(width, height), program=argv[:1]) as terminal:
                        print_row(name, (width, height), load, measure(terminal, log, load, options.seconds))
    return 0


def print_row(name: str, size: tuple[int, int], load: Load, result: Result) -> None:
    """Print one measurement."""
    title = f"{name}, {size[0]}x{size[1]}, {load.name}"
    print(f"{title:60}{result.kilobytes:10.1f}{result.percent:14.1f}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
