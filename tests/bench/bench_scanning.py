"""Speed of scanning a log, next to that of an older commit, in turns.

    python tests/bench/bench_scanning.py COMMIT [--size MB] [--rounds N] [--log FILE]

Two logs: the sparse one of `bench_logs.py` (about 22 matching lines a MB), and a dense one, a short training
over and over (about 5 events a kB of what is not noise); --log reads a file of yours instead. Printed: MB per
CPU second of both, best and median of the rounds, and their ratio.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bench_logs import make_log  # noqa: E402
from tests.driver_text import DriverText  # noqa: E402

_SCAN = """
import sys, time
sys.path.insert(0, sys.argv[1])
from launcher.logs.driver_log import DriverReader
from launcher.logs.scanner import Scanner
from launcher.logs.search import finder_for
finder_for(DriverReader("log").literals)
scanner, events = Scanner(DriverReader("log")), 0
began = time.process_time()
with open(sys.argv[2], "rb", buffering=0) as file:
    while data := file.read(1024 * 1024):
        for _ in scanner.feed(data, lambda _: None):
            events += 1
print(time.process_time() - began, events)
"""


def make_dense_log(path: Path, size: int) -> None:
    """Write a log of about `size` bytes in which every few lines mean something."""
    rng = random.Random(5)
    source = "/opt/venv/lib/python3.12/site-packages/torch/distributed/checkpoint/state_dict.py"
    step = 0
    with path.open("wb") as file:
        while file.tell() < size:
            step += 1
            worker = f"\x1b[36m(DTensorPolicyWorker pid={24_000 + rng.randrange(8)})\x1b[0m "
            text = "\n".join(
                [
                    *DriverText([0.5], 1, first_step=step, end="").lines(),
                    f"{worker}{source}:604: UserWarning: multiple backends are registered",
                    f"{worker}  devices.add(default_device())",
                    *(f"{worker}[Rank 0] shard {rng.random()} of the state was read" for _ in range(120)),
                ]
            )
            file.write(text.encode() + b"\n")


def cpu_seconds(root: Path, log: Path) -> tuple[float, int]:
    """Return the CPU seconds in which the product at `root` reads a log, and the number of its events."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _SCAN, str(root), str(log)], capture_output=True, text=True, check=True
    )
    seconds, events = done.stdout.split()
    return float(seconds), int(events)


def compare(old: Path, log: Path, rounds: int) -> None:
    """Print the speeds of both on one log."""
    size = log.stat().st_size / 1e6
    turns = [(cpu_seconds(old, log), cpu_seconds(ROOT, log)) for _ in range(rounds)]
    before, after = ([size / one[side][0] for one in turns] for side in (0, 1))
    events = [turns[0][side][1] for side in (0, 1)]
    print(f"{log.name}: {size:.0f} MB, events {events[0]} before, {events[1]} now")
    for name, choose in (("best", max), ("median", statistics.median)):
        print(
            f"  {name:7}{choose(before):6.0f} before {choose(after):6.0f} now "
            f"MB/CPU s, ratio {choose(after) / choose(before):.2f}"
        )


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("commit", help="the older commit")
    options.add_argument("--size", type=int, default=100, help="MB of each log (100)")
    options.add_argument("--rounds", type=int, default=7, help="turns of both (7)")
    options.add_argument("--log", type=Path, help="a log of yours")
    given = options.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        archive = ["git", "-C", str(ROOT), "archive", given.commit, "launcher", "recipes"]
        tar = subprocess.run(archive, capture_output=True, check=True).stdout
        old = directory / "old"
        old.mkdir()
        subprocess.run(["tar", "-x", "-C", str(old)], input=tar, check=True)
        if given.log is not None:
            compare(old, given.log, given.rounds)
            return
        for kind, make in (("sparse", make_log), ("dense", make_dense_log)):
            log = directory / kind
            make(log, given.size * 1_000_000)
            compare(old, log, given.rounds)
            log.unlink()


if __name__ == "__main__":
    main()
