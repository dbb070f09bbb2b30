"""All series of a run, from TensorBoard's files, the driver's log and the tables of GPU use."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from launcher.errors import TransportError
from launcher.logs.gpu_samples import NodeSamples, node_samples
from launcher.logs.scalar_columns import ScalarColumn, ScalarColumns
from launcher.logs.tensorboard import DamagedError
from launcher.logs.trackers import event_files
from launcher.monitor.watch import Watch
from launcher.overview.series import Floats, Series, order_of
from launcher.transports.base import FileStat, Transport
from launcher.transports.replies import WHOLE_FILE_BYTES

_READ = 8 * 1024 * 1024
_LEAST_TABLE_BYTES = 24 * 1024 * 1024
_KEPT_TABLE_BYTES = 6 * 1024 * 1024
"""Bytes of tables whose samples are all kept, 60,000 or 25 MB; of more, every second moment, or third."""
_MOST_TAGS = 20_000
"""Tags of all event files of a run; the file that brings more is not read on."""
_LATEST = 1e11
"""Seconds since the epoch of no real file: the year 5138."""


@dataclass(frozen=True, slots=True)
class SeriesLimits:
    """How much is read of one run."""

    values: int | None = None
    """Values of event files that are kept at once, 44 bytes each: the rest is thinned out; None: all."""
    table_bytes: int = 128 * 1024 * 1024
    """Bytes of tables of GPU use that are read, in 5 s: 64 nodes with four GPUs for a day. The tables of
    further nodes are left out."""

    def shared(self, runs: int) -> SeriesLimits:
        """Return the limits of each of some runs that are read together."""
        values = None if self.values is None else self.values // runs
        return SeriesLimits(values, max(self.table_bytes // runs, _LEAST_TABLE_BYTES))


ALL = SeriesLimits()


@dataclass(slots=True)
class RunSeries:
    """Reader of the series of a watched run; `read` is called from one thread at a time."""

    transport: Transport
    watch: Watch
    limits: SeriesLimits = ALL
    _files: dict[str, ScalarColumns] = field(default_factory=dict)
    _damaged: set[str] = field(default_factory=set)
    _tables: dict[str, tuple[int, NodeSamples]] = field(default_factory=dict)
    _found: tuple[tuple[str, int], ...] = ()

    def find(self, directories: Collection[str] = ()) -> bool:
        """Find the files as they are now, below some directories or those that the logs name; True: some."""
        below = directories or self.watch.tracking_directories()
        self._found = tuple((path, entry.size) for path, entry in event_files(self.transport, below))
        return bool(self._found)

    def read(self, budget: int = _READ) -> bool:
        """Read up to so many bytes of the files that were found; True while there is more."""
        for path, size in self._found:
            file = self._files.setdefault(path, ScalarColumns())
            if file.offset >= size or path in self._damaged:
                continue
            try:
                data = self.transport.read(path, file.offset, min(budget, size - file.offset))
                file.feed(data)
                self._bound(path)
            except (TransportError, DamagedError):
                self._damaged.add(path)
                continue
            if data:
                return True
        return False

    def _bound(self, path: str) -> None:
        """Thin out what was read, and end a file that has more tags than a run has."""
        if self.limits.values is not None:
            self._files[path].thin(self.limits.values // max(len(self._found), 1))
        if sum(file.tags for file in self._files.values()) > _MOST_TAGS:
            self._damaged.add(path)

    def gpus(self) -> tuple[NodeSamples, ...]:
        """Return the samples of each node's GPUs; a table that cannot be read is left out."""
        tables = list(self._readable_tables())
        every = max(sum(entry.size for _, entry in tables) // _KEPT_TABLE_BYTES, 1)
        for path, entry in tables:
            size, _ = self._tables.get(path, (-1, None))
            if size == entry.size:
                continue
            try:
                data = self.transport.read(path)
            except TransportError:
                continue
            samples = node_samples(Path(path).name, data, every)
            if samples is not None:
                self._tables[path] = (entry.size, samples)
        return tuple(samples for _, samples in self._tables.values())

    def _readable_tables(self) -> Iterator[tuple[str, FileStat]]:
        """Yield the tables that are read; one that is too large, or would be with those before it, is not."""
        left = self.limits.table_bytes
        for path, entry in self.watch.gpu_tables():
            if entry.size <= min(left, WHOLE_FILE_BYTES):
                left -= entry.size
                yield path, entry

    def series(self) -> tuple[Series, ...]:
        """Return all series, those that matter most first."""
        by_name = {item.name: item for item in self._of_log()}
        by_name |= {item.name: item for item in self._of_trackers()}
        by_name |= {item.name: item for item in _of_gpus(self.gpus())}
        return tuple(sorted(by_name.values(), key=lambda item: order_of(item.name)))

    def _of_log(self) -> Iterator[Series]:
        for name, points in self.watch.state.metrics.items():
            numbers = sorted(points)  # as whole numbers: a float has no step above 2^53
            steps = np.array(numbers, dtype=np.float64)
            values = np.array([points[step] for step in numbers], dtype=np.float64)
            if len(steps):
                yield Series(name, steps, np.full(len(steps), np.nan), values)

    def _of_trackers(self) -> Iterator[Series]:
        columns: dict[str, list[ScalarColumn]] = {}
        left_out: dict[str, int] = {}
        for file in self._files.values():
            for tag, column in file.columns().items():
                columns.setdefault(tag, []).append(column)
                left_out[tag] = left_out.get(tag, 0) + file.left_out.get(tag, 0)
        begins = (float(part.times[0]) for parts in columns.values() for part in parts)
        first = min(filter(math.isfinite, begins), default=0.0)
        for tag, parts in columns.items():
            yield replace(_joined(tag, parts, first), left_out=left_out[tag])


def _joined(tag: str, parts: list[ScalarColumn], first: float) -> Series:
    """Return the values of all starts of a run as one series: where steps repeat, the later start counts."""
    steps = np.concatenate([part.steps for part in parts]).astype(np.float64)
    times = _known_times(np.concatenate([part.times for part in parts]), first)
    values = np.concatenate([part.values for part in parts]).astype(np.float64)
    if len(steps) > 1 and not bool(np.all(np.diff(steps) > 0)):
        order = np.lexsort((times, steps))
        steps, times, values = steps[order], times[order], values[order]
        last = np.append(np.diff(steps) > 0, True)
        steps, times, values = steps[last], times[last], values[last]
    return Series(tag, steps, times, values, "TensorBoard")


def _known_times(times: Floats, first: float) -> Floats:
    """Return seconds since the first value; NaN for all where one is no time."""
    if not bool(np.all(np.abs(times) < _LATEST)):
        return np.full(len(times), np.nan)
    return times - first


def _of_gpus(nodes: tuple[NodeSamples, ...]) -> Iterator[Series]:
    """Yield for each node and metric the mean and the highest value over its GPUs, against time."""
    first = min((sample.time for node in nodes for sample in node.samples), default=0.0)
    for node in nodes:
        moments: dict[str, dict[float, list[float]]] = {}
        for sample in node.samples:
            for metric, value in sample.values.items():
                moments.setdefault(metric, {}).setdefault(sample.time, []).append(value)
        for metric, by_time in moments.items():
            times = np.array(sorted(by_time), dtype=np.float64)
            seconds = times - first
            for name, reduce in _kinds(f"gpu/{node.node}/{metric}", metric):
                values = np.array([reduce(by_time[float(time)]) for time in times], dtype=np.float64)
                yield Series(name, seconds, seconds, values, "nvidia-smi", by_time=True)


def _kinds(name: str, metric: str) -> tuple[tuple[str, Callable[[list[float]], float]], ...]:
    """Return the series of a metric by name: of the host's own there is one value at each moment."""
    if metric.startswith("host_"):
        return ((name, max),)
    return ((f"{name}_mean", _mean), (f"{name}_max", max))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def all_series(
    transport: Transport, watch: Watch, limits: SeriesLimits = ALL
) -> tuple[Mapping[str, Series], tuple[NodeSamples, ...]]:
    """Return all series of a caught-up run by name, and the samples of its GPUs."""
    reader = RunSeries(transport, watch, limits)
    reader.find()
    while reader.read():
        continue
    return {item.name: item for item in reader.series()}, reader.gpus()
