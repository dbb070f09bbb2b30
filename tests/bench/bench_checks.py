"""How long checking a two-file recipe takes, warm and in process: with and without trying every fix.

Run as `python tests/bench/bench_checks.py`. Exits with 1 above the target.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from recipes.checks import RULES, Checker, Inputs
from tests.checks.world import World

ROUNDS = 25
TARGET_MS = 60.0
CASES = {
    "legal": (),
    "two failures, fixes tried": ("teacher.dtensor_cfg.context_parallel_size=4", "loss_fn.kl_type=revers"),
}


def main() -> int:
    """Print median and slowest times."""
    slowest = 0.0
    with tempfile.TemporaryDirectory() as directory:
        world = World.at(Path(directory))
        child = world.root / "child.yaml"
        child.write_text("defaults: recipe.yaml\ndistillation: {max_num_steps: 50}\n")
        checker = Checker(
            Inputs.of(environment=world.environment, checkout=world.root, request=world.request)
        )
        for name, overrides in CASES.items():
            checker.check(child, overrides)
            times = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                checker.check(child, overrides)
                times.append((time.perf_counter() - start) * 1000)
            middle = statistics.median(times)
            slowest = max(slowest, middle)
            print(f"{name:28} {len(RULES)} rules  median {middle:5.1f} ms  worst {max(times):5.1f} ms")
    print(f"target {TARGET_MS:g} ms: {'met' if slowest <= TARGET_MS else 'MISSED'}")
    return 0 if slowest <= TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
