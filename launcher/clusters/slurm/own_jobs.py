"""The user's jobs as a list, from the answers that the followed runs share."""

from __future__ import annotations

from dataclasses import replace

from launcher.clusters.job_list import JobListing, ListedJob
from launcher.clusters.slurm.jobs import JobRecord, job_change
from launcher.clusters.slurm.queue import Queue, Snapshot
from launcher.logs.events import JobState


def own_jobs(queue: Queue, *, refresh: bool = False) -> JobListing:
    """Return all jobs in the queue, and those of the last day by accounting; `refresh`: ask squeue now."""
    snapshot = queue.ask() if refresh else queue.latest()
    if snapshot.failures == 0:
        snapshot = queue.ask_recent(snapshot)
    return listing_of(snapshot)


def listing_of(snapshot: Snapshot) -> JobListing:
    """Return the jobs of Slurm's last answers; a job that both list is the queue's unless it is over."""
    records = {**snapshot.recent, **{name: job for name, job in snapshot.jobs.items() if job.state}}
    for name, job in snapshot.jobs.items():
        accounted = snapshot.recent.get(name)
        if job.over and accounted is not None and accounted.over:
            records[name] = accounted
    for name, job in snapshot.ended.items():
        if name in records and job.over and not records[name].exit_code:
            records[name] = _with_exit_code(records[name], job)
    jobs = (_listed(job, gone=job.id not in snapshot.jobs) for job in records.values())
    return JobListing(
        tuple(sorted(jobs, key=lambda job: -(job.submitted or 0.0))),
        snapshot.asked,
        snapshot.problem if snapshot.failures else "",
        snapshot.sacct_problem,
    )


def _with_exit_code(listed: JobRecord, accounted: JobRecord) -> JobRecord:
    return replace(listed, state=accounted.state, ended=accounted.ended, exit_code=accounted.exit_code)


def _listed(job: JobRecord, *, gone: bool) -> ListedJob:
    status = job_change(job)
    if gone and not job.over:  # accounting's last answer is older than the queue's
        status = replace(status, state=JobState.UNKNOWN, reason="it left the queue", over=False)
    return ListedJob(
        job.id,
        job.name,
        status,
        job.partition,
        job.node_count,
        job.submitted,
        job.started,
        job.ended,
        job.comment,
    )
