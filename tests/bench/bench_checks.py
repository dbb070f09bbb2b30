"""How long checking takes, in CPU time: in one process and as a command, with and without what is kept.

Run as `python tests/bench/bench_checks.py [CHECKOUT …]`. A checkout is NeMo-RL's sources; without one, only a
recipe of its own is checked. Exits with 1 above a target. Compile the modules first (`python -m compileall`):
the first command would otherwise do it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from recipes.checks import RULES, Checker, Inputs
from tests.checks.world import World

ROUNDS = 25
COMMANDS = 7
WARM_MS, COLD_MS = 60.0, 400.0
COMMAND_WARM_MS, COMMAND_COLD_MS = 300.0, 450.0
CASES = {
    "legal": (),
    "two failures, fixes tried": ("teacher.dtensor_cfg.context_parallel_size=4", "loss_fn.kl_type=revers"),
}
RECIPE = "examples/configs/distillation_math.yaml"
COLD_IN_PROCESS = """
import sys, time
from pathlib import Path
from recipes.checks import Checker, Inputs
checker = Checker(Inputs.of(environment={}, checkout=Path(sys.argv[1])))
start = time.process_time()
checker.check(Path(sys.argv[2]))
print((time.process_time() - start) * 1000)
"""


def report(name: str, times: list[float], target: float) -> bool:
    """Print the median and the fastest of some times; return whether the median is within the target."""
    middle = statistics.median(times)
    print(f"{name:44} median {middle:6.1f} ms  best {min(times):6.1f} ms  target {target:g} ms")
    return middle <= target


def in_process(checker: Checker, path: Path, overrides: tuple[str, ...] = ()) -> list[float]:
    """Return the times of repeated checks, after a first one."""
    times = []
    for number in range(ROUNDS + 1):
        start = time.process_time()
        checker.check(path, overrides)
        if number:
            times.append((time.process_time() - start) * 1000)
    return times


def own_recipe() -> bool:
    """Check a recipe with a parent, legal and not."""
    with tempfile.TemporaryDirectory() as directory:
        world = World.at(Path(directory))
        child = world.root / "child.yaml"
        child.write_text("defaults: recipe.yaml\ndistillation: {max_num_steps: 50}\n")
        inputs = Inputs.of(environment=world.environment, checkout=world.root, request=world.request)
        results = [
            report(f"in process, warm: {name}", in_process(Checker(inputs), child, overrides), WARM_MS)
            for name, overrides in CASES.items()
        ]
    return all(results)


def cpu_ms(start: Callable[[], object]) -> float:
    """Return the CPU time of the processes that are started and waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def of_checkout(root: Path) -> bool:
    """Check a checkout's base recipe by the command and in fresh processes, with a cache and without."""
    path = root / RECIPE
    command = Path(sys.executable).with_name("distill-tui")
    warm: list[float] = []
    cold: list[float] = []
    first: list[float] = []
    for _ in range(COMMANDS):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            for times in (cold, warm):

                def check(environment: dict[str, str] = environment) -> None:
                    subprocess.run(
                        [command, "check", path], env=environment, capture_output=True, check=False
                    )

                times.append(cpu_ms(check))
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, "-c", COLD_IN_PROCESS, str(root), str(path)],
                env={**os.environ, "XDG_CACHE_HOME": cache}, capture_output=True, text=True, check=True,
            )  # fmt: skip
            first.append(float(done.stdout))
    checker = Checker(Inputs.of(environment={}, checkout=root))
    return all(
        [
            report(f"{root.name}: in process, warm", in_process(checker, path), WARM_MS),
            report(f"{root.name}: in process, cold", first, COLD_MS),
            report(f"{root.name}: command, warm", warm, COMMAND_WARM_MS),
            report(f"{root.name}: command, cold", cold, COMMAND_COLD_MS),
        ]
    )


def main() -> int:
    """Print all figures."""
    print(f"{len(RULES)} rules")
    met = all([own_recipe(), *(of_checkout(Path(name)) for name in sys.argv[1:])])
    print(f"targets {'met' if met else 'MISSED'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
