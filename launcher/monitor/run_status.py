"""Status of a run: one state and its reason, from what the cluster, the launcher and the logs say.

Pure. Records of a scheduler become a `JobChanged` in `launcher.clusters`; everything else that decides
whether a run lives, and how it ended, is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from launcher.logs.events import (
    DriverEnded,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
)
from launcher.logs.lines import Segment
from launcher.monitor.diagnosis import UNKNOWN, is_interrupt

# Exit codes of a shell whose child was ended by SIGINT or SIGTERM.
INTERRUPTED = (130, 143)
RECENT_S = 120.0
"""A log written within this time counts as a sign of life, where no cluster can be asked."""
# Printed by Ray's processes about each other when all of them are being stopped.
_CONSEQUENCES_OF_A_STOP = frozenset({"ray-gcs", "ray-register", "ray-node-dead", "sigterm", UNKNOWN})
_REASON_LIMIT = 100


class RunStatus(NamedTuple):
    """State of a run, and its reason in words; empty where there is nothing to add."""

    state: JobState
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """Evidence of a run's status; any part may be missing."""

    job: JobChanged | None = None
    driver_ended: DriverEnded | None = None
    launcher_ended: LauncherEnded | None = None
    completed: bool = False
    """The driver printed that its training is complete."""
    training: bool = False
    """The driver finished its set-up or began a step."""
    root: FindingSeen | None = None
    """The finding taken for the cause of a failure."""
    traceback: ExceptionSeen | None = None
    """The exception that reached the driver's top level."""

    @property
    def ended(self) -> DriverEnded | LauncherEnded | None:
        """Report of the end: the driver's, else the launcher's."""
        return self.driver_ended or self.launcher_ended


def run_status(evidence: RunEvidence) -> RunStatus:
    """Return the status of a run of one attempt.

    An exit code decides, then the cluster's end of the job, then the driver's log; a cancelled job is
    cancelled unless its driver had finished.
    """
    job, ended, traceback = evidence.job, evidence.ended, evidence.traceback
    if job is not None and job.state is JobState.CANCELLED and not (ended and ended.code == 0):
        return RunStatus(job.state, job.reason)
    if ended is not None:
        return _status_of_exit_code(evidence, ended.code)
    if job is not None and job.state is JobState.FAILED:
        return _failed(evidence, job.reason)
    if job is not None and job.state.ended:
        return RunStatus(job.state, job.reason)
    if evidence.completed:
        return RunStatus(JobState.COMPLETED)
    if traceback is not None and is_interrupt(traceback):
        return RunStatus(JobState.CANCELLED, "interrupted")
    if traceback is not None:
        return _failed(evidence, traceback.message)
    if job is not None and job.over:
        return _failed(evidence, job.reason)
    return _live_status(evidence)


def run_status_of_attempts(evidence: RunEvidence, *, links: int, ended_job: int) -> RunStatus:
    """Return the status of a run of several attempts, in which the end of one is not the end of the run.

    `links`: jobs that follow one another at most; `ended_job`: id of the job whose driver or launcher ended,
    0 where unknown.
    """
    job, ended = evidence.job, evidence.ended
    if job is None or ended is None:
        return run_status(evidence)
    if job.state.ended:
        if job.state is JobState.FAILED and ended.code in INTERRUPTED:  # by Slurm's signal: Slurm knows why
            return RunStatus(job.state, job.reason)
        return run_status(evidence)
    if job.state is JobState.QUEUED:
        return _live_status(evidence)
    if job.job.isdecimal() and 0 != ended_job < int(job.job):
        return _live_status(evidence)  # the next job of a chain has begun and has written nothing yet
    # Slurm stops jobs at their time limit, to requeue and to preempt them; and a chain goes on.
    if (ended.code in INTERRUPTED or links > 1) and not job.over:
        return RunStatus(
            job.state, job.reason or "its driver has ended; Slurm has not reported the job's end"
        )
    return run_status(evidence)


def is_settled(status: RunStatus, job: JobChanged | None) -> bool:
    """Return True if a run has ended and its status is final.

    A failure is final only when the scheduler has reported the job's end: it may know the cause.
    """
    if status.state is not JobState.FAILED or job is None or not job.word:
        return status.state.ended
    return job.state.ended or job.over


def job_status_by_log_age(newest_mtime: float | None, now: float) -> JobChanged:
    """Return the job status that the logs' age suggests; `newest_mtime`: None where there are no logs."""
    if newest_mtime is None:
        return JobChanged(JobState.UNKNOWN, "no logs here yet")
    if now - newest_mtime <= RECENT_S:
        return JobChanged(JobState.RUNNING, "its logs are being written")
    return JobChanged(JobState.UNKNOWN, "its logs are no longer written and do not show an end")


def _status_of_exit_code(evidence: RunEvidence, code: int) -> RunStatus:
    if code == 0:
        return RunStatus(JobState.COMPLETED)
    root = evidence.root
    if code in INTERRUPTED and (root is None or root.id in _CONSEQUENCES_OF_A_STOP):
        return RunStatus(JobState.CANCELLED, "stopped by a signal")
    process = "driver" if evidence.driver_ended is not None else "launcher"
    return _failed(evidence, f"the {process} exited with {code}")


def _failed(evidence: RunEvidence, otherwise: str) -> RunStatus:
    if evidence.root is not None:
        return RunStatus(JobState.FAILED, _summary(evidence.root))
    message = evidence.traceback.message if evidence.traceback is not None else otherwise
    return RunStatus(JobState.FAILED, message)


def _live_status(evidence: RunEvidence) -> RunStatus:
    job, root = evidence.job, evidence.root
    if job is None:
        job = JobChanged(JobState.UNKNOWN, "no information on whether it still runs")
    if job.state in (JobState.STARTING, JobState.RUNNING):
        return RunStatus(JobState.RUNNING if evidence.training else JobState.STARTING, job.reason)
    if job.state is JobState.UNKNOWN and root is not None and root.tier < 3:
        return RunStatus(JobState.FAILED, _summary(root))
    return RunStatus(job.state, job.reason)


def _summary(root: FindingSeen) -> str:
    """Return a cause on one line: its title, and the beginning of its line in the log."""
    text = Segment(root.text).body.strip()
    if root.id != UNKNOWN:
        text = text.partition(". ")[0]
    text = text if len(text) <= _REASON_LIMIT else f"{text[: _REASON_LIMIT - 1]}…"
    if root.id == UNKNOWN:
        return text
    return root.title if root.title in text else f"{root.title}: {text}"
