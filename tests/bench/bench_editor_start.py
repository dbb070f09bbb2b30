"""Time from `recipe edit FILE` to the painted tree, and to its checks, over recipes in a pseudo-terminal.

    uv run python tests/bench/bench_editor_start.py [--cold] RECIPE …

`tree` is until the effective recipe with all its leaves is on the screen, `checks` until findings and memory
follow it: wall milliseconds, and behind the slash those of CPU. With --cold each start has an empty cache, as
the first one with a checkout. `python -X importtime` apart, the start of Python and the imports are within.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.tui.terminal import Terminal, opened  # noqa: E402 - the project is found first

_TREE, _CHECKS = "set here of", " GPUs"
_PAUSE_S = 0.002


class Moment(NamedTuple):
    """Milliseconds since the start of the command."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:5.0f} /{self.cpu:5.0f}"


def cpu_ms(pid: int) -> float:
    """Return the CPU time of a process with all its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def moment_of(terminal: Terminal, text: str, start: float) -> Moment:
    """Wait until a text is written."""
    while text.encode() not in terminal.written:
        assert time.monotonic() - start < 60, f"never: {text}"
        terminal.read(_PAUSE_S)
    return Moment((time.monotonic() - start) * 1000, cpu_ms(terminal.pid))


def start_of(recipe: Path, environment: dict[str, str]) -> tuple[Moment, Moment]:
    """Open a recipe; return when its tree was painted, and when its checks were."""
    start = time.monotonic()
    with opened("recipe", "edit", str(recipe), environment=environment) as terminal:
        tree = moment_of(terminal, _TREE, start)
        checks = moment_of(terminal, _CHECKS, start)
        terminal.press(b"q")
        terminal.wait()
    return tree, checks


def main() -> int:
    """Print a line for each recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cold", action="store_true", help="begin each time with an empty cache")
    parser.add_argument("recipes", nargs="+", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        for number, recipe in enumerate(options.recipes):
            cache = home / (f"cache{number}" if options.cold else "cache")
            environment = {
                "HOME": directory,
                "XDG_CACHE_HOME": str(cache),
                "XDG_STATE_HOME": str(home / "state"),
                "XDG_CONFIG_HOME": str(home / "config"),
                "DISTILL_TUI_RUNS": str(home / "runs"),
                "HF_HUB_OFFLINE": "1",
            }
            os.makedirs(cache, exist_ok=True)
            tree, checks = start_of(recipe, environment)
            print(f"{recipe.name[:60]:61}tree {tree}   checks {checks} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
