"""Tables of GPU use as columns: every sample of `gpu-NODE.csv`, for charts and for what a run used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from launcher.logs.gpu_tables import node_of_table

_MIB_PER_GIB = 1024.0
_USED, _TOTAL = "memory.used [MiB]", "memory.total [MiB]"
_METRICS = {
    "utilization.gpu [%]": ("utilisation_percent", 1.0),
    _USED: ("memory_gib", 1 / _MIB_PER_GIB),
    "power.draw [W]": ("power_w", 1.0),
    "host.memory.used [MiB]": ("host_memory_gib", 1 / _MIB_PER_GIB),
}
"""Column of the table -> name of the metric, and its unit in that of the table."""
IDLE_PERCENT = 5.0
_LARGEST = 1e12
_NUMBER = re.compile(r"[0-9]{1,12}")
_BLOCK_BYTES = 1 << 20
_LINE_BYTES = 1 << 14
_LEAST_LINE_BYTES = 12
"""Mean length of lines, at least; a time has 24 bytes."""
_MOMENT_ROWS = 512
"""Rows of one moment, at most: a node has up to 16 GPUs, or seven parts of each."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """Use of one GPU at one moment."""

    time: float
    """Seconds since the epoch."""
    gpu: int
    values: Mapping[str, float]
    """By metric: utilisation_percent, memory_gib, power_w …"""
    total_gib: float | None = None


@dataclass(frozen=True, slots=True)
class NodeSamples:
    """Samples of one node, in the order of the table."""

    node: str
    samples: tuple[GpuSample, ...] = ()
    peak_gib: tuple[float, float] | None = None
    """Largest memory in use on a GPU over the whole table, and the total of that GPU; None: no record."""


def node_samples(name: str, data: bytes, every: int = 1) -> NodeSamples | None:
    """Return the samples of a table; None where the file's name is no table's. Cut lines are passed over.

    `every`: of so many moments one is kept (a sample takes 0.4 kB); the peak is that of all.
    """
    node = node_of_table(name)
    if node is None:
        return None
    lines = _lines(data)
    heading = list(_texts(next(lines, b"").split(b",")))
    column = {name: index for index, name in enumerate(heading)}
    stamp_at, used_at, total_at = (column.get(name, -1) for name in ("timestamp", _USED, _TOTAL))
    kept: list[GpuSample] = []
    peak: tuple[float, float] | None = None
    moments, last, rows, width = -1, b"", 0, len(heading)
    has_memory = used_at >= 0 and total_at >= 0
    for line in lines:
        # Most lines count for the peak alone: a text of each would take four times as long.
        row = line.split(b",")
        if len(row) != width:
            continue
        rows += 1
        if stamp_at >= 0 and (row[stamp_at] != last or rows > _MOMENT_ROWS):
            moments, last, rows = moments + 1, row[stamp_at], 1
        used = _number(row[used_at]) if has_memory else None
        if used is not None and (peak is None or used >= peak[0]):
            total = _number(row[total_at])
            if total is not None and (peak is None or (used, total) > peak):
                peak = (used, total)
        if moments % every == 0 and (sample := _sample(dict(zip(heading, _texts(row), strict=True)))):
            kept.append(sample)
    gib = (peak[0] / _MIB_PER_GIB, peak[1] / _MIB_PER_GIB) if peak is not None else None
    return NodeSamples(node, tuple(kept), gib)


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines, block by block; those that are longer than any, and blocks of tiny ones, are not.

    All at once would take twice the table's size; a line of commas alone takes thirty times its own.
    """
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin + _BLOCK_BYTES) + 1 or len(data)
        block = data[begin:end]
        if block.count(b"\n") + block.count(b"\r") <= len(block) // _LEAST_LINE_BYTES + 8:
            yield from (line for line in block.splitlines() if 0 < len(line) <= _LINE_BYTES)
        begin = end


def _texts(row: Sequence[bytes]) -> Iterator[str]:
    return (cell.decode("utf-8", "replace") for cell in row)


