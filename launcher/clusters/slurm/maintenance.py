"""Maintenance that waiting jobs wait for: reservations with the flag MAINT over nodes of their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.parse import ParseError, read_records, read_table
from launcher.clusters.slurm.reasons import MAINTENANCE, PendingReason
from launcher.durations import day_and_time, format_time_limit
from launcher.errors import RefusedError, TransportError
from launcher.logs.node_names import expanded

EVERY_S = 600.0
"""Reservations change by the day; jobs that wait for one are looked at with each query of the queue."""
TIMEOUT_S = 10.0
_ROUND_S = 300
_PARTITION_COLUMNS = ("JobID", "Partition")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance of a job's nodes; times in seconds since the epoch."""

    name: str
    start: float
    end: float
    longest_s: int = 0
    """The longest time limit with which a job that starts soon ends before it; 0 where none does."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation as scontrol shows it."""

    name: str
    start: float
    end: float
    nodes: str
    flags: tuple[str, ...]

    def covers(self, nodes: Iterable[str]) -> bool:
        """Return whether it takes any of these nodes; where either are unknown, it may."""
        own = set(expanded(self.nodes))
        others = set(nodes)
        return "ALL_NODES" in self.flags or not own or not others or not own.isdisjoint(others)


def read_reservations(text: str) -> tuple[Reservation, ...]:
    """Read `scontrol show reservation`, over several lines or with `-o`; those without nodes stay out.

    Raises:
        ParseError: the text holds no records.
    """
    if "=" not in text:  # No reservations in the system
        return ()
    reservations = []
    for record in read_records(text, what="list of reservations"):
        start, end = _moment(record.get("StartTime", "")), _moment(record.get("EndTime", ""))
        if start is None or end is None or record.get("NodeCnt") == "0":
            continue
        nodes = record.get("Nodes", "")
        reservations.append(
            Reservation(
                name=record.get("ReservationName", ""),
                start=start,
                end=end,
                nodes="" if nodes in ("(null)", "ALL") else nodes,
                flags=tuple(record.get("Flags", "").split(",")),
            )
        )
    return tuple(reservations)


def next_maintenance(
    reservations: Iterable[Reservation], nodes: Iterable[str], now: float
) -> Maintenance | None:
    """Return the maintenance over any of these nodes that is under way, else the next one."""
    nodes = tuple(nodes)
    ahead = [item for item in reservations if "MAINT" in item.flags and item.end > now and item.covers(nodes)]
    first = min(ahead, key=lambda item: item.start, default=None)
    if first is None:
        return None
    longest_s = int(first.start - now - EVERY_S) // _ROUND_S * _ROUND_S
    return Maintenance(first.name, first.start, first.end, max(longest_s, 0))


def explain_maintenance(maintenance: Maintenance) -> PendingReason:
    """Return what a job waits for, until when, and the --time with which it would not have to."""
    text = f"waiting: its nodes are {MAINTENANCE} from {day_and_time(maintenance.start)}"
    text += f" until {day_and_time(maintenance.end)}"
    if not maintenance.longest_s:
        return PendingReason(text, "Wait, or cancel it and submit to another partition.")
    limit = format_time_limit(maintenance.longest_s)
    return PendingReason(
        f"{text}; with --time={limit} or less it would end before that",
        f"To start before it: cancel it and submit with --time={limit} or less,"
        f" or `scontrol update job=JOB timelimit={limit}`.",
    )


def ask_maintenance(client: SlurmClient, jobs: Sequence[str], now: float) -> dict[str, Maintenance]:
    """Ask Slurm which maintenance each of these waiting jobs waits for; jobs without one stay out.

    Sites may hide reservations from users; then none is known.
    """
    try:
        reservations = read_reservations(_ask(client, "scontrol", "show", "reservation"))
        if not any("MAINT" in item.flags for item in reservations):
            return {}
        partitions = _partitions(client, jobs)
        nodes = _nodes(client) if partitions else {}
    except (TransportError, RefusedError):
        return {}
    known = {}
    for job in jobs:
        names = (name for part in partitions.get(job, "").split(",") for name in nodes.get(part, ()))
        maintenance = next_maintenance(reservations, names, now)
        if maintenance is not None:
            known[job] = maintenance
    return known


def _partitions(client: SlurmClient, jobs: Sequence[str]) -> Mapping[str, str]:
    text = _ask(client, "squeue", "-h", "-j", ",".join(jobs), "-o", "%i|%P")
    try:
        rows = read_table(text, _PARTITION_COLUMNS, what="list of jobs").rows
    except ParseError:
        return {}
    return {row["JobID"]: row["Partition"] for row in rows}


def _nodes(client: SlurmClient) -> Mapping[str, tuple[str, ...]]:
    records = read_records(_ask(client, "scontrol", "show", "partition"), what="list of partitions")
    return {record.get("PartitionName", ""): expanded(record.get("Nodes", "")) for record in records}


def _ask(client: SlurmClient, *argv: str) -> str:
    return client.ask(argv, timeout_s=TIMEOUT_S)


def _moment(text: str) -> float | None:
    """Return a time that scontrol printed: seconds since the epoch as we ask for it, else local time."""
    if text.isdecimal():
        return float(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
