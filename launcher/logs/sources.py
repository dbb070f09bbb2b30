"""Discovery of a run's logs, and of the part of the run that wrote each."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath

from launcher.logs.clock import CLOCK_NAME
from launcher.logs.events import FindingSeen, Role
from launcher.transports.base import FileStat, Transport

_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"ray-driver.*\.log$"), Role.DRIVER),
    (re.compile(r"ray-job.*\.log$"), Role.DRIVER),  # NeMo-Run's launcher (templates/ray.sub.j2)
    (re.compile(r"ray-head.*\.log$"), Role.HEAD),
    (re.compile(r"ray-workers?-.*\.log$"), Role.WORKER),
    (re.compile(r"(?:launcher\.log|slurm-.*\.out|sbatch_.*\.out)$"), Role.SLURM),
    (re.compile(r"companion.*\.log$"), Role.COMPANION),
)
# Names that other launchers give their logs; mostly the role is a part of them.
_ROLE_IN_NAME = re.compile(
    r"(?:^|.*[-_.])(?P<role>driver|head|worker|workers|slurm|companion)(?:[-_.\d].*)?\.(?:log|out|err)$"
)
_LOG_DIRECTORY = re.compile(r"(?:.*-logs|logs)$")
_DEPTH = 3
"""A run directory holds `logs/<job>-logs/ray-driver.log`."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log to follow."""

    name: str
    """Displayed name: relative to the directory being watched."""
    path: str
    role: Role


@lru_cache(maxsize=4096)
def role_of(name: str) -> Role | None:
    """Return the role in a file's name, or None."""
    base = PurePosixPath(name).name
    role = next((role for pattern, role in _ROLES if pattern.match(base)), None)
    if role is None and (match := _ROLE_IN_NAME.match(base)):
        return Role(match["role"].removesuffix("s"))
    return role


@dataclass(frozen=True, slots=True)
class DirectoryLogs:
    """Logs and clock files under a directory."""

    logs: tuple[tuple[LogFile, FileStat], ...]
    clocks: tuple[tuple[str, FileStat], ...]
    """Directory name (relative, empty for the top) and the entry of its clock file."""


@dataclass(frozen=True, slots=True)
class LogLocations:
    """Locations of a job's logs at this moment."""

    directories: Mapping[str, str] = field(default_factory=dict)
    """Directory -> prefix of the names of its logs."""
    files: tuple[LogFile, ...] = ()
    missing: tuple[FindingSeen, ...] = ()
    """Warnings about logs that cannot be found or read."""


def discover(transport: Transport, directory: str) -> DirectoryLogs:
    """List the logs under `directory`: names with a role, in it and in the log directories below it.

    Where no name has a role, every `.log` and `.out` file at the top counts as a driver's log.

    Raises:
        TransportError: a directory cannot be listed.
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
