"""Scanning a log for all signatures and milestones, next to ripgrep and grep with the same literals.

    python tests/bench/bench_logs.py [--size MB] [--plain-size MB] [--viewers [--toolong PROGRAM]]

The log is made like a driver's: progress bars, relayed lines, milestones, steps, and each signature's lines
among them (about 22 matching lines a MB). Printed: MB per CPU second. Every engine must find the same.
With --viewers, the monitor on such a log, on a lively one and on many is measured as well, next to less, lnav
and toolong (see viewer.py).
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from launcher.logs.driver_log import DriverReader  # noqa: E402
from launcher.logs.events import FindingSeen, MetricRecorded, MilestoneReached  # noqa: E402
from launcher.logs.scanner import Scanner  # noqa: E402
from launcher.logs.search import Finder, PlainFinder, finder_for  # noqa: E402
from tests.bench.measuring import print_viewers  # noqa: E402
from tests.bench.viewer import MARK, compare_viewers  # noqa: E402
from tests.driver_text import DriverText  # noqa: E402

CHUNK = 1024 * 1024
ROUNDS = 3
"""Engines take turns; the best of each counts, since the machine may be busy with other things."""


class Result(NamedTuple):
    """What one engine did."""

    name: str
    mb: float
    cpu_s: float
    found: Counter[tuple[str, int]] | int


def make_log(path: Path, size: int) -> None:
    """Write a log of about `size` bytes; always the same one."""
    rng = random.Random(5)
    cases = tomllib.loads((ROOT / "tests" / "cases" / "logs" / "signatures.toml").read_text())
    lines = [line for case in cases.values() for line in case["yes"] if "\n" not in line]
    block = _noise(rng)
    step = 0
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(block[rng.randrange(len(block) // 2) :].partition(b"\n")[2])
            for line in rng.choices(lines, k=11):
                prefix = rng.choice(
                    ("", "\x1b[36m(DTensorPolicyWorkerV2[rank=3] pid=77, ip=10.0.0.3)\x1b[0m ")
                )
                file.write(f"{prefix}{line}\n".encode())
            step += 1
            file.write("\n".join(DriverText([0.5], 1, first_step=step, end="").lines()).encode() + b"\n")


def _noise(rng: random.Random) -> bytes:
    def lines() -> Iterator[str]:
        for number in range(24_000):
            yield rng.choice(
                (
                    f"\x1b[36m(VllmGenerationWorker pid={number}, ip=10.0.0.{number % 200})\x1b[0m "
                    f"\rProcessed prompts:  {number % 100}%|████▌     | {number}/9000 [00:41<00:40]",
                    f"INFO 11-28 02:14:{number % 60:02} [gpu_model_runner.py:2653] loaded shard {number}",
                    f"(PolicyWorker[rank=1] pid=22) GPU Memory after offload: {number / 100:.2f}GB allocated",
                    f"  • policy_training/submit_training_futures: {number / 1000:.2f}s (0.{number % 10}%)",
                    f"jwb{number:04}:4746:4746 [0] NCCL INFO Channel 0{number % 9}/0 : 3[3] -> 2[2] via P2P",
                )
            )

    return "\n".join(lines()).encode() + b"\n"


def scan(name: str, path: Path, finder: Finder, limit: int) -> Result:
    """Read a log (at most `limit` bytes) as the monitor does."""
    scanner = Scanner(DriverReader("log"), finder)
    found: Counter[tuple[str, int]] = Counter()
    began = time.process_time()
    taken = 0
    with path.open("rb", buffering=0) as file:
        while taken < limit and (data := file.read(min(CHUNK, limit - taken))):
            taken += len(data)
            for event in scanner.feed(data, lambda _: None):
                if isinstance(event, (FindingSeen, MilestoneReached)):
                    found[event.id, event.source.line] += 1
                elif isinstance(event, MetricRecorded):
                    found[event.name, event.source.line] += 1
    return Result(name, taken / 1e6, time.process_time() - began, found)


def peer(name: str, argv: list[str], size: int) -> Result | None:
    """Run another program over the log; None where it is not installed."""
    if shutil.which(argv[0]) is None:
        return None
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Result(name, size / 1e6, cpu, int(done.stdout or 0))


def compare(directory: Path, size: int, plain_size: int) -> list[Result]:
    """Make the log and run all engines over it.

    Raises:
        AssertionError: two engines found different things.
    """
    log, words = directory / "log", directory / "words"
    make_log(log, size)
    size = log.stat().st_size
    literals = DriverReader("log").literals
    words.write_bytes(b"\n".join(literals) + b"\n")
    finder_for(literals)
    some = scan("distill-tui, first part", log, finder_for(literals), plain_size)
    plain = scan("distill-tui, Python alone", log, PlainFinder(literals), plain_size)
    assert plain.found == some.found, "Python alone finds something else"
    rounds: list[list[Result]] = []
    for _ in range(ROUNDS):
        rounds.append([scan("distill-tui", log, finder_for(literals), size), plain])
        for name, argv in (("rg -c -j1 -F", ["rg", "-c", "-j1"]), ("grep -c -F", ["grep", "-c"])):
            result = peer(name, [*argv, "-F", "-f", str(words), str(log)], size)
            rounds[-1] += [result] if result is not None else []
    return [min(same, key=lambda result: result.cpu_s) for same in zip(*rounds, strict=True)]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--size", type=int, default=200, help="MB of the log (200)")
    options.add_argument("--plain-size", type=int, default=20, help="MB of it that Python alone reads (20)")
    options.add_argument("--viewers", action="store_true", help="measure viewers of logs as well")
    options.add_argument("--toolong", default="tl", help="toolong's program, where it is not on PATH")
    given = options.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    tables = {}
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, "log")
        results = compare(Path(directory), given.size * 1_000_000, given.plain_size * 1_000_000)
        if given.viewers:
            big = Path(directory, "big", "ray-driver.log")
            big.parent.mkdir()
            log.replace(big)
            with big.open("ab") as file:
                file.write(MARK.encode() + b"\n")
            tables = compare_viewers(Path(directory), big, given.toolong)
    print(f"{'':28}{'MB':>8}{'CPU s':>9}{'MB/CPU s':>10}  found")
    for item in results:
        found = item.found if isinstance(item.found, int) else item.found.total()
        print(f"{item.name:28}{item.mb:8.0f}{item.cpu_s:9.2f}{item.mb / item.cpu_s:10.0f}  {found}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    print_viewers(tables)


if __name__ == "__main__":
    main()
