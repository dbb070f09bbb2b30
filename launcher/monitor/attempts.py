"""The state of a run whose jobs Slurm has: a chain of jobs, each of which may have been requeued.

Each job, and each requeue of one, is an attempt with a log directory of its own. What an attempt says of its
set-up, its failures and its end holds only until a later attempt writes; losses and checkpoints add up.
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
    JobState,
    LauncherEnded,
    LogChanged,
    MetricRecorded,
    MilestoneReached,
    Recovered,
    StepBegan,
    UnitsOnline,
)
from launcher.monitor.state import INTERRUPTED, RunState

_ATTEMPT = re.compile(r"(?:^|/)(?:slurm-(?P<output>\d+)\.out$|(?P<job>\d+)(?:-(?P<requeue>\d+))?-logs/)")
Attempt = tuple[int, int]
"""Number of the job, and how often it had been requeued."""
NONE: Attempt = (0, 0)
_OF_ITS_ATTEMPT = (
    MilestoneReached, StepBegan, UnitsOnline, DriverEnded, LauncherEnded, FindingSeen, ExceptionSeen,
    Recovered,
)  # fmt: skip


def attempt_of(log: str) -> Attempt:
    """Return the attempt that a log belongs to, by its path; `NONE` where that does not tell.

    Slurm's own output file is appended to by requeues, so only its job is known.
    """
    match = _ATTEMPT.search(log)
    if match is None:
        return NONE
    return (int(match["output"] or match["job"]), int(match["requeue"] or 0))


@dataclass(slots=True)
class SlurmRunState(RunState):
    """A run of several attempts: the end of one is not the end of the run."""

    links: int = 1
    """How many jobs follow one another at most."""
    attempt: Attempt = NONE
    """The latest one that has written a log."""
    _told_by: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    """Metric and step -> the attempt whose value is kept: a later one does some steps again."""

    def apply(self, event: Event) -> None:
        """Take one event into the state."""
        if isinstance(event, LogChanged):
            self._begin(attempt_of(event.log))
        elif isinstance(event, _OF_ITS_ATTEMPT):
            attempt = attempt_of(event.source.log)
            self._begin(attempt)
            if NONE != attempt < self.attempt:
                return
        elif isinstance(event, MetricRecorded):
            key, attempt = (event.name, event.step), attempt_of(event.source.log)
            if attempt < self._told_by.get(key, NONE):
                return
            self._told_by[key] = attempt
        elif isinstance(event, CheckpointSaving):
            known = self.checkpoints.get(event.step)
            if known is not None and attempt_of(event.source.log) < attempt_of(known.source.log):
                return
        RunState.apply(self, event)

    def _begin(self, attempt: Attempt) -> None:
        """Drop what earlier attempts said of themselves when a later one is seen."""
        if attempt <= self.attempt:
            return
        self.attempt = attempt

        def stands(log: str) -> bool:
            return not NONE != attempt_of(log) < attempt

        self.milestones = {name: item for name, item in self.milestones.items() if stands(item.source.log)}
        self._seen = {key: item for key, item in self._seen.items() if stands(key[0])}
        self._exceptions = [item for item in self._exceptions if stands(item.source.log)]
        if self.current is not None and not stands(self.current.source.log):
            self.current = None
        if self.units is not None and not stands(self.units.source.log):
            self.units = None
        if self.driver_ended is not None and not stands(self.driver_ended.source.log):
            self.driver_ended = None
        if self.launcher_ended is not None and not stands(self.launcher_ended.source.log):
            self.launcher_ended = None
        self._diagnosis = None

    def _judge(self) -> tuple[JobState, str]:
        job, ended = self.job, self.driver_ended or self.launcher_ended
        if job is None or ended is None or job.state.ended:
            if job is not None and ended is not None and job.state is JobState.FAILED:
                # Ended by Slurm's signal: Slurm knows why.
                return (job.state, job.reason) if ended.code in INTERRUPTED else RunState._judge(self)
            return RunState._judge(self)
        if job.state is JobState.QUEUED:
            return self._live_state()
        of_job = attempt_of(ended.source.log)[0]
        if job.job.isdecimal() and NONE[0] != of_job < int(job.job):
            return self._live_state()  # the next job of a chain has begun and has written nothing yet
        # Slurm stops jobs at their time limit, to requeue and to preempt them; and a chain goes on.
        if (ended.code in INTERRUPTED or self.links > 1) and not job.over:
            return job.state, job.reason or "its driver has ended; Slurm does not tell yet how the job ends"
        return RunState._judge(self)
