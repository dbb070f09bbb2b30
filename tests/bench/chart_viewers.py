"""Charts in a terminal: what a viewer takes until they are shown, until all is read, and for a page."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.otherviewers import cpu_of_tree
from tests.bench.wandb_run import NO_SERVICE
from tests.bench.wandb_scalars import written_scalars
from tests.tui.terminal import Terminal, opened

_SETTLED_S = 2.0
_PAGES = 5


@dataclass(frozen=True)
class ChartCost:
    """What a viewer took: seconds of wall clock and of CPU since its start, and kB that it wrote."""

    shown_s: float
    shown_cpu_s: float
    read_s: float
    read_cpu_s: float
    page_cpu_ms: float
    """CPU for the next page of charts."""
    kilobytes: float


def cost_of(terminal: Terminal, page: bytes, show: Callable[[], None], *, limit_s: float) -> ChartCost:
    """Measure a viewer that was just started; `show` waits until charts are on the screen."""
    began = time.monotonic()
    show()
    shown_s, shown_cpu_s = time.monotonic() - began, cpu_of_tree(terminal.pid)
    read_s, read_cpu_s = shown_s, shown_cpu_s
    while time.monotonic() - began < limit_s:
        before = cpu_of_tree(terminal.pid)
        terminal.read(_SETTLED_S)
        read_cpu_s = cpu_of_tree(terminal.pid)
        if read_cpu_s - before < 0.02 * _SETTLED_S:
            break
        read_s = time.monotonic() - began
    kilobytes = len(terminal.written) / 1000
    for _ in range(_PAGES):
        terminal.press(page)
        terminal.read(1.0)
    page_ms = 1000 * (cpu_of_tree(terminal.pid) - read_cpu_s) / _PAGES
    return ChartCost(shown_s, shown_cpu_s, read_s, read_cpu_s, page_ms, kilobytes)


def ours(root: Path, size: tuple[int, int], limit_s: float = 120.0) -> dict[str, float]:
    """Measure the app: its start, the list with one run, its charts."""
    environment = {"DISTILL_TUI_RUNS": str(root)}
    with opened("--no-mouse", environment=environment, size=size) as terminal:

        def show() -> None:
            terminal.see("completed", limit_s=limit_s)
            terminal.press(b"m")
            terminal.see("▸", limit_s=limit_s)  # of the selected chart

        return asdict(cost_of(terminal, b" ", show, limit_s=limit_s))


def leet(
    wandb: str, size: tuple[int, int], scalars: int, steps: int, limit_s: float = 300.0
) -> dict[str, float]:
    """Measure `wandb leet` on a run of W&B with as many scalars and steps."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        python = str(Path(wandb).parent / "python")
        run = written_scalars(python, Path(directory), scalars, steps)
        environment = {"HOME": directory, "WANDB_DIR": directory, **NO_SERVICE}
        arguments = ("leet", "run", str(run))
        with opened(*arguments, size=size, program=(wandb,), environment=environment) as terminal:
            try:
                show = lambda: terminal.see("scalar_0", limit_s=limit_s)  # noqa: E731 - one line
                result = cost_of(terminal, b"n", show, limit_s=limit_s)
                (file,) = run.glob("*.wandb")
                return {**asdict(result), "file_mb": file.stat().st_size / 1e6}
            finally:  # it has a process of its own for the screen
                os.killpg(terminal.pid, signal.SIGKILL)
