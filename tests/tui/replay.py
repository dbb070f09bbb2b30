"""Run directories as a run writes them, bit by bit or at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from launcher.job_records import record_job
from launcher.runs import Job, JobProcess, RecipeRef, Run, RunSpec, RunStore
from launcher.transports.local import LocalTransport
from tests.driver_text import LAUNCHER, DriverText, launcher_end

START = datetime(2026, 11, 28, 2, 0, tzinfo=UTC)
"""When the launcher's log says it began."""
LATER = (START + timedelta(minutes=4)).timestamp()
LOSSES = tuple(round(0.3 + 0.9 * math.exp(-step / 6), 4) for step in range(12))


def make_run(
    root: Path,
    *,
    name: str = "demo",
    identity: str = "20261128-020000-demo-ab12",
    max_steps: int = 20,
    host: str | None = None,
    process: JobProcess | None = None,
    job: bool = True,
) -> Run:
    """Make a run's directory without logs."""
    transport = LocalTransport()
    spec = RunSpec(
        schema=1,
        id=identity,
        name=name,
        kind="rehearsal",
        created=START,
        user="alice",
        host=host or transport.host,
        recipe=RecipeRef(source="recipes/library/rehearsal.yaml"),
        cluster="local",
        nodes=1,
        gpus_per_node=0,
        max_steps=max_steps,
    )
    run = RunStore(transport, str(root)).create(spec, {"recipe.yaml": b"distillation: {}\n"})
    if not job:
        return run
    return record_job(transport, run, Job(id=f"local-{identity[-4:]}", submitted=START, process=process))


@dataclass
class Replay:
    """The logs of a run, written one step at a time; `write` says how far."""

    run: Run
    losses: Sequence[float] = LOSSES
    workers: int = 1
    end: str = ""
    _driver: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.logs = (
            Path(self.run.logs) / f"{self.run.jobs[-1].id}-logs" if self.run.jobs else Path(self.run.logs)
        )
        self.logs.mkdir(parents=True, exist_ok=True)
        text = DriverText(self.losses, validate_at=(5, 10), save_at=(5, 10), end=self.end)
        self._driver = text.lines()

    def append(self, name: str, text: str) -> None:
        with (self.logs / name).open("a", encoding="utf-8") as file:
            file.write(text)

    def start(self) -> None:
        """Write what the launcher writes up to the driver's start."""
        self.append("launcher.log", LAUNCHER)
        self.append("ray-head.log", "Local node IP: 10.0.0.1\nRay runtime started.\n")
        for worker in range(1, self.workers + 1):
            self.append(f"ray-worker-{worker}.log", f"Ray worker {worker} runs on jwb{worker:04d}\n")

    def drive(self, until: str = "") -> None:
        """Write the driver's log up to and with the line that holds `until`; all of it for nothing."""
        for line in self._driver:
            self.append("ray-driver.log", line + "\n")
            self.note()
            if until and until in line:
                return

    def finish(self, code: int = 0) -> None:
        """Write the launcher's last lines."""
        self.append("launcher.log", launcher_end(code))

    def note(self) -> None:
        """Note the log's size, as the launcher does: 5 s later each time something was written."""
        size = (self.logs / "ray-driver.log").stat().st_size
        noted = self.logs / "log-clock.tsv"
        count = len(noted.read_text().splitlines()) if noted.exists() else 0
        time = START.timestamp() + 12 + count * 0.8
        self.append("log-clock.tsv", f"{time:.0f}\tray-driver.log\t{size}\n")


def running(root: Path, until: str = "train_data_step12", **options: object) -> Replay:
    """Write a run that has come as far as `until`."""
    replay = Replay(make_run(root, **options))  # type: ignore[arg-type]
    replay.start()
    replay.drive(until)
    return replay
