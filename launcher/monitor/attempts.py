"""State of a run on Slurm: a chain of jobs, each of which may have been requeued.

Each job, and each requeue of one, is an attempt with a log directory of its own. An attempt's
milestones, failures and end count only until a later attempt writes; losses and checkpoints accumulate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from launcher.logs.events import (
    CheckpointSaving,
    DriverEnded,
    Event,
    ExceptionSeen,
    FindingSeen,
    LauncherEnded,
    LogChanged,
    MetricRecorded,
    MilestoneReached,
    Recovered,
    StepBegan,
    UnitsOnline,
)
from launcher.monitor.ending import RunStatus
from launcher.monitor.run_status import run_status_of_attempts
from launcher.monitor.state import RunState

_ATTEMPT = re.compile(r"(?:^|/)(?:slurm-(?P<output>\d+)\.out$|(?P<job>\d+)(?:-(?P<requeue>\d+))?-logs/)")
Attempt = tuple[int, int]
"""Job id and number of requeues before the attempt."""
NONE: Attempt = (0, 0)
_EVENTS_OF_AN_ATTEMPT = (
    MilestoneReached, StepBegan, UnitsOnline, DriverEnded, LauncherEnded, FindingSeen, ExceptionSeen,
    Recovered,
)  # fmt: skip


def attempt_of(log: str) -> Attempt:
    """Return the attempt that a log belongs to, by its path; `NONE` where the path does not show it.

    Slurm's own output file is appended to by requeues, so its path shows only the job.
    """
    match = _ATTEMPT.search(log)
    if match is None:
        return NONE
    return (int(match["output"] or match["job"]), int(match["requeue"] or 0))


@dataclass(slots=True)
class SlurmRunState(RunState):
    """State of a run of several attempts: the end of one is not the end of the run."""

    links: int = 1
    """Maximum number of jobs in the chain."""
    attempt: Attempt = NONE
    """Latest attempt that has written a log."""
    _metric_attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    """(metric, step) -> attempt whose value is kept: a later attempt repeats some steps."""

    def apply(self, event: Event) -> None:
        """Apply an event to the state, unless it belongs to an earlier attempt."""
        if isinstance(event, LogChanged):
            self._begin(attempt_of(event.log))
        elif isinstance(event, _EVENTS_OF_AN_ATTEMPT):
            attempt = attempt_of(event.source.log)
            self._begin(attempt)
            if NONE != attempt < self.attempt:
                return
        elif isinstance(event, MetricRecorded):
            key, attempt = (event.name, event.step), attempt_of(event.source.log)
            if attempt < self._metric_attempts.get(key, NONE):
                return
            self._metric_attempts[key] = attempt
        elif isinstance(event, CheckpointSaving):
            present = self.checkpoints.get(event.step)
            if present is not None and attempt_of(event.source.log) < attempt_of(present.source.log):
                return
        RunState.apply(self, event)

    def _begin(self, attempt: Attempt) -> None:
        """Drop milestones, findings and ends of earlier attempts when a later one begins."""
        if attempt <= self.attempt:
            return
        self.attempt = attempt

        def is_current(log: str) -> bool:
            return not NONE != attempt_of(log) < attempt

        self.milestones = {
            name: item for name, item in self.milestones.items() if is_current(item.source.log)
        }
        self._findings = {key: item for key, item in self._findings.items() if is_current(key[0])}
        self._exceptions = [item for item in self._exceptions if is_current(item.source.log)]
        if self.current is not None and not is_current(self.current.source.log):
            self.current = None
        if self.units is not None and not is_current(self.units.source.log):
            self.units = None
        if self.driver_ended is not None and not is_current(self.driver_ended.source.log):
            self.driver_ended = None
        if self.launcher_ended is not None and not is_current(self.launcher_ended.source.log):
            self.launcher_ended = None
        self._diagnosis = None

    @property
    def status(self) -> RunStatus:
        """State of the run with its reason."""
        evidence = self._evidence()
        ended_job = attempt_of(evidence.ended.source.log)[0] if evidence.ended is not None else 0
        return run_status_of_attempts(evidence, links=self.links, ended_job=ended_job)
