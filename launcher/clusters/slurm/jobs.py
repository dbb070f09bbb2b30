"""Jobs as squeue and sacct list them, and the meaning of their states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from launcher.clusters.slurm.maintenance import Maintenance, explain_maintenance
from launcher.clusters.slurm.parse import Table, read_table
from launcher.clusters.slurm.reasons import explain_reason, for_job, is_maintenance
from launcher.logs.events import JobChanged, JobState
from launcher.text import clean

# Free text last: it may hold the separator. Times come in seconds since the epoch (SLURM_TIME_FORMAT).
# Partition, number of nodes and name follow the comment after an empty field; lists of jobs show them.
QUEUE_FORMAT = "%i|%T|%V|%S|%e|%N|%r|%k||%P|%D|%j"
QUEUE_COLUMNS = ("JobID", "State", "Submit", "Start", "End", "NodeList", "Reason", "Comment")
SACCT_COLUMNS = ("JobID", "State", "Submit", "Start", "End", "NodeList", "ExitCode", "SubmitLine")
SACCT_FORMAT = ",".join(SACCT_COLUMNS)
RECENT_COLUMNS = (
    "JobID", "State", "Submit", "Start", "End", "NodeList", "ExitCode", "Partition", "NNodes", "JobName",
)  # fmt: skip
_DETAILS = re.compile(r"(?P<comment>.*)\|\|(?P<partition>[^|]*)\|(?P<nodes>\d+)\|(?P<name>.*)")

_ENDED = {
    "COMPLETED": (JobState.COMPLETED, ""),
    "CANCELLED": (JobState.CANCELLED, "cancelled"),
    "FAILED": (JobState.FAILED, "the job failed"),
    "TIMEOUT": (JobState.FAILED, "the time limit was reached"),
    "OUT_OF_MEMORY": (JobState.FAILED, "a node ran out of memory (host memory, not GPU memory)"),
    "NODE_FAIL": (JobState.FAILED, "a node failed"),
    "PREEMPTED": (JobState.FAILED, "preempted by a job of higher priority"),
    "DEADLINE": (JobState.FAILED, "its deadline passed"),
    "BOOT_FAIL": (JobState.FAILED, "a node did not boot"),
    "REVOKED": (JobState.CANCELLED, "taken over by another cluster"),
    "LAUNCH_FAILED": (JobState.FAILED, "Slurm could not launch it"),
}
_LIVE = {
    "PENDING": (JobState.QUEUED, ""),
    "CONFIGURING": (JobState.STARTING, "its nodes are being prepared"),
    "RUNNING": (JobState.RUNNING, ""),
    "COMPLETING": (JobState.RUNNING, "ending: its processes are being stopped"),
    "STAGE_OUT": (JobState.RUNNING, "ending: files are being staged out"),
    "SIGNALING": (JobState.RUNNING, "being signalled"),
    "STOPPED": (JobState.RUNNING, "stopped by a signal"),
    "SUSPENDED": (JobState.RUNNING, "suspended"),
    "RESIZING": (JobState.RUNNING, "changing its size"),
    "REQUEUED": (JobState.QUEUED, "requeued"),
    "REQUEUE_FED": (JobState.QUEUED, "requeued"),
    "REQUEUE_HOLD": (JobState.QUEUED, ""),
    "RESV_DEL_HOLD": (JobState.QUEUED, ""),
    "SPECIAL_EXIT": (JobState.QUEUED, ""),
}
_REASON_SHOWN_CHARS = 60
"""Longest reason of Slurm that is shown beside its explanation."""
# Slurm gives its time limit, scancel, a preemption and a lost node states of their own.
_SIGTERM_REASON = (
    "ended by SIGTERM; Slurm records no time limit, cancel, preemption or lost node, "
    "so that `scancel --signal` or a process on its node may have sent it"
)
_HELD_STATES = {
    "REQUEUE_HOLD": "job requeued in held state",
    "RESV_DEL_HOLD": "ReservationDeleted",
    "SPECIAL_EXIT": "job requeued in held state after a special exit code",
}
"""States of a job that is held, and the reason that Slurm gives for them where it gives none."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as Slurm lists it; times in seconds since the epoch."""

    id: str
    """Also `44_[2-4%2]` for tasks of an array and `42+0` for parts of a heterogeneous job."""
    state: str
    submitted: float | None = None
    started: float | None = None
    """Expected start of a pending job."""
    ended: float | None = None
    """Time limit of a running job."""
    reason: str = ""
    comment: str = ""
    """The comment, or the command line of the submission."""
    exit_code: str = ""
    nodes: str = ""
    partition: str = ""
    node_count: int | None = None
    name: str = ""

    @property
    def over(self) -> bool:
        """Whether the job is over."""
        return base_state(self.state) in _ENDED


