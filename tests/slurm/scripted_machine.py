"""A machine whose Slurm answers what it is told to, and a clock that does not wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.errors import TransportError
from launcher.job_records import record_job
from launcher.plan import LaunchPlan
from launcher.runs import Job, Run, load
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from tests.slurm.records import run_of, user_environment

DOWN = Completed(1, "", "sbatch: error: Unable to contact slurm controller (connect failure)")
DOWN_WITH_A_HINT = Completed(1, "", "sbatch: error: Problem talking to the database: no such account")
SILENT = Completed(1, "", "  \n")
REFUSED = Completed(1, "", "sbatch: error: Batch job submission failed: Invalid qos specification")
STRANGE = Completed(1, "", "sbatch: error: the moon is full")
TIMES_OUT = "'sbatch' did not end within 150 s"
Answer = Completed | str | Callable[[Sequence[str]], Completed]
"""What a command answers: what it printed, or the transport's error."""


class Machine(LocalTransport):
    """A machine whose commands answer what they are told to; the last answer is given again and again."""

    def __init__(self, **answers: list[Answer]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []
        self.with_environment: list[Mapping[str, str] | None] = []
        self.limits: dict[str, float] = {}
        self.directories: dict[str, str | None] = {}

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        self.asked.append(tuple(argv))
        self.with_environment.append(env)
        self.limits[argv[0]], self.directories[argv[0]] = timeout_s, cwd
        waiting = self.answers.get(argv[0], [Completed(0, "", "")])
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, str):
            raise TransportError(answer)
        return answer if isinstance(answer, Completed) else answer(argv)

    def count(self, command: str) -> int:
        """Return how often a command was run."""
        return sum(argv[0] == command for argv in self.asked)


class Clock:
    """Time that passes while one sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def at(tmp_path: Path, machine: Machine, clock: Clock) -> SlurmCluster:
    return SlurmCluster(machine, str(tmp_path), user_environment(tmp_path), sleep=clock.sleep)


def plan_of(run: Run, token: str = "dt-abc") -> LaunchPlan:
    argv = ("sbatch", "--parsable", f"--comment=distill-tui {token}", "job.sh")
    return LaunchPlan(token, argv, run.directory, {"A": "1"}, (), "out")


def printed(text: str) -> Completed:
    return Completed(0, text, "")


def listed(identity: str, token: str = "dt-abc", state: str = "PENDING") -> Completed:
    return printed(f"{identity}|{state}|1|N/A|N/A||Priority|distill-tui {token}\n")


def recorded(run: Run) -> tuple[Job, ...]:
    again = load(LocalTransport(), run.directory)
    assert isinstance(again, Run)
    return again.jobs


def new(tmp_path: Path, machine: Machine, *jobs: Job, name: str = "r") -> Run:
    run = run_of(tmp_path, machine, (), name)
    for item in jobs:
        run = record_job(machine, run, item)
    return run
