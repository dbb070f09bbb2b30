"""Nodes of a failed job that went down: by Slurm's states of nodes, else by its record of their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.node_states import is_dead
from launcher.clusters.slurm.parse import read_table
from launcher.errors import RefusedError, TransportError
from launcher.logs.events import JobChanged, JobState, LostNode
from launcher.text import clean

_AFTER_S = 900.0
"""A node counts as down after SlurmdTimeout (300 s by default) and the answers that are waited for."""
_BEFORE_S = 60.0
_STATES = ("Node", "State", "Since", "Reason")
_EVENTS = ("NodeName", "State", "TimeStart", "Reason")
_NOT_ASKED = frozenset({"TIMEOUT", "OUT_OF_MEMORY", "PREEMPTED", "DEADLINE"})
"""States of jobs that Slurm itself explains."""


def may_have_lost_nodes(change: JobChanged) -> bool:
    """Return True for a job whose failure a lost node can explain."""
    return change.state is JobState.FAILED and bool(change.nodes) and change.word not in _NOT_ASKED


def ask_lost_nodes(client: SlurmClient, change: JobChanged) -> tuple[LostNode, ...] | None:
    """Return the nodes of a job that went down while it ran; None where Slurm gave no answer."""
    try:
        text = client.ask(["sinfo", "-h", "-N", "-n", change.nodes, "-o", "%N|%T|%H|%E"])
        lost = _lost(read_table(text, _STATES, what="list of nodes").rows, change)
        if not lost and change.word == "NODE_FAIL":  # it is in service again
            lost = _lost(_events(client, change), change)
    except (TransportError, RefusedError):
        return None
    return lost


def _events(client: SlurmClient, change: JobChanged) -> Sequence[Mapping[str, str]]:
    since = datetime.fromtimestamp((change.began or change.submitted or 0.0) - _BEFORE_S).astimezone()
    argv = ["sacctmgr", "-n", "-P", "show", "event", f"nodes={change.nodes}"]
    argv += [f"start={since:%Y-%m-%dT%H:%M:%S}", f"format={','.join(_EVENTS)}"]
    rows = read_table(client.ask(argv), _EVENTS, what="list of events").rows
    return [
        {"Node": row["NodeName"], "State": row["State"], "Since": row["TimeStart"], "Reason": row["Reason"]}
        for row in rows
    ]


def _lost(rows: Iterable[Mapping[str, str]], change: JobChanged) -> tuple[LostNode, ...]:
    lost: dict[str, LostNode] = {}
    for row in rows:
        since = _moment(row["Since"])
        if row["Node"] and is_dead(row["State"]) and _during(since, change):
            reason = clean(row["Reason"]).strip()
            lost[row["Node"]] = LostNode(clean(row["Node"]), since, "" if reason == "none" else reason)
    return tuple(lost[name] for name in sorted(lost))


def _during(since: float | None, change: JobChanged) -> bool:
    """Return True if a node went down in the time of a job; also where no time is known."""
    if since is None:
        return True
    begin, end = change.began or change.submitted, change.time
    return (begin is None or since >= begin - _BEFORE_S) and (end is None or since <= end + _AFTER_S)


def _moment(text: str) -> float | None:
    """Return a time of Slurm, in seconds or as local time, in seconds since the epoch."""
    if text.isdecimal():
        return float(text) or None
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        return None
