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
_NOT_RECORDED = "it left the queue; accounting has no record of its end yet"
_NEVER_RECORDED = "it left the queue without a record in accounting, and its logs do not show an end"
JobRecords = Sequence[tuple[Job, JobRecord | None]]


def job_status(records: JobRecords, snapshot: Snapshot) -> JobChanged:
    """Return the status of the running job, else of the pending one, else of the last that ran."""
    status = _job_status(records, snapshot)
    return replace(status, jobs=_attempts(records, status.job), asked=snapshot.asked)


def _job_status(records: JobRecords, snapshot: Snapshot) -> JobChanged:
    live = [record for _, record in records if record is not None and not record.over]
    live.sort(key=lambda record: base_state(record.state) == "PENDING")
    if live:
        maintenance = snapshot.maintenance.get(live[0].id)
        return _marked_unanswered(job_change(live[0], maintenance), snapshot)
    last, record = _last_attempt(records)
    return _unlisted(last, snapshot) if record is None else _ended(last, record, records)


def _attempts(records: JobRecords, present: str) -> tuple[JobChanged, ...]:
    """Return the status of each job that ran, and of the present one, in the order of their submission.

    Links of a chain that wait, or that were cancelled before they began, are no attempts.
    """
    return tuple(
        _ended(job, record, records) if record.over else job_change(record)
        for job, record in records
        if record is not None and (record.nodes or record.id == present)
    )


def refused(job: Job) -> JobChanged:
    """Return the status of a run whose jobs were all refused."""
    return JobChanged(JobState.FAILED, job.refused, job.submitted.timestamp())


def _marked_unanswered(answer: JobChanged, snapshot: Snapshot) -> JobChanged:
    return unanswered(answer, snapshot.problem) if snapshot.failures else answer


def _last_attempt(records: JobRecords) -> tuple[Job, JobRecord | None]:
    """Return the last job that is an attempt of the run."""
    if any(job.cancel_requested is not None for job, _ in records):
        return records[-1]
    attempts = [item for index, item in enumerate(records) if not _is_unneeded(item, records[:index])]
    return (attempts or records)[-1]


def _is_unneeded(item: tuple[Job, JobRecord | None], earlier: JobRecords) -> bool:
    """Return True for a link of a chain that never ran: one before it ended the chain, and cancelled it."""
    job, record = item
    if record is None or record.nodes or not _is_cancelled(record):
        return False
    before = [other for _, other in earlier if other is None or not _is_cancelled(other)]
    if not before:
        return False
    ended = before[-1].ended if before[-1] is not None else None
    submitted = record.submitted if record.submitted is not None else job.submitted.timestamp()
    return ended is None or submitted <= ended


def _is_cancelled(record: JobRecord) -> bool:
    return job_change(record).state is JobState.CANCELLED


def _ended(job: Job, record: JobRecord, records: JobRecords) -> JobChanged:
    change = job_change(record)
    requests = [other.cancel_requested for other, _ in records if other.cancel_requested is not None]
    by_user = any(request >= job.submitted for request in requests)
    return replace(change, reason="cancelled by you") if by_user and _is_cancelled(record) else change


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
    over = snapshot.asked - snapshot.missed.get(job.id, snapshot.asked) > SETTLED_S
    return JobChanged(JobState.UNKNOWN, _NEVER_RECORDED if over else _NOT_RECORDED, over=over, job=job.id)
