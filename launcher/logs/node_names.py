"""Node lists in Slurm's notation."""

from __future__ import annotations

import re

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
