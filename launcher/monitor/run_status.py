"""Status of a run: one state and its reason, from what the cluster, the launcher and the logs say.

Pure. Records of a scheduler become a `JobChanged` in `launcher.clusters`; everything else that decides
whether a run lives, and how it ended, is here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from launcher.logs.events import (
    DriverEnded,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
    ProcessSignalled,
)
from launcher.logs.lines import Segment
from launcher.monitor.diagnosis import UNKNOWN, is_exception, is_interrupt
from launcher.monitor.ending import RunProgress, RunStatus, clean_end

# Exit codes of a shell whose child was ended by SIGINT or SIGTERM.
INTERRUPTED = (130, 143)
_DEATHS = {
    132: "SIGILL: built for another processor",
    134: "SIGABRT: it ended itself",
    135: "SIGBUS: mostly /dev/shm or a disk is full",
    137: "SIGKILL: mostly the node's memory was full",
    139: "SIGSEGV: it crashed",
}
"""Exit codes of a shell whose child was ended by a signal, in words."""
_CANCELLED = re.compile(r"CANCELLED AT (?P<time>[\d:T-]+)")
_SIGNALS = {130: "SIGINT", 143: "SIGTERM"}
_SENDERS = "the time limit, scancel, a preemption, or its node"
RECENT_S = 120.0
"""A log written within this time counts as a sign of life, where no cluster can be asked."""
RECENT = "its logs are being written"
SILENT = "its logs are no longer written and do not show an end"
# Printed by Ray's processes about each other when all of them are being stopped.
_CONSEQUENCES_OF_A_STOP = frozenset({"ray-gcs", "ray-register", "ray-node-dead", "sigterm"})
_REASON_LIMIT = 100


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """Evidence of a run's status; any part may be missing."""

    job: JobChanged | None = None
    driver_ended: DriverEnded | None = None
    launcher_ended: LauncherEnded | None = None
    progress: RunProgress = field(default_factory=RunProgress)
    signalled: ProcessSignalled | None = None
    """The driver, or what started it, reported a signal and nothing after it."""
    training: bool = False
    """The driver finished its set-up or began a step."""
    root: FindingSeen | None = None
    """The finding taken for the cause of a failure."""
    traceback: ExceptionSeen | None = None
    """The exception that reached the driver's top level."""
    activity: str = ""
    """What the driver did last, in words."""
    written: float | None = None
    """When the job's own logs were last written."""
    cancelled: str = ""
    """Line with which Slurm says that the job was cancelled."""
    step_failed: bool = False
    """srun reported that a task of a step ended with an error."""
    launcher_raised: bool = False
    """What started the processes, such as torchrun, ended because one of them failed."""

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
    if job is not None and job.state is JobState.COMPLETED:
        status = clean_end(evidence.progress)
        return status if status.reason else RunStatus(status.state, job.reason)
    if job is not None and job.state.ended:
        return RunStatus(job.state, job.reason)
    if evidence.progress.said_completed or evidence.progress.said_saved:
        return clean_end(evidence.progress)
    if traceback is not None and is_interrupt(traceback):
        return RunStatus(JobState.CANCELLED, "interrupted")
    if traceback is not None:
        return _failed(evidence, traceback.message)
    if evidence.signalled is not None and not _is_alive(job):
        return _signalled(evidence, evidence.signalled.signal)
    if job is not None and job.over:
        return _failed(evidence, job.reason)
    return _live_status(evidence)


def _is_alive(job: JobChanged | None) -> bool:
    """Return True if a cluster says that the job lives; that its logs are new does not say so."""
    return job is not None and job.state is not JobState.UNKNOWN and not job.over and job.reason != RECENT


def _signalled(evidence: RunEvidence, signal: str) -> RunStatus:
    """Return the status of a run that a signal ended, of which no scheduler tells."""
    root = evidence.root
    if root is not None and root.tier < 3 and not _follows_from_a_stop(root):
        return RunStatus(JobState.FAILED, _summary(root))
    return RunStatus(JobState.CANCELLED, _unexplained_signal(signal, evidence.cancelled))


