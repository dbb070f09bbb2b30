"""Disk use of runs: bytes that are allocated, each file once, links not followed, work bounded."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from launcher.errors import InputError, TransportError

if TYPE_CHECKING:
    from launcher.runs import Run
    from launcher.transports.base import Transport

BLOCK = 512
"""Unit of `st_blocks`, whatever the file system's own (POSIX, sys/stat.h)."""
ENTRY_LIMIT = 500_000
TIME_LIMIT_S = 60.0
Part = Literal["logs", "checkpoints", "other"]
_PARTS: tuple[tuple[tuple[str, ...], Part], ...] = (
    (("output", "checkpoints"), "checkpoints"),
    (("output", "logs"), "logs"),
    (("logs",), "logs"),
)


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes that a run's files take on disk."""

    run: Run
    logs: int
    checkpoints: int
    other: int
    checkpoint_dir: str = ""
    """Directory outside the run's own that its checkpoints lie in; runs may share it."""
    complete: bool = True
    """Whether everything was counted: within the limits, and readable."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.logs + self.checkpoints + self.other


@dataclass(slots=True)
class DiskCounter:
    """Counter of allocated bytes that counts each file once, and stops at its limits."""

    entries: int = ENTRY_LIMIT
    deadline: float = field(default_factory=lambda: time.monotonic() + TIME_LIMIT_S)
    complete: bool = True
    _counted: set[tuple[int, int]] = field(default_factory=set)

    def count(self, directory: str | Path) -> dict[Part, int]:
        """Return the bytes below a directory by part; those counted before are not counted again."""
        sums: dict[Part, int] = {"logs": 0, "checkpoints": 0, "other": 0}
        for names, status in self._walk(os.path.realpath(directory)):
            sums[_part(names)] += status.st_blocks * BLOCK
        return sums

    def _walk(self, root: str) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
        """Yield each entry's names below a root with its status; a link is an entry, its target is not."""
        pending: list[tuple[str, tuple[str, ...]]] = [(root, ())]
        while pending:
            path, names = pending.pop()
            if self.entries <= 0 or time.monotonic() > self.deadline:
                self.complete = False
                return
            self.entries -= 1
            try:
                status = os.lstat(path)
                if (status.st_dev, status.st_ino) in self._counted:
                    continue
                self._counted.add((status.st_dev, status.st_ino))
                yield names, status
                if stat.S_ISDIR(status.st_mode):
                    pending += [(os.path.join(path, name), (*names, name)) for name in os.listdir(path)]
            except FileNotFoundError:  # removed meanwhile
                continue
            except OSError:
                self.complete = False


def _part(names: Sequence[str]) -> Part:
    return next((part for start, part in _PARTS if tuple(names[: len(start)]) == start), "other")


def disk_use(transport: Transport, runs: Sequence[Run], counter: DiskCounter | None = None) -> list[DiskUse]:
    """Return the disk use of runs; a checkpoint directory that several share counts for the first of them."""
    counter = counter or DiskCounter()
    uses = []
    for run in runs:
        counter.complete = True
        sums, outside = counter.count(run.directory), checkpoint_directory(transport, run)
        more = 0
        if outside is not None and not _below(outside, run.directory):
            more = sum(counter.count(outside).values())
        external = str(outside) if outside is not None and not _below(outside, run.directory) else ""
        uses.append(
            DiskUse(
                run,
                sums["logs"],
                sums["checkpoints"] + more,
                sums["other"],
                external,
                counter.complete,
            )
        )
    return uses


def _below(path: Path, directory: str) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))


def checkpoint_directory(transport: Transport, run: Run) -> Path | None:
    """Return the directory of a run's checkpoints; None where there is none, or the recipe cannot be read."""
    from launcher.runs import effective_values

    own = Path(run.directory, "output", "checkpoints")
    if run.spec.kind != "training":
        return own if own.is_dir() else None
    try:
        section = effective_values(transport, run.directory).get("checkpointing")
    except (InputError, TransportError):
        return None
    named = section.get("checkpoint_dir") if isinstance(section, dict) else None
    if not isinstance(named, str) or not named:
        return None
    # A relative directory counts from where the driver runs.
    path = Path(run.spec.checkout or run.directory, named)
    return path if path.is_dir() else None
