"""Jobs of the user beside the runs: those of a run, of another program, and remembered ones."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from launcher.base_directories import state_root
from launcher.clusters.job_list import JobListing, ListedJob
from launcher.logs.job_state import JobState
from launcher.overview.rows import RunRow, job_row, with_job
from launcher.run_reference import is_job_id
from launcher.storage.private_files import read_private, write_private
from launcher.text import clean

_FILE = "watched-jobs.json"
_LIMIT = 200
_LATEST = 1e11
"""Seconds since the epoch of no real job: the year 5138."""


def with_jobs(
    runs: Sequence[RunRow], listing: JobListing | None, remembered: Iterable[RunRow], host: str = ""
) -> tuple[tuple[RunRow, ...], tuple[RunRow, ...]]:
    """Return the runs with what the scheduler knows of them, and the rows of the jobs that are no run's."""
    own = {job for row in runs for job in row.jobs}
    kept = tuple(row for row in remembered if row.job not in own)
    if listing is None:
        return tuple(runs), kept
    by_id = {job.id: job for job in listing.jobs}
    as_of = listing.asked if listing.problem and listing.asked else None
    known = tuple(_run_row(row, by_id.get(row.job), as_of) if row.live and row.job else row for row in runs)
    rows = {row.job: row for row in job_rows(listing, host) if row.job not in own}
    for row in kept:
        rows.setdefault(row.job, row)
    return known, tuple(rows.values())


@lru_cache(maxsize=4)
def job_rows(listing: JobListing, host: str = "") -> tuple[RunRow, ...]:
    """Return the rows of all jobs of a listing; made once for each answer of the scheduler."""
    as_of = listing.asked if listing.problem and listing.asked else None
    rows = (replace(job_row(job), host=host) if host else job_row(job) for job in listing.jobs)
    return tuple(replace(row, as_of=as_of) if row.live and as_of is not None else row for row in rows)


def _run_row(row: RunRow, job: ListedJob | None, as_of: float | None) -> RunRow:
    if job is not None:
        row = with_job(row, job)
    return replace(row, as_of=as_of) if row.live and row.as_of != as_of else row


# ------------------------------------------------------------ remembered jobs


def remembered_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of the jobs of other programs that were opened."""
    return state_root(environment) / _FILE


def remembered_jobs(file: Path) -> tuple[RunRow, ...]:
    """Return the jobs that were opened, as they were then; a job that had not ended is unknown."""
    try:
        data = json.loads(read_private(file))
    except (OSError, ValueError, RecursionError):
        return ()
    items = data if isinstance(data, list) else []
    return tuple(row for item in items[:_LIMIT] if isinstance(item, dict) and (row := _remembered(item)))


def _remembered(item: Mapping[str, object]) -> RunRow | None:
    identity, name, state = (item.get(key) for key in ("id", "name", "state"))
    if not isinstance(identity, str) or not is_job_id(identity) or not isinstance(name, str):
        return None
    started, ended = (
        float(value) if isinstance(value := item.get(key), int | float) and 0 <= value < _LATEST else None
        for key in ("started", "ended")
    )
    try:
        known = JobState(str(state))
    except ValueError:
        known = JobState.UNKNOWN
    over = known.ended
    reason = item.get("reason")
    return RunRow(
        identity,
        clean(name),
        "",
        state=known if over else JobState.UNKNOWN,
        reason=clean(str(reason)) if over and reason else "" if over else "it left the queue",
        started=started,
        ended=ended,
        detail="job of another program, opened before",
        job=identity,
    )


def remember(file: Path, row: RunRow) -> None:
    """Remember a job that was opened; the latest first. Without effect where the file cannot be written."""
    others = [item for item in remembered_jobs(file) if item.job != row.job]
    data = [
        {
            "id": item.job,
            "name": item.name,
            "state": item.state.value if item.state is not None else "",
            "reason": item.reason,
            "started": item.started,
            "ended": item.ended,
        }
        for item in (row, *others)
    ]
    with suppress(OSError):
        write_private(file, json.dumps(data[:_LIMIT]).encode())


def forget(file: Path, identity: str) -> None:
    """Forget a job."""
    rows = remembered_jobs(file)
    kept = [row for row in rows if row.job != identity]
    if len(kept) < len(rows):
        with suppress(OSError):
            file.unlink()
        for row in reversed(kept):
            remember(file, row)
