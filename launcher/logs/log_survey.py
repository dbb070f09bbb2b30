"""Survey of a run's logs: node and ranks of each, and which of them fail, are silent, or are missing.

`survey` is pure; `read_hints` reads the beginnings of the logs, which say what a name does not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import IntEnum
from statistics import median

from launcher.errors import TransportError
from launcher.logs.events import FindingSeen, Role
from launcher.logs.node_names import node_of_log, worker_number
from launcher.logs.sources import LogFile
from launcher.text import clean
from launcher.transports.base import FileStat, ReadRange, Transport

HEAD_BYTES = 8 * 1024
"""Bytes of a log's beginning in which it names its node and address."""
DRIVER_BYTES = 4 * 1024 * 1024
"""Bytes of the driver's beginning in which Ray names the ranks of all groups with their addresses."""
SILENT_S = 300.0
"""A worker that wrote nothing for so much longer than the others is silent."""
_MOST_WORKERS = 10_000
_ADDRESS = re.compile(rb"Local node IP\S*: (?:\x1b\[[\d;]*m)*(?P<ip>[\d.]+)")
_NODE = re.compile(
    rb"(?:runs on|hostname[:=]|on node|slurmstepd-|\bhost[:=]) ?(?P<node>[A-Za-z][\w-]*\d[\w-]*)"
)
_RANK = re.compile(rb"\((?P<actor>\w+)\[rank=(?P<rank>\d+)\] pid=\d+(?:, ip=(?P<ip>[\d.]+))?\)")


class LogHealth(IntEnum):
    """Condition of a log, worst first."""

    FAILING = 0
    MISSING = 1
    SILENT = 2
    WARNING = 3
    WELL = 4


@dataclass(frozen=True, slots=True)
class LogHints:
    """What the contents of logs say about nodes and ranks."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    """Path -> node."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Path -> IP address of the node."""
    ranks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """IP address -> ranks; those of the driver's own node stand under an empty address."""


@dataclass(frozen=True, slots=True)
class SurveyedLog:
    """A log, or one that should be there."""

    name: str
    path: str
    """Empty for a missing log."""
    role: Role
    node: str = ""
    ranks: str = ""
    health: LogHealth = LogHealth.WELL
    reason: str = ""
    """Why it is not well."""
    bytes: int = 0
    written: float | None = None
    """Time of the last write."""


def survey(
    logs: Sequence[LogFile],
    entries: Mapping[str, FileStat] | None,
    findings: Sequence[FindingSeen],
    nodes: Sequence[str] = (),
    hints: LogHints | None = None,
) -> list[SurveyedLog]:
    """Return all logs with their condition, the worst first.

    `entries`: directory entry of each path; None before they are read.
    """
    hints = hints or LogHints()
    worst = _worst_findings(findings)
    typical = _typical_time(logs, entries or {})
    result = []
    for log in logs:
        entry = (entries or {}).get(log.path)
        finding = worst.get(clean(log.name))
        health, reason = _health_by_finding(finding)
        if health is not LogHealth.FAILING and entries is not None:
            by_file = _health_by_file(log, entry, typical)
            health, reason = min((health, reason), by_file, key=lambda item: item[0])
        node = hints.nodes.get(log.path, "") or node_of_log(log.name, log.role, nodes)
        address = hints.addresses.get(log.path, "")
        result.append(
            SurveyedLog(
                clean(log.name),
                log.path,
                log.role,
                clean(node or address),
                _ranks(log, address, hints),
                health,
                reason,
                entry.size if entry else 0,
                entry.mtime if entry else None,
            )
        )
    result += _missing(logs, nodes)
    return sorted(result, key=lambda item: item.health)


def _worst_findings(findings: Sequence[FindingSeen]) -> dict[str, FindingSeen]:
    """Return the gravest finding of each log: the cause, else a failure, else a warning."""
    worst: dict[str, FindingSeen] = {}
    for finding in sorted(findings, key=lambda item: (not item.root, item.severity != "fatal")):
        worst.setdefault(clean(finding.source.log), finding)
    return worst


def _typical_time(logs: Sequence[LogFile], entries: Mapping[str, FileStat]) -> float | None:
    times = [entries[log.path].mtime for log in logs if log.role is Role.WORKER and log.path in entries]
    return median(times) if len(times) > 2 else None


def _health_by_finding(finding: FindingSeen | None) -> tuple[LogHealth, str]:
    if finding is None:
        return LogHealth.WELL, ""
    health = LogHealth.FAILING if finding.severity == "fatal" else LogHealth.WARNING
    return health, clean(finding.title)


