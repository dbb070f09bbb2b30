"""CPU from the start of the command to its first useful screen, beside the least that Textual takes.

    uv run python tests/bench/bench_start.py [--runs N] [--turns N]

Each program runs in a pseudo-terminal until it has written a text; the figures are milliseconds of CPU of the
process with all its threads, the least and the median of some turns. `python` does nothing, `imports` are
Textual's app and the widgets of the list, `empty app` paints one line;
then the list of runs: its frame, and its rows, read from the cache of rows.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bench_home import make_runs  # noqa: E402 - the project is found first
from tests.tui.terminal import APP, Terminal, opened  # noqa: E402

_LIMIT_S = 60.0
_MARK = "the first line"
_EMPTY = f"""
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("{_MARK}")
Empty().run()
"""
_IMPORTS = (
    f"import textual.app, textual.screen, textual.containers, textual.widgets\nprint('{_MARK}', flush=True)"
)
_PYTHON = f"print('{_MARK}', flush=True)"


def cpu_ms(pid: int) -> float:
    """Return the CPU time of a process, threads that have ended included."""
    return 1000 * time.clock_gettime((~pid << 3) | 2)  # the clock of another process: clock_getcpuclockid(3)


def moment_of(terminal: Terminal, text: str) -> float:
    """Return the CPU that a process had taken when it wrote a text."""
    began = time.monotonic()
    while text.encode() not in terminal.written:
        assert time.monotonic() - began < _LIMIT_S, f"never: {text}"
        terminal.read(0.001)
    return cpu_ms(terminal.pid)


def moments_of(program: tuple[str, ...], texts: tuple[str, ...], environment: dict[str, str]) -> list[float]:
    """Return the CPU until each of these texts was written."""
    with opened(program=program, environment=environment) as terminal:
        try:
            return [moment_of(terminal, text) for text in texts]
        finally:
            if not terminal.ended():
                os.kill(terminal.pid, signal.SIGTERM)


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make_runs(directory / "runs", options.runs)
        environment = {
            "HOME": name,
            "DISTILL_TUI_RUNS": str(directory / "runs"),
            **{f"XDG_{kind}_HOME": str(directory / kind.lower()) for kind in ("CACHE", "STATE", "CONFIG")},
        }
        programs: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
            "python": ((sys.executable, "-c", _PYTHON), (_MARK,)),
            "imports": ((sys.executable, "-c", _IMPORTS), (_MARK,)),
            "empty app": ((sys.executable, "-c", _EMPTY), (_MARK,)),
            "list": (APP, ("Reading runs", "completed")),
        }
        fill_cache(environment)
        turns: dict[str, list[float]] = {}
        for _ in range(options.turns):
            for title, (program, texts) in programs.items():
                for text, cpu in zip(texts, moments_of(program, texts, environment), strict=True):
                    turns.setdefault(title if len(texts) == 1 else f"{title}, {text}", []).append(cpu)
    print(
        json.dumps(
            {
                title: {"least": round(min(values)), "median": round(statistics.median(values))}
                for title, values in turns.items()
            },
            indent=1,
        )
    )


def fill_cache(environment: dict[str, str]) -> None:
    """Let the app read all runs and keep their rows."""
    with opened(environment=environment) as terminal:
        terminal.see("completed", limit_s=_LIMIT_S)
        terminal.read(3.0)
        terminal.press(b"q")
        terminal.wait(_LIMIT_S)


if __name__ == "__main__":
    main()
