"""Protocol of transports: only they access files of runs and start processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from recipes.remote_path import RemotePath


@dataclass(frozen=True, slots=True)
class FileStat:
    """File or directory, as reported by `stat`."""

    name: str
    size: int
    mtime: float
    inode: int
    is_dir: bool
    is_silent: bool = False
    """Whether the file system gave no answer about it: neither its kind nor size and time are known."""


@dataclass(frozen=True, slots=True)
class ReadRange:
    """Part of a file."""

    path: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class NewFile:
    """File to write."""

    path: str
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns a file or directory, and who else can write it."""

    user: str
    is_own: bool
    """Whether that is the user."""
    writable_by: str
    """Others who can write it: `group NAME` or `everybody`; empty for nobody."""


@dataclass(frozen=True, slots=True)
class Completed:
    """Command that ended; its output is decoded and cleaned of control sequences."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class ProcessId:
    """Process, distinguishable from a later one with the same number."""

    host: str
    boot: str
    """Boot id of the kernel: process numbers and start times restart with each boot."""
    pid: int
    started: int
    """Start time in clock ticks after boot (proc(5), stat, field 22)."""


class Transport(Protocol):
    """Commands and files of one machine.

    Every call returns within a deadline; what fails or takes longer raises `TransportError`.
    """

    @property
    def host(self) -> str:
        """Name of the machine."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the user's shell on the machine."""
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
        """Return the entry of `path`; None if there is none."""
        ...

    def ownership(self, path: str) -> Ownership | None:
        """Return who owns `path` and can write it; None if there is none."""
        ...

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1."""
        ...

    def looking_at(
        self, directories: Sequence[str], depth: int, pattern: str
    ) -> AbstractContextManager[None]:
        """Look at directories, and those below whose names match, at once; within, listings are of then.

        What is near is looked at when it is asked for.
        """
        ...

    def looking_at_files(
        self, directories: Sequence[str], names: Sequence[str]
    ) -> AbstractContextManager[None]:
        """Look at the files of some names in the directories below others at once, and read them."""
        ...

    def read_ahead(self, ranges: Sequence[ReadRange]) -> None:
        """Read parts of files at once that will be read soon; without effect outside of a look."""
        ...

    def write_atomic(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file completely or not at all; missing directories are made."""
        ...

    def write_files(self, files: Sequence[NewFile]) -> None:
        """Write files in their order, each completely or not at all; missing directories are made."""
        ...

    def path(self, text: str) -> Path:
        """Return a path on the machine, for code that takes paths."""
        ...

    def real_path(self, path: str) -> str:
        """Return a path without symbolic links."""
        ...

    def change(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """Read a file, change its content and write it, under the lock that other programs respect, too.

        `change` gets None where there is no file; it may be called again where the connection breaks.
        """
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; an existing one is fine."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its contents."""
        ...

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, output: str) -> ProcessId:
        """Start a process that outlives this program, in its own session; output is appended to a file."""
        ...

    def alive(self, process: ProcessId) -> bool | None:
        """Return whether the process still runs; None where this machine cannot know."""
        ...

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal to the process; return False if it is gone."""
        ...

    def was_started_with(self, process: ProcessId, assignment: str) -> bool:
        """Return whether the user's process was started with `NAME=value` in its environment."""
        ...

    def find_process(self, assignment: str) -> ProcessId | None:
        """Return the user's oldest process that was started with `NAME=value` in its environment."""
        ...


def is_remote(transport: Transport) -> bool:
    """Return whether a transport's machine is another one."""
    return isinstance(transport.path("/"), RemotePath)


def user_of(transport: Transport, environment: Mapping[str, str]) -> str:
    """Return the name of the user on a transport's machine."""
    name = environment.get("USER") or environment.get("LOGNAME")
    return name or transport.run(["id", "-un"], timeout_s=10).stdout.strip()