def _health_by_file(log: LogFile, entry: FileStat | None, typical: float | None) -> tuple[LogHealth, str]:
    if entry is None:
        return LogHealth.MISSING, "the log is gone"
    if entry.size == 0 and log.role in (Role.WORKER, Role.HEAD):
        return LogHealth.SILENT, "the log is empty"
    if log.role is Role.WORKER and typical is not None and typical - entry.mtime > SILENT_S:
        return (
            LogHealth.SILENT,
            f"wrote nothing for {round((typical - entry.mtime) / 60)} min while others did",
        )
    return LogHealth.WELL, ""


def _ranks(log: LogFile, address: str, hints: LogHints) -> str:
    ranks = hints.ranks.get(address, ()) if address else ()
    if not ranks and log.role is Role.HEAD:
        ranks = hints.ranks.get("", ())
    return ranks_text(ranks)


def ranks_text(ranks: Sequence[int]) -> str:
    """Return ranks as `rank 3`, `ranks 4-7`, `ranks 0, 2, 4-7`; empty for none."""
    pieces: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if pieces and rank == pieces[-1][1] + 1:
            pieces[-1][1] = rank
        else:
            pieces.append([rank, rank])
    text = ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in pieces)
    return f"rank{'s' if len(set(ranks)) > 1 else ''} {text}" if text else ""


def _missing(logs: Sequence[LogFile], nodes: Sequence[str]) -> list[SurveyedLog]:
    """Return the workers' logs that should be there: of the job's nodes, or a gap in the numbers."""
    workers = [log for log in logs if log.role is Role.WORKER]
    numbered = {number: log for log in workers if (number := worker_number(log.name)) is not None}
    if not numbered:
        return []
    example = next(iter(numbered.values())).name
    # A number beyond all jobs is no gap of as many logs.
    last = max((number for number in numbered if number < _MOST_WORKERS), default=0)
    if nodes and last < len(nodes):
        last = len(nodes) - 1
    missing = [number for number in range(1, last + 1) if number not in numbered]
    return [
        SurveyedLog(
            _renumbered(clean(example), number),
            "",
            Role.WORKER,
            nodes[number] if number < len(nodes) else "",
            health=LogHealth.MISSING,
            reason="no such log: the node did not start, or its disk is not seen",
        )
        for number in missing
    ]


def _renumbered(name: str, number: int) -> str:
    """Return a worker's log name with another number, as wide as the one it has."""
    folder, slash, base = name.rpartition("/")
    last = list(re.finditer(r"\d+", base))[-1]
    width = len(last[0]) if last[0].startswith("0") else 1
    return f"{folder}{slash}{base[: last.start()]}{number:0{width}d}{base[last.end() :]}"


# ------------------------------------------------------------ reading


def read_entries(transport: Transport, logs: Sequence[LogFile]) -> dict[str, FileStat]:
    """Return the directory entries of logs, with one call for each directory.

    Raises:
        TransportError: a directory cannot be listed.
    """
    directories = {log.path.rpartition("/")[0] for log in logs}
    entries: dict[str, FileStat] = {}
    for directory in directories:
        entries |= {f"{directory}/{entry.name}": entry for entry in transport.listdir(directory or "/")}
    return {log.path: entries[log.path] for log in logs if log.path in entries}


def _beginnings(transport: Transport, logs: Sequence[LogFile]) -> Iterator[tuple[LogFile, bytes]]:
    """Yield the logs that can be read with their beginnings, which are read together."""
    sizes = {log.path: DRIVER_BYTES if log.role is Role.DRIVER else HEAD_BYTES for log in logs}
    directories = tuple(dict.fromkeys(map(posixpath.dirname, sizes)))
    with ExitStack() as stack:
        try:
            stack.enter_context(transport.looking_at(directories, 1, ""))
            transport.read_ahead([ReadRange(path, 0, size) for path, size in sizes.items()])
        except TransportError:
            return
        for log in logs:
            try:
                yield log, transport.read(log.path, 0, sizes[log.path])
            except TransportError:
                continue


def read_hints(transport: Transport, logs: Sequence[LogFile]) -> LogHints:
    """Read what the logs' beginnings say about nodes and ranks; a log that cannot be read says nothing."""
    nodes: dict[str, str] = {}
    addresses: dict[str, str] = {}
    ranks: dict[str, set[int]] = {}
    for log, data in _beginnings(transport, logs):
        if log.role is Role.DRIVER:
            for match in _RANK.finditer(data):
                ranks.setdefault((match["ip"] or b"").decode(), set()).add(int(match["rank"]))
            continue
        if log.role in (Role.WORKER, Role.HEAD):
            if address := _ADDRESS.search(data):
                addresses[log.path] = address["ip"].decode()
            if node := _NODE.search(data):
                nodes[log.path] = node["node"].decode()
    return LogHints(nodes, addresses, {ip: tuple(sorted(group)) for ip, group in ranks.items()})
