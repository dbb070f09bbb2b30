"""Status of a run from Slurm's records of its jobs. Pure: records in, one `JobChanged` out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from launcher.clusters.slurm.jobs import JobRecord, base_state, job_change
from launcher.clusters.slurm.queue import Snapshot
from launcher.logs.events import JobChanged, JobState, unanswered
from launcher.runs import Job

SETTLED_S = 120.0
"""Time after which Slurm's silence counts as an answer.

A controller that does not list a job this long after its submission never got it; and of a job that left the
queue this long ago, accounting has no record.
"""
LEFT_WITHOUT_ACCOUNTS = "it left the queue, and this cluster keeps no accounts: its logs show how it ended"
JobRecords = Sequence[tuple[Job, JobRecord | None]]


def job_status(records: JobRecords, snapshot: Snapshot) -> JobChanged:
    """Return the status of the running job, else of the pending one, else of the last that ran."""
    live = [record for _, record in records if record is not None and not record.over]
    live.sort(key=lambda record: base_state(record.state) == "PENDING")
    if live:
        maintenance = snapshot.maintenance.get(live[0].id)
        return _marked_unanswered(job_change(live[0], maintenance), snapshot)
    unlisted = [job for job, record in records if record is None]
    if unlisted:
        return _unlisted(unlisted[-1], snapshot)
    return _ended(records)


def refused(job: Job) -> JobChanged:
    """Return the status of a run whose jobs were all refused."""
    return JobChanged(JobState.FAILED, job.refused, job.submitted.timestamp())


def _marked_unanswered(answer: JobChanged, snapshot: Snapshot) -> JobChanged:
    return unanswered(answer, snapshot.problem) if snapshot.failures else answer


def _ended(records: JobRecords) -> JobChanged:
    ended = [job_change(record) for _, record in records if record is not None]
    if any(job.cancel_requested is not None for job, _ in records):
        last = ended[-1]
        return replace(last, reason="cancelled by you") if last.state is JobState.CANCELLED else last
    # The links that a finished chain did not need were cancelled from within it.
    ran = [answer for answer in ended if answer.state is not JobState.CANCELLED]
    return (ran or ended)[-1]


def _unlisted(job: Job, snapshot: Snapshot) -> JobChanged:
    """Return the status of a job that Slurm does not list."""
    if snapshot.failures:
        return unanswered(None, snapshot.problem)
    if job.id == job.token:
        answered_after_s = min(snapshot.asked, snapshot.sacct_asked) - job.submitted.timestamp()
        if answered_after_s > SETTLED_S and not snapshot.sacct_problem:
            return JobChanged(JobState.FAILED, "the job never reached Slurm; submit it again", over=True)
        return JobChanged(
            JobState.UNKNOWN, "it is not yet clear whether Slurm accepted the job; looking it up by its token"
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
    if not snapshot.accounting:
        return JobChanged(JobState.UNKNOWN, LEFT_WITHOUT_ACCOUNTS, over=True, job=job.id)
    return JobChanged(
        JobState.UNKNOWN,
        "it left the queue; accounting has no record of its end yet",
        over=snapshot.asked - snapshot.missed.get(job.id, snapshot.asked) > SETTLED_S,
        job=job.id,
    )
