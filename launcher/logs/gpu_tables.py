"""Tables of GPU use that the launcher writes on each node, `gpu-NODE.csv`: who writes, and whose GPUs idle.

In a collective that hangs, the GPUs of the ranks that wait are busy, and those of the missing one idle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from launcher.text import clean

_NAME = re.compile(r"gpu-(?P<node>.+)\.csv$")
_SAMPLES = 4
"""Samples (one each 15 s) in which a GPU must be idle: between two kernels a single one may show nothing."""
_IDLE_PERCENT = 5.0
TAIL_BYTES = 8 * 1024
"""A line has about 50 bytes: eight GPUs fill 1.6 kB in four samples."""


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """GPUs of one node by the end of its table."""

    node: str
    written: float
    """When the table was written last, in seconds since the epoch."""
    idle: tuple[int, ...] = ()
    """Indices of the GPUs that did nothing in the last minute."""
    busy: bool = False
    """Whether a GPU did something."""


def node_of_table(name: str) -> str | None:
    """Return the node in a table's file name; None for any other name."""
    match = _NAME.match(name)
    return clean(match["node"]) if match is not None else None


def read_table_end(node: str, written: float, data: bytes) -> NodeGpus:
    """Return a node's GPUs from the last bytes of its table; lines that cannot be read are passed over."""
    uses: dict[int, list[float]] = {}
    for index, use in _rows(data.decode("utf-8", errors="replace").split("\n")[:-1]):
        uses.setdefault(index, []).append(use)
    idle = tuple(
        index
        for index, values in sorted(uses.items())
        if len(values) >= _SAMPLES and max(values[-_SAMPLES:]) <= _IDLE_PERCENT
    )
    busy = any(max(values[-_SAMPLES:]) > _IDLE_PERCENT for values in uses.values())
    return NodeGpus(node, written, idle, busy)


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, float]]:
    for line in lines:
        parts = line.split(",")
        try:
            yield int(parts[1]), float(parts[2])
        except (IndexError, ValueError):  # the heading, or a line that is cut
            continue
