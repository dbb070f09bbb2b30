"""The partitions of a cluster as a table that fits the width: its cells are cut, never wrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from launcher.clusters.inventory import gpu_memory_gib
from launcher.durations import format_time_limit
from launcher.text import clean
from tui.theme import CURRENT
from tui.widgets.panel import fitted

if TYPE_CHECKING:
    from launcher.clusters.inventory import Detection, Partition

_HEADS = ("partition", "nodes", "GPUs per node", "time limit", "accounts")
_RIGHT = 1
"""Column that is aligned at the right."""
_GAP = 2
_MOST_ROWS = 40


def partition_lines(detection: Detection, chosen: str, width: int) -> list[Content]:
    """Return a head and a row for each partition; the last columns are cut where the width is too small."""
    rows = [_cells(item, detection) for item in detection.partitions[:_MOST_ROWS]]
    widths = [
        max(cell_len(row[column]) for row in (_HEADS, *rows)) + _GAP for column in range(len(_HEADS) - 1)
    ]
    lines = [Content(f"  {_row(_HEADS, widths, width - 2)}").stylize("dim")]
    for item, cells in zip(detection.partitions, rows, strict=False):
        here = item.name == chosen
        closed = item.state != "up" or detection.accounts_in(item) == ()
        text = _row(cells, widths, width - 2)
        mark = f"{CURRENT.glyph} " if here else "  "
        lines.append(
            Content.assemble((mark, CURRENT.style), (text, "bold" if here else "dim" if closed else ""))
        )
    if len(detection.partitions) > _MOST_ROWS:
        lines.append(Content(f"  … and {len(detection.partitions) - _MOST_ROWS} more").stylize("dim"))
    return lines


def _row(cells: tuple[str, ...], widths: list[int], width: int) -> str:
    parts = []
    for index, (cell, room) in enumerate(zip(cells[:-1], widths, strict=True)):
        padded = f"{cell:>{room - _GAP}}{' ' * _GAP}" if index == _RIGHT else fitted(cell, room)
        parts.append(padded)
    text = "".join(parts) + cells[-1]
    return fitted(text, max(width, 1)).rstrip()


def _cells(item: Partition, detection: Detection) -> tuple[str, ...]:
    limit = format_time_limit(item.max_time_s) if item.max_time_s else "unknown"
    usable = detection.accounts_in(item)
    accounts = "unknown" if usable is None else ", ".join(usable) or "none usable"
    state = "" if item.state == "up" else f"{item.state}  "
    down = f"  {item.nodes_down} down" if item.nodes_down else ""
    name = clean(item.name)
    return name, str(item.nodes), clean(_gpus(item, detection)), limit, f"{state}{clean(accounts)}{down}"


def _gpus(item: Partition, detection: Detection) -> str:
    if not item.gpus.count:
        return "no GPU"
    memory = gpu_memory_gib(item.gpus.type or "gpu", detection.site.gpu_memory_gib)
    size = f" {memory:g} GiB" if memory else ""
    return f"{item.gpus.count} {item.gpus.type or 'GPU'}{size}"
