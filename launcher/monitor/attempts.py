"""State of a run on Slurm: a chain of jobs, each of which may have been requeued.

Each job, and each requeue of one, is an attempt with a log directory of its own. An attempt's
milestones, failures and end count for the run only until a later attempt begins; losses and checkpoints
accumulate. Each attempt also has a state of its own, so that all of them can be listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from launcher.logs.events import (
    CheckpointSaving,
    DriverEnded,
    Event,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
    LogChanged,
    LogRestarted,
    MetricRecorded,
    MilestoneReached,
    PhaseBegan,
    PlanSeen,
    ProcessSignalled,
    Recovered,
    StartRetried,
    StepBegan,
    StoppedToSave,
    UnitsOnline,
)
from launcher.monitor.ending import AttemptStatus, RunProgress, RunStatus
from launcher.monitor.run_status import run_status_of_attempts
from launcher.monitor.state import RunState

_ATTEMPT = re.compile(r"(?:^|/)(?:slurm-(?P<output>\d+)\.out$|(?P<job>\d+)(?:-(?P<requeue>\d+))?-logs/)")
Attempt = tuple[int, int]
"""Job id and number of requeues before the attempt."""
NONE: Attempt = (0, 0)
_EVENTS_OF_AN_ATTEMPT = (
    MilestoneReached, StepBegan, PhaseBegan, UnitsOnline, DriverEnded, LauncherEnded, FindingSeen,
    ExceptionSeen, Recovered, StartRetried, StoppedToSave, ProcessSignalled,
)  # fmt: skip
_LATEST = ("current", "phase", "units", "driver_ended", "launcher_ended", "stopped_to_save", "signalled")
"""Fields of a state that hold an attempt's latest event of a kind."""
_EVENTS_KEPT_APART = (*_EVENTS_OF_AN_ATTEMPT, PlanSeen, MetricRecorded, LogRestarted)


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

    _parts: dict[Attempt, RunState] = field(default_factory=dict)
    """Attempt -> its own state."""

    def apply(self, event: Event) -> None:
        """Apply an event to the state, unless it belongs to an earlier attempt."""
        if isinstance(event, _EVENTS_KEPT_APART):
            self._apply_apart(event)
        if isinstance(event, JobChanged):
            self._begin_job(event)
        elif isinstance(event, LogChanged):
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

    def _apply_apart(self, event: Event) -> None:
        """Apply an event of a log to the state of the log's attempt alone."""
        attempt = attempt_of(event.source.log)  # type: ignore[union-attr] # those kept apart have a source
        if attempt == NONE:
            return
        if attempt not in self._parts:
            self._parts[attempt] = RunState(plan_max_steps=self.plan_max_steps, resume_hint=self.resume_hint)
        self._parts[attempt].apply(event)

    def _begin_job(self, job: JobChanged) -> None:
        """Begin the attempt of a job that got its nodes or ended, before it has written a log."""
        if job.job.isdecimal() and (job.state.ended or job.state in (JobState.STARTING, JobState.RUNNING)):
            self._begin((int(job.job), 0))

    @property
    def attempts(self) -> tuple[AttemptStatus, ...]:
        """All attempts in order, each with its own end; the last one decides on the run."""
        jobs = {int(job.job): job for job in self._listed_jobs() if job.job.isdecimal()}
        keys = sorted({*self._parts, *((number, 0) for number in jobs)})
        last_of_job = dict(keys)
        return tuple(
            self._attempt_status(
                key, jobs.get(key[0]) if last_of_job[key[0]] == key[1] else None, is_last=key == keys[-1]
            )
            for key in keys
        )

    def _listed_jobs(self) -> tuple[JobChanged, ...]:
        if self.job is None:
            return ()
        return self.job.jobs or (self.job,)

    def _attempt_status(self, key: Attempt, job: JobChanged | None, *, is_last: bool) -> AttemptStatus:
        part = self._parts.get(key, RunState())
        if is_last:
            status = self.status
        elif job is None and (part.driver_ended or part.launcher_ended) is None:
            status = RunStatus(JobState.UNKNOWN, "requeued")
        else:
            evidence = replace(part._evidence(), job=job)
            status = run_status_of_attempts(evidence, links=1, ended_job=key[0])
        ends = (part.launcher_ended, part.driver_ended, job if job is not None and job.state.ended else None)
        ended = next((end.time for end in ends if end is not None and end.time is not None), None)
        times = [item.time for item in part.milestones.values() if item.time is not None]
        began = job.began if job is not None and job.began is not None else min(times, default=None)
        return AttemptStatus(
            str(key[0]),
            key[1],
            *status,
            part.step,
            part.resumed,
            began,
            ended,
        )

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
        self._evidence_of_logs.keep_logs(is_current)
        for name in _LATEST:
            event = getattr(self, name)
            if event is not None and not is_current(event.source.log):
                setattr(self, name, None)
        self._diagnosis = None

    def _progress(self) -> RunProgress:
        """Return the progress of the run; where it is in its epochs is told by its latest attempt alone."""
        progress, part = RunState._progress(self), self._parts.get(self.attempt)
        if part is None:
            return progress
        return replace(
            progress,
            epoch=part.epoch,
            epoch_step=part.epoch_step,
            steps_per_epoch=part.steps_per_epoch,
            resumed=part.resumed,
        )

    @property
    def status(self) -> RunStatus:
        """State of the run with its reason."""
        evidence = replace(self._evidence(), written=self._written())
        ended_job = attempt_of(evidence.ended.source.log)[0] if evidence.ended is not None else 0
        return run_status_of_attempts(evidence, links=self.links, ended_job=ended_job)

    def _written(self) -> float | None:
        """Return when the logs of the present job were last written; None where it has none."""
        number = self.job.job if self.job is not None else ""
        times = (log.time for log in self.logs.values() if str(attempt_of(log.log)[0]) == number)
        return max((time for time in times if time is not None), default=None)
