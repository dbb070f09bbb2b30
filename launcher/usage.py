"""Processes and memory of the user on this machine, against the limits of a login node."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    """What the user's processes take on this machine."""

    processes: int
    memory: int
    """Resident memory in bytes; shared pages count once for each process."""
    machine_memory: int
    """Memory of the machine, in bytes."""


@dataclass(frozen=True, slots=True)
class UsageLimits:
    """What a site allows a user on a login node; None where no limit is known."""

    processes: int | None = None
    memory_percent: int | None = None
    """Percent of the node's memory."""


def user_usage(user: int | None = None, proc: Path = PROC) -> Usage:
    """Return what a user's processes take (default: of this process's user)."""
    user = os.getuid() if user is None else user
    processes = pages = 0
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        try:
            if entry.stat().st_uid != user:
                continue
            resident = int(Path(entry.path, "statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):  # it has ended meanwhile
            continue
        processes += 1
        pages += resident
    return Usage(processes, pages * os.sysconf("SC_PAGE_SIZE"), _machine_memory(proc))


def own_usage(proc: Path = PROC) -> Usage:
    """Return what this process takes."""
    pages = int(Path(proc, "self", "statm").read_text().split()[1])
    return Usage(1, pages * os.sysconf("SC_PAGE_SIZE"), _machine_memory(proc))


def _machine_memory(proc: Path) -> int:
    for line in Path(proc, "meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0
