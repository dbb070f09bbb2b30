"""`python -m tests.mutation [--jobs N] [--sample N] [MODULE…]`: which small mistakes would the tests notice?

Fails where fewer than 85 % of a module's mutants are noticed, or where one survives that `survivors.toml`
does not list with a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants_of
from tests.mutation.targets import GUARDED, SAMPLED, Target
from tests.mutation.trials import Laboratory, TrialError

ROOT = Path(__file__).parent.parent.parent
SURVIVORS = Path(__file__).parent / "survivors.toml"
LEAST = 0.85
Key = tuple[str, str, str, str, int]


def main(arguments: Sequence[str]) -> int:
    """Try mutants; returns the exit code."""
    options = _parser().parse_args(arguments)
    os.chdir(ROOT)
    # The same tests everywhere and each time: without data from elsewhere, with the same examples.
    os.environ.update(
        DISTILL_TUI_TEST_DATA="/nowhere",
        HYPOTHESIS_PROFILE="mutation",
        OMP_NUM_THREADS="1",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    targets = SAMPLED if options.sample else GUARDED
    if options.modules:
        targets = tuple(
            target for target in targets if any(name in target.module for name in options.modules)
        )
    listed = _listed()
    tried, survivors, weak = 0, list[Mutant](), list[str]()
    for target in targets:
        mutants = _mutants(target, options.sample)
        survived = _survivors(target, mutants, options.jobs)
        tried += len(mutants)
        survivors += survived
        if len(survived) > (1 - LEAST) * len(mutants):
            weak.append(target.module)
    share = 1 - len(survivors) / tried if tried else 1.0
    new = [mutant for mutant in survivors if mutant.key not in listed]
    print(f"{tried} mutants, {share:.1%} killed, {len(survivors)} survivors, {len(new)} of them not listed")
    if options.sample:
        return 0
    for module in weak:
        print(f"{module}: fewer than {LEAST:.0%} killed")
    _report_gone(targets, listed, survivors)
    return 1 if new or weak else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="parts of paths; all without")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="trials at a time")
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants of each module of the wider table")
    return parser


def _mutants(target: Target, sample: int | None) -> list[Mutant]:
    mutants = mutants_of(target.module, Path(target.module).read_text(), target.functions)
    if sample is None or len(mutants) <= sample:
        return mutants
    return random.Random(target.module).sample(mutants, sample)


def _survivors(target: Target, mutants: list[Mutant], jobs: int) -> list[Mutant]:
    """Try a target's mutants in a process that has only its libraries, and tell how it went."""
    begun = time.monotonic()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        code = 1
        try:
            survived = Laboratory(target.module, target.tests, jobs).survivors(mutants)
            os.write(writing, json.dumps([mutants.index(mutant) for mutant in survived]).encode())
            code = 0
        except TrialError as error:
            print(error, file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        answer = file.read()
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise SystemExit(2)
    survived = [mutants[number] for number in json.loads(answer)]
    took = time.monotonic() - begun
    print(f"{target.module}: {len(mutants)} mutants, {len(survived)} survivors, {took:.0f} s", flush=True)
    for mutant in survived:
        print(f"  {mutant}", flush=True)
    return survived


def _listed() -> dict[Key, str]:
    """Return the survivors that were looked at, and why they may stay."""
    if not SURVIVORS.exists():
        return {}
    items = tomllib.loads(SURVIVORS.read_text())["survivor"]
    return {
        (item["module"], item["function"], item["before"], item["after"], item.get("number", 1)): item[
            "reason"
        ]
        for item in items
    }


def _report_gone(targets: Sequence[Target], listed: dict[Key, str], survivors: list[Mutant]) -> None:
    modules = {target.module for target in targets}
    for key in listed.keys() - {mutant.key for mutant in survivors}:
        if key[0] in modules:
            print(f"listed, but no survivor any more: {key}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
