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
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from launcher.overview.lister import RunLister  # noqa: E402 - the project is found first
from launcher.transports.local import LocalTransport  # noqa: E402
from tests.bench.bench_home import make_runs  # noqa: E402
from tests.tui.terminal import opened  # noqa: E402

_LIMIT_S = 60.0
_SHOWN = 50
"""Rows on a screen, at most."""
_MARK = "the first line"
_FILE, _TEXTS = "BENCH_MOMENTS_FILE", "BENCH_MOMENTS_TEXTS"
_WATCHED = f"""
import os, sys, time
class Watched:
    def __init__(self, file):
        self._file, self._written, self._moments = file, "", []
        self._texts = os.environ["{_TEXTS}"].strip("[]").replace('"', "").split(", ")
    def write(self, text):
        done = self._file.write(text)
        self._written += text
        while len(self._moments) < len(self._texts) and self._texts[len(self._moments)] in self._written:
            self._moments.append(1000 * time.process_time())
            if len(self._moments) == len(self._texts):
                name = os.environ["{_FILE}"]
                with open(name + "~", "w") as out:
                    out.write(str(self._moments))
                os.rename(name + "~", name)
        return done
    def __getattr__(self, name):
        return getattr(self._file, name)
sys.stdout, sys.__stderr__ = Watched(sys.stdout), Watched(sys.__stderr__)
"""
"""Notes the CPU of the process when a text is written; on a busy machine another one sees that late."""
_EMPTY = f"""
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("{_MARK}")
Empty().run()
"""
_LIST_TEXTS = ("distill-tui", "completed")
"""Of the frame, and of the rows."""
_PYTHON = f"print('{_MARK}', flush=True)"
_IMPORTS = "import textual.app, textual.screen, textual.containers, textual.widgets\n" + _PYTHON
_LIST = f"sys.path.insert(0, {str(ROOT)!r})\nimport distill_tui\ndistill_tui.main()"


def watched(code: str) -> tuple[str, ...]:
    """Return the command of a program whose output is watched."""
    return (sys.executable, "-c", _WATCHED + code)


def moments_of(program: tuple[str, ...], texts: tuple[str, ...], environment: dict[str, str]) -> list[float]:
    """Return the CPU, in ms, that a program had taken when it wrote each of these texts."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "moments")
        more = {_FILE: str(file), _TEXTS: json.dumps(texts)}
        with opened(program=program, environment={**environment, **more}) as terminal:
            try:
                terminal.until(lambda: file.exists(), f"all of {texts}", _LIMIT_S)
            finally:
                if not terminal.ended():
                    os.kill(terminal.pid, signal.SIGTERM)
        taken: list[float] = json.loads(file.read_text())
        return taken


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
            "python": (watched(_PYTHON), (_MARK,)),
            "imports": (watched(_IMPORTS), (_MARK,)),
            "empty app": (watched(_EMPTY), (_MARK,)),
            "list": (watched(_LIST), _LIST_TEXTS),
        }
        fill_cache(directory / "runs", environment)
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


def fill_cache(root: Path, environment: dict[str, str]) -> None:
    """Keep the rows of all runs, with the sizes of those on the first screen, as the app does in time."""
    lister = RunLister.of_user(LocalTransport(), str(root), lambda: True, environment)
    lister.relist()
    while lister.poll_next():
        continue
    shown = [row.directory for row in lister.rows()[:_SHOWN]]
    while lister.count_one(shown):
        continue
    lister.save(now=True)


if __name__ == "__main__":
    main()
