"""Lists of nodes as Slurm writes them."""

from __future__ import annotations

import re

_PART = re.compile(r"(?P<stem>[^,\[\]]+)(?:\[(?P<ranges>[\d,-]+)\])?(?:,|$)")
_LIMIT = 100_000


def expanded(nodes: str) -> tuple[str, ...]:
    """Return the names in a list of nodes (`jwb[0001-0003,0007],login1`); none where it is not understood."""
    names: list[str] = []
    place = 0
    while place < len(nodes):
        match = _PART.match(nodes, place)
        if match is None:
            return ()
        place = match.end()
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
