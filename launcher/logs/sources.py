"""Which files are a run's logs, and who wrote each."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from launcher.logs.events import Role
from launcher.transports.base import FileStat, Transport

_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"ray-driver.*\.log$"), Role.DRIVER),
    (re.compile(r"ray-job.*\.log$"), Role.DRIVER),  # NeMo-Run's launcher (templates/ray.sub.j2)
    (re.compile(r"ray-head.*\.log$"), Role.HEAD),
    (re.compile(r"ray-workers?-.*\.log$"), Role.WORKER),
    (re.compile(r"(?:launcher\.log|slurm-.*\.out|sbatch_.*\.out)$"), Role.SLURM),
    (re.compile(r"companion.*\.log$"), Role.COMPANION),
)
# Other launchers name their logs as they like, but mostly so that people can tell them.
_LIKELY = re.compile(
    r"(?:^|.*[-_.])(?P<role>driver|head|worker|workers|slurm|companion)(?:[-_.\d].*)?\.(?:log|out|err)$"
)
CLOCK_NAME = "log-clock.tsv"
_LOG_DIRECTORY = re.compile(r"(?:.*-logs|logs)$")
_DEPTH = 3
"""A run directory holds `logs/<job>-logs/ray-driver.log`."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log to follow."""

    name: str
    """As shown: relative to the directory being watched."""
    path: str
    role: Role


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role | None:
    """Return the role that a file's name tells, or None."""
    base = PurePosixPath(name).name
    known = next((role for pattern, role in _ROLES if pattern.match(base)), None)
    if known is None and (match := _LIKELY.match(base)):
        return Role(match["role"].removesuffix("s"))
    return known


@dataclass(frozen=True, slots=True)
class DirectoryLogs:
    """What a look at a directory gave."""

    logs: tuple[tuple[LogFile, FileStat], ...]
    clocks: tuple[tuple[str, FileStat], ...]
    """Directory name (relative, empty for the top) and the entry of its clock file."""


def discover(transport: Transport, directory: str) -> DirectoryLogs:
    """List the logs under `directory`: known names in it and in the log directories below it.

    Where no name is known, every `.log` and `.out` file at the top counts as a driver's log.
    """
    logs: list[tuple[LogFile, FileStat]] = []
    clocks: list[tuple[str, FileStat]] = []
    unnamed: list[tuple[LogFile, FileStat]] = []
    waiting = [("", 0)]
    while waiting:
        relative, depth = waiting.pop(0)
        top = str(PurePosixPath(directory, relative))
        for entry in transport.listdir(top):
            # Plain joins: a thousand paths a second, as objects, took 2 % of a core.
            name = posixpath.join(relative, entry.name)
            file = posixpath.join(top, entry.name)
            if entry.is_dir:
                if depth + 1 < _DEPTH and _LOG_DIRECTORY.match(entry.name):
                    waiting.append((name, depth + 1))
            elif entry.name == CLOCK_NAME:
                clocks.append((relative, entry))
            elif (role := role_of(entry.name)) is not None:
                logs.append((LogFile(name, file, role), entry))
            elif depth == 0 and entry.name.endswith((".log", ".out")):
                unnamed.append((LogFile(name, file, Role.DRIVER), entry))
    return DirectoryLogs(tuple(logs or unnamed), tuple(clocks))
