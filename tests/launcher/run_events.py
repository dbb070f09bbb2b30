"""Events of runs, and states made from them, for tests."""

from __future__ import annotations

from typing import Any

from launcher.logs.events import (
    Event,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    MilestoneReached,
    Role,
    Source,
)
from launcher.monitor.attempts import SlurmRunState
from launcher.monitor.state import RunState

DRIVER, HEAD, WORKER, SLURM = Role.DRIVER, Role.HEAD, Role.WORKER, Role.SLURM
QUEUED, STARTING, RUNNING = JobState.QUEUED, JobState.STARTING, JobState.RUNNING
COMPLETED, FAILED, CANCELLED, UNKNOWN = (
    JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN,
)  # fmt: skip

BY_SIGTERM = (
    "stopped by SIGTERM, and no log says who sent it: "
    "the time limit, scancel, a preemption, or its node may have"
)


def at(line: int, log: str = "d", role: Role = DRIVER) -> Source:
    return Source(log, role, line)


def state(*events: Event) -> RunState:
    one = RunState()
    for event in events:
        one.apply(event)
    return one


def chain(*events: Event, links: int = 1) -> SlurmRunState:
    one = SlurmRunState(links=links)
    for event in events:
        one.apply(event)
    return one


def finding(
    line: int = 10, name: str = "cuda-oom", log: str = "d", role: Role = DRIVER, **more: Any
) -> FindingSeen:
    details: dict[str, Any] = {
        "tier": 1,
        "title": "Out of memory",
        "severity": "fatal",
        "text": "it happened",
        **more,
    }
    return FindingSeen(id=name, source=at(line, log, role), **details)


def raised(line: int = 10, message: str = "ValueError: x", log: str = "d", **more: object) -> ExceptionSeen:
    details = {"own": True, "wrapper": False, "role": DRIVER, **more}
    source = at(line, log, details.pop("role"))  # type: ignore[arg-type]
    return ExceptionSeen(message, source, line - 2, **details)  # type: ignore[arg-type]


def milestone(name: str, line: int = 5, log: str = "d", role: Role = DRIVER) -> MilestoneReached:
    return MilestoneReached(name, at(line, log, role))


def job(what: JobState, reason: str = "because", **more: object) -> JobChanged:
    return JobChanged(what, reason, **more)  # type: ignore[arg-type]


def what(one: RunState) -> tuple[JobState, str]:
    return one.state, one.reason


def ids(one: RunState) -> list[str]:
    return [item.id for item in one.findings]
