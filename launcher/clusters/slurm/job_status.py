"""What Slurm's answers mean for a run of one or more jobs. Pure: records in, one `JobChanged` out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from launcher.clusters.slurm.jobs import JobRecord, base_state, meaning
from launcher.clusters.slurm.queue import Snapshot
from launcher.logs.events import JobChanged, JobState, unanswered
from launcher.runs import Job

SETTLED_S = 120.0
"""A controller that answers so long after a submission without listing it never got it; and a job that left
the queue so long ago will not be told of by accounting."""
Told = Sequence[tuple[Job, JobRecord | None]]


def job_status(told: Told, snapshot: Snapshot) -> JobChanged:
    """Judge a run by the job that runs, else by the one that waits, else by the last that ran."""
    live = [record for _, record in told if record is not None and not record.over]
    live.sort(key=lambda record: base_state(record.state) == "PENDING")
    if live:
        return _as_told(meaning(live[0]), snapshot)
    unknown = [job for job, record in told if record is None]
    if unknown:
        return _unknown(unknown[-1], snapshot)
    return _ended(told)


def refused(job: Job) -> JobChanged:
    """Judge a run whose jobs were all refused."""
    return JobChanged(JobState.FAILED, job.refused, job.submitted.timestamp())


def _as_told(answer: JobChanged, snapshot: Snapshot) -> JobChanged:
    return unanswered(answer, snapshot.problem) if snapshot.failures else answer


def _ended(told: Told) -> JobChanged:
    ended = [meaning(record) for _, record in told if record is not None]
    if any(job.cancel_requested is not None for job, _ in told):
        last = ended[-1]
        return replace(last, reason="cancelled by you") if last.state is JobState.CANCELLED else last
    # The links that a finished chain did not need were cancelled from within it.
    ran = [answer for answer in ended if answer.state is not JobState.CANCELLED]
    return (ran or ended)[-1]


def _unknown(job: Job, snapshot: Snapshot) -> JobChanged:
    """Judge a job that Slurm does not list."""
    if snapshot.failures:
        return unanswered(None, snapshot.problem)
    if job.id == job.token:
        asked = min(snapshot.asked, snapshot.sacct_asked) - job.submitted.timestamp()
        if asked > SETTLED_S and not snapshot.sacct_problem:
            return JobChanged(JobState.FAILED, "it never reached Slurm; submit again", over=True)
        return JobChanged(
            JobState.UNKNOWN, "it is not clear yet whether Slurm took it; its token is looked up"
        )
    if snapshot.asked < job.submitted.timestamp():
        return JobChanged(JobState.QUEUED, "just submitted", job=job.id)
    if snapshot.sacct_problem:
        return JobChanged(
            JobState.UNKNOWN,
            f"it left the queue; accounting gives no answer: {snapshot.sacct_problem}",
            job=job.id,
            unanswered=snapshot.sacct_problem,
        )
    return JobChanged(
        JobState.UNKNOWN,
        "it left the queue; accounting does not tell yet how it ended",
        over=snapshot.asked - snapshot.missed.get(job.id, snapshot.asked) > SETTLED_S,
        job=job.id,
    )
