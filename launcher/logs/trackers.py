"""Files of a driver for TensorBoard and W&B, below its log directories: TensorBoard's are read, W&B's named.

The driver prints only the loss and the times; learning rate, gradient norm, tokens per second and GPU load
are only in TensorBoard's files (nemo_rl/utils/logger.py). There the step of `ray/…` tags is the number of
seconds since NeMo-RL's monitor began.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from launcher.errors import TransportError
from launcher.logs.events import Event, MetricRecorded, Role, Source, TrackerFound
from launcher.logs.tensorboard import DamagedError, EventFile, Scalar
from launcher.transports.base import FileStat, Transport

METRICS = {
    "train/lr": "lr",
    "train/grad_norm": "grad_norm",
    "train/tokens_per_sec_per_gpu": "tokens_per_s_per_gpu",
    "train/truncation_rate": "truncation_rate",
    "train/total_num_tokens": "tokens",
}
_GPU = re.compile(r"ray/node\.\d+\.gpu\.\d+\.(?P<metric>util|mem_gb)$")
_GPU_METRICS = {"util": "gpu_util", "mem_gb": "gpu_mem_gb"}
_TRACKING_DIRECTORY = re.compile(r"(?:logs?|exp_\d+|tensorboard|wandb|out|run)$")
_DEPTH = 5
_READ = 1024 * 1024
_LARGE = 8 * 1024 * 1024
_EVERY_S = 10.0
"""The driver flushes these files at least every two minutes (torch, SummaryWriter)."""


def resolve(transport: Transport, path: str, bases: Iterable[str]) -> str | None:
    """Return the directory to search for one that a driver printed; None where it is not found.

    `bases`: directories that a relative path may count from. W&B's files lie beside TensorBoard's
    (nemo_rl/utils/logger.py:997-1003), so that the directory above both is searched.
    """
    directory = PurePosixPath(path)
    if directory.name in ("tensorboard", "wandb"):
        directory = directory.parent
    if directory.is_absolute():
        return str(directory)
    for base in bases:
        candidate = str(PurePosixPath(base, directory))
        try:
            entry = transport.stat(candidate)
        except TransportError:
            continue
        if entry is not None and entry.is_dir:
            return candidate
    return None


class LargeEventFile:
    """Parser of a large event file, by columns; yields only the scalars that become metrics."""

    def __init__(self) -> None:
        # Imports numpy, which takes 0.1 s: not for the files of a run's first hours.
        from launcher.logs.scalar_columns import ScalarColumns

        self._columns = ScalarColumns()

    @property
    def offset(self) -> int:
        """Bytes taken so far."""
        return self._columns.offset

    def feed(self, data: bytes) -> Iterator[Scalar]:
        """Yield the scalars of the records that `data` completes.

        Raises:
            DamagedError: the next bytes are not a record.
        """
        self._columns.feed(data)
        for tag, column in self._columns.drained().items():
            if tag in METRICS or _GPU.match(tag):
                rows = zip(column.steps.tolist(), column.values.tolist(), column.times.tolist(), strict=True)
                yield from (Scalar(tag, step, value, time) for step, value, time in rows)


def event_files(transport: Transport, directories: Iterable[str]) -> Iterator[tuple[str, FileStat]]:
    """Yield TensorBoard's files below some directories, with their entries."""
    pending = [(PurePosixPath(directory), 0) for directory in sorted(directories)]
    while pending:
        directory, depth = pending.pop(0)
        try:
            entries = transport.listdir(str(directory))
        except TransportError:  # not there yet, or not readable
            continue
        for entry in entries:
            if not entry.is_dir and "tfevents" in entry.name:
                yield str(directory / entry.name), entry
            elif entry.is_dir and depth < _DEPTH and _TRACKING_DIRECTORY.match(entry.name):
                pending.append((directory / entry.name, depth + 1))


@dataclass(slots=True)
class Trackers:
    """Tracking files below some directories, polled every ten seconds."""

    transport: Transport
    directories: set[str] = field(default_factory=set)
    _files: dict[str, EventFile | LargeEventFile] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)
    _announced: set[str] = field(default_factory=set)
    _gpus: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    _next: float = 0.0

    def poll(self, now: float, *, force: bool = False) -> Iterator[Event]:
        """Yield what is new since the last poll, at most every ten seconds unless forced."""
        if now < self._next and not force:
            return
        self._next = now + _EVERY_S
        for directory in sorted(self.directories):
            yield from self._search(directory, PurePosixPath(directory), 0)

    def _search(self, top: str, directory: PurePosixPath, depth: int) -> Iterator[Event]:
        try:
            entries = self.transport.listdir(str(directory))
        except TransportError:  # not there yet, or not readable: most metrics are in the driver's log
            return
        for entry in entries:
            path = directory / entry.name
            if not entry.is_dir and "tfevents" in entry.name:
                yield from self._announce("tensorboard", str(directory))
                yield from self._read(top, path, entry)
            elif entry.is_dir and directory.name == "wandb" and entry.name.startswith("offline-run-"):
                yield from self._announce("wandb-offline", str(path))
            elif entry.is_dir and depth < _DEPTH and _TRACKING_DIRECTORY.match(entry.name):
                yield from self._search(top, path, depth + 1)

    def _announce(self, kind: str, path: str) -> Iterator[Event]:
        if path not in self._announced:
            self._announced.add(path)
            yield TrackerFound(kind, path)

    def _read(self, top: str, path: PurePosixPath, entry: FileStat) -> Iterator[Event]:
        name = str(path)
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = LargeEventFile() if entry.size > _LARGE else EventFile()
        source = Source(str(path.relative_to(top)), Role.DRIVER, 0)
        try:
            while file.offset < entry.size and name not in self._unreadable:
                at_once = _LARGE if isinstance(file, LargeEventFile) else _READ
                data = self.transport.read(name, file.offset, min(at_once, entry.size - file.offset))
                if not data:
                    return
                for scalar in file.feed(data):
                    yield from self._metric(scalar, source)
        except (TransportError, DamagedError):
            self._unreadable.add(name)

    def _metric(self, scalar: Scalar, source: Source) -> Iterator[Event]:
        if name := METRICS.get(scalar.tag):
            yield MetricRecorded(name, scalar.step, scalar.value, source, scalar.time)
        elif match := _GPU.match(scalar.tag):
            name = _GPU_METRICS[match["metric"]]
            values = self._gpus.setdefault((name, scalar.step), {})
            values[scalar.tag] = scalar.value
            mean = sum(values.values()) / len(values)
            yield MetricRecorded(name, scalar.step, mean, source, scalar.time)
