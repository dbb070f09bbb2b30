"""Changes of a run's `jobs.json`: read, changed and written under one lock, whoever else changes it.

The lock is that of recipes (`Transport.change`): it works on shared file systems and over SSH, ends with its
process, and names its holder.
A request to stop a run is never overwritten; a submission asks for it before each of its steps.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from launcher.errors import LaunchError, TransportError
from launcher.runs import JOBS, Job, Jobs, Run, jobs_of, read_jobs
from launcher.stored import dump
from launcher.transports.base import Transport
from recipes.locks import WAIT_S

DEADLINE_S = WAIT_S + 45.0
"""Longest change of a record: another holder's lock, and three calls of the file system of 15 s each."""


class StopRequestedError(LaunchError):
    """A submission that somebody has stopped with `cancel`."""


def refreshed(transport: Transport, run: Run) -> Run:
    """Return the run with its jobs as they are recorded now.

    Raises:
        InputError: the record is damaged.
    """
    stored = read_jobs(transport, run.directory)
    return replace(run, jobs=stored.jobs, cancel_requested=stored.cancel_requested)


def record_job(transport: Transport, run: Run, job: Job) -> Run:
    """Write a job into its run, in place of an earlier record of the same job; returns the run with it.

    What others recorded meanwhile stays: further jobs, a request to stop, a number that became clear.
    """
    return _change(transport, run, lambda stored: _with_job(stored, job))


def record_intent(transport: Transport, run: Run, job: Job) -> Run:
    """Record a job that is about to be submitted, unless the run was stopped since `run` was read.

    Raises:
        StopRequestedError: it was.
    """

    def add(stored: Jobs) -> Jobs:
        if is_stopped_since(stored.cancel_requested, run):
            raise StopRequestedError(
                f"not submitted: {run.spec.id} was cancelled meanwhile",
                where=Path(run.directory),
                fix="Jobs submitted before that are stopped by `cancel`; `resume` continues the run.",
            )
        return _with_job(stored, job)

    return _change(transport, run, add)


def is_stopped_since(requested: datetime | None, before: Run) -> bool:
    """Return whether a request to stop is another one than that which a run had before."""
    return requested is not None and requested != before.cancel_requested


def request_stop(transport: Transport, run: Run) -> Run:
    """Record that the user wants the run stopped: its submissions submit no further job.

    Two requests never have the same time, so that each is recognised as a new one.
    """

    def request(stored: Jobs) -> Jobs:
        now, last = datetime.now(UTC), stored.cancel_requested
        if last is not None and now <= last:
            now = last + timedelta(microseconds=1)
        return stored.model_copy(update={"cancel_requested": now})

    return _change(transport, run, request)


def _change(transport: Transport, run: Run, change: Callable[[Jobs], Jobs]) -> Run:
    path = Path(run.directory, JOBS)

    def read_change_write() -> Jobs:
        changed: list[Jobs] = []

        def change_bytes(data: bytes | None) -> bytes:
            changed.append(change(jobs_of(data, run.directory)))
            return dump(changed[-1])

        transport.change(str(path), change_bytes)
        return changed[-1]

    stored = _within_deadline(read_change_write, path)
    return replace(run, jobs=stored.jobs, cancel_requested=stored.cancel_requested)


def _within_deadline(action: Callable[[], Jobs], path: Path) -> Jobs:
    """Return what an action returns; on a thread, since the lock's file system may hang.

    Raises:
        ExplainedError: as the action does.
        TransportError: it does not end in time.
    """
    outcome: queue.SimpleQueue[Jobs | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            outcome.put(action())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.put(error)

    threading.Thread(target=work, name="jobs", daemon=True).start()
    try:
        result = outcome.get(timeout=DEADLINE_S)
    except queue.Empty:
        raise TransportError(
            f"{path}: no answer from the file system for {DEADLINE_S:.0f} s",
            fix="Wait until the file system responds again; nothing is lost.",
        ) from None
    if isinstance(result, BaseException):
        raise result
    return result


def _with_job(stored: Jobs, job: Job) -> Jobs:
    index = next((index for index, item in enumerate(stored.jobs) if _is_same(item, job)), len(stored.jobs))
    earlier = stored.jobs[index] if index < len(stored.jobs) else None
    merged = job if earlier is None else _merged(earlier, job)
    others = [item for item in stored.jobs if not _is_same(item, job)]
    return stored.model_copy(update={"jobs": (*others[:index], merged, *others[index:])})


def _is_same(one: Job, other: Job) -> bool:
    return one.id == other.id or bool(other.token and one.token == other.token)


def _merged(earlier: Job, job: Job) -> Job:
    """Return the newer record of a job with what only the earlier one knows."""
    is_intent = bool(job.token) and job.id == job.token
    number_is_clear = is_intent and earlier.id != earlier.token
    return job.model_copy(
        update={
            "id": earlier.id if number_is_clear else job.id,
            "refused": "" if number_is_clear else job.refused,
            "cancel_requested": job.cancel_requested or earlier.cancel_requested,
        }
    )
