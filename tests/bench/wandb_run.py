"""An offline run of W&B that prints the lines of a load, for `wandb leet`.

    PYTHON tests/bench/wandb_run.py DIRECTORY LINES_A_S BURST    with a Python that has wandb

Prints lines until it is ended, and logs a metric every 5 s.
"""

from __future__ import annotations

import importlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_METRIC_S = 5.0


@contextmanager
def written_run(python: str, directory: Path, lines_a_s: int, burst: int) -> Iterator[Path]:
    """Have a run written meanwhile; yields the folder that `wandb leet` takes."""
    command = [python, __file__, str(directory), str(lines_a_s), str(burst)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 120
            while not list(directory.glob("wandb/offline-run-*/*.wandb")):
                assert process.poll() is None, "the run of W&B ended"
                assert time.monotonic() < end, "no run of W&B"
                time.sleep(0.2)
            yield directory / "wandb"
        finally:
            process.terminate()
            process.wait(60)


def main() -> None:
    """Write a run until it is ended."""
    directory, lines_a_s, burst = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sys.path.insert(0, str(ROOT))
    line = importlib.import_module("tests.bench.log_lines").line
    wandb = importlib.import_module("wandb")
    settings = wandb.Settings(console="wrap", quiet=True)
    run = wandb.init(mode="offline", dir=directory, project="bench", settings=settings)
    began, logged = time.monotonic(), 0.0
    for number in itertools.count(1):
        if lines_a_s:
            print(line(number), end="", flush=True)
            if burst and number % 20 == 0:
                print("".join(line(number * 100 + extra) for extra in range(burst)), end="", flush=True)
        if lines_a_s and time.monotonic() - logged > _METRIC_S:
            logged = time.monotonic()
            run.log({"loss": 10 / (number + 1)})
        time.sleep(max(began + number / max(lines_a_s, 1) - time.monotonic(), 0))


if __name__ == "__main__":
    main()
