"""Discovery of a run's logs, and of the part of the run that wrote each."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from launcher.errors import ConnectionLostError, TransportError
from launcher.logs.clock import CLOCK_NAME
from launcher.logs.events import FindingSeen, Role
from launcher.logs.gpu_tables import node_of_table
from launcher.logs.roles import ContentRoles, is_log_name, role_of
from launcher.transports.base import FileStat, Transport

_LOG_DIRECTORY = re.compile(r"(?:.*-logs|logs)$")
LOG_DIRECTORIES = "*logs"
"""Names of directories that may hold logs, as a pattern of the shell."""
DEPTH = 3
"""A run directory holds `logs/<job>-logs/ray-driver.log`."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log to follow."""

    name: str
    """Displayed name: relative to the directory being watched."""
    path: str
    role: Role
    mixed: bool = False
    """Several parts of the run may print into it: its name shows none."""


@dataclass(frozen=True, slots=True)
class DirectoryLogs:
    """Logs and clock files under a directory."""

    logs: tuple[tuple[LogFile, FileStat], ...]
    clocks: tuple[tuple[str, FileStat], ...]
    """Directory name (relative, empty for the top) and the entry of its clock file."""
    gpu_tables: tuple[tuple[str, FileStat], ...] = ()
    """Path and entry of each table of GPU use."""
    unreadable: tuple[str, ...] = ()
    """Directories below the first that cannot be listed, and why."""


@dataclass(frozen=True, slots=True)
class LogLocations:
    """Locations of a job's logs at this moment."""

    directories: Mapping[str, str] = field(default_factory=dict)
    """Directory -> prefix of the names of its logs."""
    files: tuple[LogFile, ...] = ()
    missing: tuple[FindingSeen, ...] = ()
    """Warnings about logs that cannot be found or read."""
    working_directory: str = ""
    """Where the job was submitted from; empty where unknown."""


def _entries(transport: Transport, directory: str, unreadable: list[str] | None) -> list[FileStat]:
    """Return a directory's entries; why there are none goes into a list, or is raised where there is none."""
    try:
        return transport.listdir(directory)
    except ConnectionLostError:  # that says nothing about the directory
        raise
    except TransportError as error:
        if unreadable is None:
            raise
        unreadable.append(error.what)
        return []


def discover(transport: Transport, directory: str, contents: ContentRoles | None = None) -> DirectoryLogs:
    """List the logs under `directory`: names with a role, in it and in the log directories below it.

    A log whose name has no role has that which its content shows. Where no log has a role, every `.log`,
    `.out` and `.err` file at the top counts as a driver's log.

    Raises:
        TransportError: the directory cannot be listed; one below it hides no other.
    """
    logs: list[tuple[LogFile, FileStat]] = []
    clocks: list[tuple[str, FileStat]] = []
    unnamed: list[tuple[LogFile, FileStat]] = []
    tables: list[tuple[str, FileStat]] = []
    unreadable: list[str] = []
    waiting = [("", 0)]
    while waiting:
        relative, depth = waiting.pop(0)
        top = str(PurePosixPath(directory, relative))
        for entry in _entries(transport, top, unreadable if relative else None):
            # Plain joins: a thousand paths a second, as objects, took 2 % of a core.
            name = posixpath.join(relative, entry.name)
            file = posixpath.join(top, entry.name)
            if entry.is_dir:
                if depth + 1 < DEPTH and _LOG_DIRECTORY.match(entry.name):
                    waiting.append((name, depth + 1))
            elif entry.name == CLOCK_NAME:
                clocks.append((relative, entry))
            elif node_of_table(entry.name) is not None:
                tables.append((file, entry))
            elif (role := role_of(entry.name)) is not None:
                logs.append((LogFile(name, file, role), entry))
            elif is_log_name(entry.name):
                role = contents.of(file, entry) if contents is not None else None
                if role is not None:
                    logs.append((LogFile(name, file, role, mixed=role is Role.DRIVER), entry))
                elif depth == 0:
                    unnamed.append((LogFile(name, file, Role.DRIVER, mixed=True), entry))
    return DirectoryLogs(tuple(logs or unnamed), tuple(clocks), tuple(tables), tuple(unreadable))
