"""Names of nodes: lists in Slurm's notation, and the node that wrote a log."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launcher.logs.events import Role

_PART = re.compile(r"(?P<stem>[^,\[\]]+)(?:\[(?P<ranges>[\d,-]+)\])?(?:,|$)")
_LIMIT = 100_000


def expanded(nodes: str) -> tuple[str, ...]:
    """Return the names in a node list (`jwb[0001-0003,0007],login1`); none where it cannot be read."""
    names: list[str] = []
    position = 0
    while position < len(nodes):
        match = _PART.match(nodes, position)
        if match is None:
            return ()
        position = match.end()
        if match["ranges"] is None:
            names.append(match["stem"])
            continue
        for piece in match["ranges"].split(","):
            first, _, last = piece.partition("-")
            last = last or first
            if not (first.isdecimal() and last.isdecimal()) or int(last) - int(first) > _LIMIT:
                return ()
            names += (
                f"{match['stem']}{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)
            )
    return tuple(names)


_NUMBER = re.compile(r"(?:^|.*[-_.])workers?[-_.]?0*(?P<number>\d+)\.(?:log|out|err)$")


def worker_number(name: str) -> int | None:
    """Return the number in a worker's log name (`ray-worker-12.log`); None where it has none."""
    match = _NUMBER.match(name.rpartition("/")[2])
    return int(match["number"]) if match else None


def node_of_log(name: str, role: Role, nodes: Sequence[str]) -> str:
    """Return the node that wrote a log, from the log's name and the job's nodes; empty where unknown.

    Ray's launchers number their workers as the job's nodes; the head is the first node (nemo_rl's ray.sub,
    `ray_bare.sub`). Other launchers have the node in the name.
    """
    if not nodes:
        return ""
    base = name.rpartition("/")[2]
    named = [node for node in nodes if node in base]
    if named:
        return max(named, key=len)
    if role is Role.HEAD:
        return nodes[0]
    if role is Role.WORKER:
        number = worker_number(base)
        if number is not None and 0 <= number < len(nodes):
            return nodes[number]
    return ""