def _sample(row: Mapping[str, str]) -> GpuSample | None:
    try:
        time = _time_of(row["timestamp"])
        gpu = int(row["index"])
    except (KeyError, ValueError):
        return None
    values = {}
    for column, (metric, factor) in _METRICS.items():
        number = _number(row.get(column, ""))
        if number is not None:
            values[metric] = number * factor
    total = _number(row.get(_TOTAL, ""))
    return GpuSample(time, gpu, values, None if total is None else total / _MIB_PER_GIB)


@lru_cache(maxsize=16)
def _time_of(text: str) -> float:
    """Return a moment in seconds since the epoch; the GPUs of a node share it. Raises ValueError."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def _number(text: str | bytes) -> float | None:
    """Return a number; None for `[N/A]`, which MIG instances report."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < _LARGEST else None


# ------------------------------------------------------------ what they say


@dataclass(frozen=True, slots=True)
class IdleSpan:
    """GPUs of a node that did nothing while others worked."""

    node: str
    gpus: tuple[int, ...]
    of: int
    """GPUs of the node."""
    since: float
    until: float

    def in_words(self) -> str:
        """Return it for a user: `6 of 8 GPUs of jwb0001 idle for 4 min`."""
        from launcher.durations import in_words

        return (
            f"{len(self.gpus)} of {self.of} GPUs of {self.node} idle for {in_words(self.until - self.since)}"
        )


def idle_spans(nodes: Sequence[NodeSamples], least_s: float = 120.0) -> tuple[IdleSpan, ...]:
    """Return the GPUs that are idle at the end of the tables, for so long at least, while others work."""
    uses = {(node.node, gpu): rows for node in nodes for gpu, rows in _by_gpu(node).items()}
    busy = any(rows and rows[-1][1] > IDLE_PERCENT for rows in uses.values())
    spans = []
    for node in nodes:
        idle: dict[int, float] = {}
        gpus = _by_gpu(node)
        until = max((rows[-1][0] for rows in gpus.values() if rows), default=0.0)
        for gpu, rows in gpus.items():
            since = _idle_since(rows)
            if since is not None and until - since >= least_s:
                idle[gpu] = since
        if idle and (busy or len(idle) < len(gpus)):
            spans.append(IdleSpan(node.node, tuple(sorted(idle)), len(gpus), max(idle.values()), until))
    return tuple(spans)


def imbalance(nodes: Sequence[NodeSamples], last: int = 20) -> tuple[float, float] | None:
    """Return the lowest and the highest mean utilisation of a GPU over the last samples, in percent."""
    means = []
    for node in nodes:
        for rows in _by_gpu(node).values():
            uses = [use for _, use in rows[-last:]]
            if uses:
                means.append(sum(uses) / len(uses))
    return (min(means), max(means)) if len(means) > 1 else None


def peak_memory_gib(nodes: Sequence[NodeSamples]) -> tuple[float, float] | None:
    """Return the largest memory in use on a GPU, and the total of that GPU, in GiB; None: no record."""
    return max((node.peak_gib for node in nodes if node.peak_gib is not None), default=None)


def peak_of_table(text: str) -> tuple[float, float] | None:
    """Return the same of one table, without its other columns: 1 µs a line.

    Cut lines and GPUs that report `[N/A]` are passed over.
    """
    lines = text.splitlines()
    names = lines[0].split(",") if lines else []
    if not {_USED, _TOTAL} <= set(names):
        return None
    used, total, most = names.index(_USED), names.index(_TOTAL), (0, 0)
    for line in lines[1:]:
        cells = line.split(",")
        if len(cells) == len(names) and all(_NUMBER.fullmatch(cells[index]) for index in (used, total)):
            most = max(most, (int(cells[used]), int(cells[total])))
    return (most[0] / _MIB_PER_GIB, most[1] / _MIB_PER_GIB) if most[1] else None


def _by_gpu(node: NodeSamples) -> dict[int, list[tuple[float, float]]]:
    rows: dict[int, list[tuple[float, float]]] = {}
    for sample in node.samples:
        if "utilisation_percent" in sample.values:
            rows.setdefault(sample.gpu, []).append((sample.time, sample.values["utilisation_percent"]))
    return rows


def _idle_since(rows: Sequence[tuple[float, float]]) -> float | None:
    """Return since when a GPU has done nothing; None while it works."""
    since = None
    for time, use in reversed(rows):
        if use > IDLE_PERCENT:
            break
        since = time
    return since
