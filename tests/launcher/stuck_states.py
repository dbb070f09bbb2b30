"""States of runs that may be stuck, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from launcher.logs.events import (
    FindingSeen,
    JobChanged,
    JobState,
    LogChanged,
    MetricRecorded,
    MilestoneReached,
    Role,
    Source,
    StepBegan,
)
from launcher.monitor.state import RunState

NOW = 1_795_800_000.0
DRIVER, SLURM = "7-logs/ray-driver.log", "7-logs/launcher.log"
UP = ("head-up", "workers-connected", "driver-started", "ray-attached", "data-loaded", "teacher-ready",
      "generation-ready", "student-ready", "setup-complete")  # fmt: skip


def running(**changes: object) -> JobChanged:
    job = JobChanged(
        JobState.RUNNING,
        word="RUNNING",
        job="7",
        nodes="jwb[0001-0003]",
        submitted=NOW - 9000,
        began=NOW - 8000,
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def log(state: RunState, name: str, role: Role, written: float) -> None:
    state.apply(LogChanged(name, role, 100, 10, time=written))


def reach(state: RunState, *names: str, at: float = NOW - 7900) -> None:
    for name in names:
        state.apply(MilestoneReached(name, Source(DRIVER, Role.DRIVER, 1), at))


def training(times: Sequence[float], since: float = 0.0) -> RunState:
    """Return a run that has done some steps, and has been in the next one for so long."""
    state = RunState()
    state.apply(running())
    reach(state, *UP, "first-step")
    for step, took in enumerate(times, 1):
        state.apply(MetricRecorded("loss", step, 1.0, Source(DRIVER, Role.DRIVER, step)))
        state.apply(MetricRecorded("step_time_s", step, took, Source(DRIVER, Role.DRIVER, step)))
    state.apply(StepBegan(len(times) + 1, Source(DRIVER, Role.DRIVER, 900), NOW - since))
    log(state, DRIVER, Role.DRIVER, NOW - since)
    return state


def only(found: tuple[FindingSeen, ...]) -> tuple[str, str, str]:
    (one,) = found
    assert one.severity == "warning"
    return one.id, one.title, one.text
