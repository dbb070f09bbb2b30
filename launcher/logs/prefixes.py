"""Prefixes that carriers of a log put before each line: containers, journals, srun, mpirun, torchrun, Ray.

They may be stacked in any order and say who printed the line, on which node and when; the rest of the line is
what the process itself wrote. Forms: `docker logs -t`, CRI, `kubectl logs --prefix`, Docker Compose,
journald, dmesg, `srun --label`, mpirun (`--tag-output`), Hydra's `-prepend-rank`, pdsh and DeepSpeed,
torchrun's tee, `[rankN]:` of torch, Ray's log monitor, the processes of vLLM 0.6 and later.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
_UNIT = r"(?:kernel|[\w.@/\\-]+\[\d+\]): "

_RAY = re.compile(
    r"""
    \((?:
        (?P<system>raylet|gcs_server|pid=raylet|pid=gcs_server|autoscaler[^,)]*)
      | (?:(?P<actor>[^()\s\[\]]+(?:\([^()]*\))?)        # class, function, or the name that repr() gives
          (?:\[rank=(?P<rank>\d+)\]|\[[^\]]*\])?
          (?:\s+(?:rank=(?P<worker_rank>\d+)|(?:[A-Z]{2}\d+\s?)+))?\s+)?
        pid=(?P<pid>\d+)
    )(?:,\s*ip=(?P<ip>[\d.a-fA-F:]+))?\)\s?
    """,
    re.VERBOSE,
)
_TORCH = re.compile(r"\[(?P<role>[A-Za-z_][A-Za-z_-]*)(?P<local>\d+)\]:")
_LIGHTNING = re.compile(r"\[rank: (?P<rank>\d+)\] ")
_MPI = re.compile(
    r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"\[(?:[\w.@-]+[,@])?\d+,(?P<task>\d+)\]<std(?:out|err|diag)>:? ?"
)
_PREPENDED = re.compile(
    r"\[(?P<task>\d{1,4})\] (?=Traceback \(|  File |[\[(]|[A-Za-z_][\w.]*(?:Error|Exception)\b)"
)
_POD = re.compile(r"\[(?:pod|container)/[\w./-]+\] ")
_CONTAINER = re.compile(
    rf"(?P<stamp>{_ISO}(?:Z|[+-]\d\d:?\d\d))"
    rf"(?: std(?:out|err) [FP](?= |$)| \d\d[OE]\+?(?= |$)| (?P<node>[\w.-]+) {_UNIT}(?<= ))?(?:(?<= )| |\t|$)"
)
_BRACKETED_TIME = re.compile(rf"\[(?P<stamp>{_ISO})\] ")
_JOURNAL = re.compile(
    rf"(?P<stamp>{_MONTH} +\d{{1,2}} \d\d:\d\d:\d\d(?:\.\d+)?) (?:(?P<node>[\w.-]+) {_UNIT})?"
)
_UPTIME = re.compile(r"\[ *\d{1,9}\.\d{6}\] ")
_DMESG = re.compile(
    rf"\[(?:[A-Z][a-z]{{2}} )?(?P<stamp>{_MONTH} +\d{{1,2}} \d\d:\d\d:\d\d)(?: (?P<year>\d{{4}}))?\] "
)
_LABEL = re.compile(r" {0,4}(?P<task>\d{1,5}):(?: |$)")
_ADDRESS = re.compile(r"(?P<node>\d{1,3}(?:\.\d{1,3}){3}): ")
_NAME = re.compile(r"(?P<name>[a-z][a-z0-9._-]*)(?:(?P<host>: )| +\| ?)")
_HOST_NAME = re.compile(
    r"(?!python|lib|gpu\d|cuda|step\d|epoch|slurmstepd|enroot|sm\d|fp\d|int\d|cu\d)"
    r"(?=.*\d)[a-z0-9-]+(?:\.[a-z0-9-]+)*"
)
_SERVICE_NAME = re.compile(r".*[-_]\d+")

# The forms that can begin with a character; most lines begin with none of them.
_BY_FIRST: dict[str, tuple[re.Pattern[str], ...]] = {
    "(": (_RAY,),
    "[": (_TORCH, _MPI, _BRACKETED_TIME, _PREPENDED, _LIGHTNING, _POD, _UPTIME, _DMESG),
    " ": (_LABEL,),
    **dict.fromkeys("0123456789", (_CONTAINER, _LABEL, _ADDRESS)),
    **dict.fromkeys("JFMASOND", (_JOURNAL,)),
    **dict.fromkeys("MTWFS", (_JOURNAL, _MPI)),
    **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", (_NAME,)),
}
FIRST_CHARACTERS = frozenset(_BY_FIRST)
"""Characters with which a prefix can begin."""
_DEPTH = 12
"""Prefixes of one line at most: text may imitate them without end."""


class LineOrigin(NamedTuple):
    """Process that printed a line, as its prefixes name it; inner ones are more precise than outer ones."""

    actor: str | None = None
    """Ray actor or task; `raylet` and the like for Ray itself; None for the owner of the log."""
    rank: int | None = None
    pid: int | None = None
    ip: str | None = None
    node: str | None = None
    task: int | None = None
    """Number of a task of srun, of a process of mpirun, or of one of torchrun on its node."""
    stamp: str = ""
    """Time at which a carrier received the line, as text."""


NOBODY = LineOrigin()


def split_prefixes(text: str, origin: LineOrigin = NOBODY) -> tuple[str, LineOrigin]:
    """Return what is left of a line without its prefixes, and who printed it.

    `origin`: as known from what precedes the text on the same line.
    """
    if text[:1] not in _BY_FIRST:
        return text, origin
    start = 0
    for _ in range(_DEPTH):
        for pattern in _BY_FIRST.get(text[start : start + 1], ()):
            if (match := pattern.match(text, start)) and (pattern is not _NAME or _is_carrier(match)):
                break
        else:
            break
        origin = _read(match, origin)
        start = match.end()
        if match.re is _TORCH and match["role"] == "rank" and text.startswith(" ", start):
            start += 1  # torch writes `[rank0]: `, torchrun's tee no space
    return (text[start:] if start else text), origin


def _is_carrier(match: re.Match[str]) -> bool:
    """Return True for the name of a host (pdsh) or of a service (Docker Compose), False for other words."""
    pattern = _HOST_NAME if match["host"] else _SERVICE_NAME
    return pattern.fullmatch(match["name"]) is not None


def _read(match: re.Match[str], origin: LineOrigin) -> LineOrigin:
    """Return the origin with what one prefix adds."""
    if match.re is _RAY:
        system, actor, rank, worker_rank, pid, ip = match.groups()
        rank = rank or worker_rank
        return LineOrigin(
            (system or actor or origin.actor or "task").removeprefix("pid="),
            int(rank) if rank else origin.rank,
            int(pid) if pid else origin.pid,
            ip or origin.ip,
            origin.node,
            origin.task,
            origin.stamp,
        )
    groups = match.groupdict()
    if match.re is _TORCH:
        number = int(groups["local"])
        return origin._replace(rank=number) if groups["role"] == "rank" else origin._replace(task=number)
    if rank := groups.get("rank"):
        return origin._replace(rank=int(rank))
    if task := groups.get("task"):
        return origin._replace(task=int(task))
    if match.re is _NAME:
        return origin._replace(node=groups["name"]) if groups["host"] else origin
    year = groups.get("year")
    stamp = f"{year} {groups['stamp']}" if year else groups.get("stamp")
    return origin._replace(node=groups.get("node") or origin.node, stamp=stamp or origin.stamp)