def read_queue(text: str, columns: Sequence[str] | None = QUEUE_COLUMNS) -> tuple[list[JobRecord], Table]:
    """Read squeue's or sacct's rows; other lines are in the table's `unread`.

    Raises:
        ParseError: the text is not a list of jobs.
    """
    table = read_table(text, columns, what="list of jobs")
    return [_record(row) for row in table.rows if row.get("JobID")], table


def base_state(state: str) -> str:
    """Return a state without its suffix (`CANCELLED by 1001`), completed where it is cut (`OUT_OF_ME+`)."""
    word = state.split()[0] if state.split() else ""
    if word.endswith("+"):
        stem = word[:-1]
        return next((name for name in (*_ENDED, *_LIVE) if name.startswith(stem)), stem)
    return word


def job_change(job: JobRecord, maintenance: Maintenance | None = None) -> JobChanged:
    """Return a job's state as a run's event; `word` is Slurm's own state.

    `maintenance` is the one that a waiting job waits for, where it is known.
    """
    state = base_state(job.state)
    change = JobChanged(JobState.UNKNOWN, word=state, job=job.id, nodes=job.nodes, submitted=job.submitted)
    if state in _ENDED:
        kind, reason_text = _ENDED[state]
        if state == "FAILED" and job.exit_code not in ("", "0:0"):
            reason_text = _exit_reason(job.exit_code)
        if state == "CANCELLED" and " by " in job.state:
            reason_text = f"cancelled by user {job.state.rpartition(' by ')[2]}"
        return replace(
            change, state=kind, reason=reason_text, time=job.ended, exit_code=job.exit_code, began=job.started
        )
    kind, reason_text = _LIVE.get(state, (JobState.UNKNOWN, f"unknown Slurm state {job.state}"))
    if kind is JobState.QUEUED:
        return _waiting(replace(change, state=kind, reason=reason_text, starts=job.started), job, maintenance)
    return replace(change, state=kind, reason=reason_text, began=job.started, deadline=job.ended)


def _waiting(change: JobChanged, job: JobRecord, maintenance: Maintenance | None) -> JobChanged:
    """Add the reason why a job waits, and what to change where waiting does not help."""
    reason = job.reason
    if change.word in _HELD_STATES and not explain_reason(reason).stuck:
        reason = _HELD_STATES[change.word]
    explained = explain_reason(reason)
    if maintenance is not None and is_maintenance(reason):
        explained = explain_maintenance(maintenance)
    explained = for_job(explained, job.id)
    return replace(
        change,
        reason=change.reason or _with_own_words(explained.text, reason),
        waits_for=job.reason.strip("()"),
        stuck=explained.stuck,
        fix=explained.fix,
        unavailable_nodes=explained.unavailable_nodes,
    )


def _with_own_words(text: str, reason: str) -> str:
    """Return the text of a pending reason; Slurm's own reason in parentheses."""
    own = reason.strip("()")
    if not text:
        return "" if own and own != "null" else "waiting"
    is_shown = not own or len(own) >= _REASON_SHOWN_CHARS or f"({own})" in text
    return text if is_shown else f"{text} ({own})"


def _exit_reason(code: str) -> str:
    status, _, number = code.partition(":")
    if code == "0:53":
        return "Slurm could not open its output file or directory"
    if number == "15" or status == "143":
        return _SIGTERM_REASON
    if number not in ("", "0"):
        return f"ended by signal {number}"
    return f"the job ended with exit code {status}"


def _record(row: dict[str, str]) -> JobRecord:
    row = {name: clean(value) for name, value in row.items()}
    details = _DETAILS.fullmatch(row.get("Comment", ""))
    if details is not None:
        named = {"Partition": details["partition"], "NNodes": details["nodes"], "JobName": details["name"]}
        row |= {"Comment": details["comment"], **named}
    count = row.get("NNodes", "")
    return JobRecord(
        id=row["JobID"],
        state=row.get("State", ""),
        submitted=_time(row.get("Submit", "")),
        started=_time(row.get("Start", "")),
        ended=_time(row.get("End", "")),
        reason=row.get("Reason", ""),
        comment=row.get("Comment") or row.get("SubmitLine", ""),
        exit_code=row.get("ExitCode", ""),
        nodes=_nodes(row.get("NodeList", "")),
        partition=row.get("Partition", ""),
        node_count=int(count) if count.isdecimal() else None,
        name=row.get("JobName", ""),
    )


def _time(text: str) -> float | None:
    return float(text) if text.isdecimal() and int(text) else None


def _nodes(text: str) -> str:
    return "" if text in ("None assigned", "(null)", "N/A") else text