def _follows_from_a_stop(root: FindingSeen) -> bool:
    return root.id in _CONSEQUENCES_OF_A_STOP or is_exception(root)


def _unexplained_signal(signal: str, cancelled: str) -> str:
    if (match := _CANCELLED.search(cancelled)) is not None:
        return f"cancelled at {match['time'].replace('T', ' ')} (scancel)"
    if signal != "SIGTERM":
        return f"stopped by {signal}"
    return f"stopped by {signal}, and no log says who sent it: {_SENDERS} may have"


def run_status_of_attempts(evidence: RunEvidence, *, links: int, ended_job: int) -> RunStatus:
    """Return the status of a run of several attempts, in which the end of one is not the end of the run.

    `links`: jobs that follow one another at most; `ended_job`: id of the job whose driver or launcher ended,
    0 where unknown.
    """
    job, ended = evidence.job, evidence.ended
    if job is not None and _is_outdated(job, evidence, ended_job):
        job = replace(job, state=JobState.RUNNING, reason="", waits_for="", stuck=False, fix="")
        evidence = replace(evidence, job=job)
    if job is not None and evidence.progress.said_saved and _goes_on(job, links):
        return RunStatus(job.state, job.reason or "saved before its time limit; the next job continues")
    if job is None or ended is None:
        return run_status(evidence)
    if job.state.ended and job.job.isdecimal() and 0 != ended_job < int(job.job):
        # The driver of an earlier job ended; the last one had none.
        return run_status(replace(evidence, driver_ended=None, launcher_ended=None))
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


def _is_outdated(job: JobChanged, evidence: RunEvidence, ended_job: int) -> bool:
    """Return True if an answer that the job waits is older than what that job itself wrote.

    A job that waits again, after a requeue, is answered after its last line.
    """
    if job.state is not JobState.QUEUED or job.asked is None:
        return False
    ended = evidence.ended
    of_this_job = ended is not None and job.job == str(ended_job)
    times = (evidence.written, ended.time if ended is not None and of_this_job else None)
    return any(time is not None and time > job.asked for time in times)


def _goes_on(job: JobChanged, links: int) -> bool:
    """Return True if a job that has saved and stopped is followed by another one of its run."""
    return job.state is JobState.QUEUED or (links > 1 and not job.state.ended and not job.over)


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
        return JobChanged(JobState.RUNNING, RECENT)
    return JobChanged(JobState.UNKNOWN, SILENT)


def _status_of_exit_code(evidence: RunEvidence, code: int) -> RunStatus:
    if code == 0:
        return clean_end(evidence.progress)
    root = evidence.root
    if code in INTERRUPTED and (root is None or _follows_from_a_stop(root)):
        return RunStatus(JobState.CANCELLED, _unexplained_signal(_SIGNALS[code], evidence.cancelled))
    process = "driver" if evidence.driver_ended is not None else "launcher"
    death = f" ({_DEATHS[code]})" if code in _DEATHS else ""
    return _failed(evidence, f"the {process} exited with {code}{death}")


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
    shows_end = evidence.launcher_raised or (evidence.step_failed and job.reason == SILENT)
    if job.state is JobState.UNKNOWN and root is not None and (root.tier < 3 or shows_end):
        return RunStatus(JobState.FAILED, _summary(root))
    progress = evidence.progress
    if job.state is JobState.UNKNOWN and root is None and progress.used_epochs and progress.bounded_by_data:
        return clean_end(progress)  # the end of the epochs prints no line
    if job.state is JobState.UNKNOWN and job.reason == SILENT and evidence.activity:
        return RunStatus(job.state, f"{job.reason}; the last thing was {evidence.activity}")
    return RunStatus(job.state, job.reason)


def _summary(root: FindingSeen) -> str:
    """Return a cause on one line: its title, and the beginning of its line in the log."""
    text = Segment(root.text).body.strip()
    if not is_exception(root):
        text = text.partition(". ")[0]
    text = text if len(text) <= _REASON_LIMIT else f"{text[: _REASON_LIMIT - 1]}…"
    if root.id == UNKNOWN:
        return text
    return root.title if root.title in text else f"{root.title}: {text}"
