"""What a transport does. Nothing else in the program touches files of runs or starts processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileStat:
    """A file or directory, as `stat` tells."""

    name: str
    size: int
    mtime: float
    inode: int
    is_dir: bool


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended; text is decoded and cleaned of control sequences."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, told apart from a later one with the same number."""

    host: str
    boot: str
    """The kernel's boot id: numbers and start times begin anew with each boot."""
    pid: int
    started: int
    """Start time in clock ticks after boot (proc(5), stat, field 22)."""


class Transport(Protocol):
    """Commands and files of one machine. Every call ends within a deadline or raises `TransportError`."""

    @property
    def host(self) -> str:
        """Name of the machine."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        """Run a command to its end. `env` replaces the whole environment."""
        ...

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries with their sizes, sorted by name."""
        ...

    def stat(self, path: str) -> FileStat | None:
        """Return what is at `path`, or None."""
        ...

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Return up to `size` bytes from `offset`; all that is there for -1."""
        ...

    def write_atomic(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file whole or not at all; missing directories are made."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; fine when it is there."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and what is in it."""
        ...

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, output: str) -> ProcessId:
        """Start a process that outlives this program, in a session of its own; its output goes to a file."""
        ...

    def alive(self, process: ProcessId) -> bool | None:
        """Tell whether the process still runs; None where this machine cannot know."""
        ...

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal to the process, if it still is the same one; False when it is gone."""
        ...

    def find_process(self, assignment: str) -> ProcessId | None:
        """Return the oldest process of this user whose environment began with `NAME=value` in it."""
        ...
