"""Transport for the machine that the program runs on.

Each file access runs in a thread with a deadline: a hanging file system must not hang the program.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import platform
import pwd
import queue
import shutil
import signal
import socket
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

from launcher.errors import InputError, TransportError
from launcher.signals import uninterrupted
from launcher.text import clean
from launcher.transports import local_streams
from launcher.transports.access_lists import listed_writers
from launcher.transports.base import Completed, FileStat, NewFile, Ownership, ProcessId, ReadRange
from launcher.transports.bounded_command import OutputTooLargeError, run_bounded
from launcher.transports.directory_scan import DirectoryScan, entry_of
from launcher.transports.local_files import make_directory, read_part, write_whole
from launcher.transports.replies import (
    CommandTimes,
    access_error,
    is_private_group,
    output_text,
)
from recipes.file_calls import FileThread, absolute, no_answer, patience
from recipes.locks import RecipeLock

Result = TypeVar("Result")
FILE_DEADLINE_S = 15.0
_OUTPUT_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
"""A job's output never goes where a link that somebody left points to."""


_Jobs = queue.SimpleQueue["Callable[[], None] | None"]


class _Caller:
    """Caller on one daemon thread. A call that hangs costs that thread; the next call gets a new one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: _Jobs | None = None
        self._thread: FileThread | None = None

    def __del__(self) -> None:
        """End the thread: one for each transport that was ever made would stay, with its part of the heap."""
        if self._jobs is not None:
            self._jobs.put(None)

    def call(
        self,
        action: Callable[[], Result],
        failure: str,
        path: str,
        deadline_s: float,
        reached: Callable[[], str] | None = None,
    ) -> Result:
        """Return what the action returns; `reached` tells the path that it asks for, where that changes.

        Raises:
            OSError: as the action does.
            TransportError: the file system does not answer within the deadline.
        """
        outcome: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

        def job() -> None:
            try:
                outcome.put((action(), None))
            except ValueError as error:  # an invalid path, such as one with a null byte
                outcome.put((None, OSError(errno.EINVAL, str(error))))
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                outcome.put((None, error))

        where = absolute(path)
        with self._lock:
            try:
                limit_s = patience(where, deadline_s)
            except TimeoutError as silence:
                raise _silence(failure, path, silence) from None
            if self._jobs is None:
                self._jobs = queue.SimpleQueue()
                self._thread = FileThread(partial(_serve, self._jobs))
                self._thread.start()
            self._jobs.put(job)
            try:
                result, error = outcome.get(timeout=limit_s)
            except queue.Empty:
                self._jobs.put(None)
                assert self._thread is not None
                self._thread.unanswered = reached() if reached is not None else where
                self._jobs = self._thread = None
                raise _silence(failure, path, no_answer(path, limit_s, deadline_s)) from None
        if error is not None:
            raise error
        return result  # type: ignore[return-value]


def _silence(failure: str, path: str, error: TimeoutError) -> TransportError:
    return TransportError(
        f"{failure} {path}: {error.strerror}",
        fix="Wait until the file system responds again; nothing is lost.",
    )


def _serve(jobs: _Jobs) -> None:
    while (job := jobs.get()) is not None:
        job()


class LocalTransport:
    """Commands and files of this machine."""

    def __init__(self, deadline_s: float = FILE_DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._caller = _Caller()
        self._commands = CommandTimes()

    def connect(self, port: int) -> socket.socket:
        """Return a connection to a port of this machine's loopback.

        Raises:
            TransportError: nothing listens there.
        """
        return local_streams.connected(port)

    def converse(self, argv: Sequence[str]) -> socket.socket:
        """Return the standard input and output of a command; it ends when that is closed.

        Raises:
            TransportError: it cannot be started.
        """
        return local_streams.conversation(argv)

    @property
    def host(self) -> str:
        """Name of this machine."""
        return platform.node()

    def environment(self) -> Mapping[str, str]:
        """Return the variables that this program was started with."""
        return os.environ

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        """Run a command to its end. `env` replaces the whole environment.

        Raises:
            TransportError: it cannot be run, or does not end in time.
        """
        self._commands.begin()
        try:
            completed = run_bounded(argv, env=env, cwd=cwd, timeout_s=timeout_s)
        except TimeoutError:
            raise TransportError(f"'{argv[0]}' did not end within {timeout_s:.0f} s") from None
        except OutputTooLargeError as error:
            raise TransportError(f"'{argv[0]}' printed {error}") from None
        except OSError as error:
            raise TransportError(f"'{argv[0]}' cannot be run: {error.strerror}") from error
        except ValueError as error:  # a null byte in an argument
            raise TransportError(f"'{clean(argv[0])}' cannot be run: {error}") from error
        return Completed(completed.code, output_text(completed.stdout), output_text(completed.stderr))

    def commands_within(self, seconds: float) -> int:
        """Return the number of commands begun within the last seconds."""
        return self._commands.within(seconds)

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries with their sizes, sorted by name.

        One that gives no answer is silent; the others are listed.

        Raises:
            TransportError: it cannot be listed.
        """
        return self._scanned(DirectoryScan(path))

    def stat(self, path: str) -> FileStat | None:
        """Return the entry of `path`; None if there is none.

        Raises:
            TransportError: it cannot be read.
        """
        try:
            return self._caller.call(
                lambda: entry_of(Path(path).name, os.stat(path)), "stat", path, self._deadline_s
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise access_error(error, "cannot stat", path) from error

    def ownership(self, path: str) -> Ownership | None:
        """Return who owns `path` and can write it; None if there is none.

        Raises:
            TransportError: it cannot be read.
        """
        try:
            status, others = self._caller.call(
                lambda: (os.stat(path), listed_writers(path)), "stat", path, self._deadline_s
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise access_error(error, "cannot stat", path) from error
        writers = _writable_by(status) or others
        return Ownership(_user_name(status.st_uid), status.st_uid == os.getuid(), writers)

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1.

        Raises:
            TransportError: the file cannot be read, or is too large to be read whole.
        """
        return self._access(lambda: read_part(path, offset, size), "cannot read", path)

    def looking_at(
        self, directories: Sequence[str], depth: int, pattern: str
    ) -> AbstractContextManager[None]:
        """Return a context without effect: files of this machine are looked at when they are asked for."""
        del directories, depth, pattern
        return contextlib.nullcontext()

    def looking_at_files(
        self, directories: Sequence[str], names: Sequence[str]
    ) -> AbstractContextManager[None]:
        """Return a context without effect."""
        del directories, names
        return contextlib.nullcontext()

    def read_ahead(self, ranges: Sequence[ReadRange]) -> None:
        """Do nothing: files of this machine are read when they are asked for."""

    def write_atomic(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file completely or not at all; missing directories are made.

        Raises:
            TransportError: the file cannot be written.
        """
        self._access(lambda: write_whole(Path(path), data, mode), "cannot write", path)

    def write_files(self, files: Sequence[NewFile]) -> None:
        """Write files in their order, each completely or not at all; missing directories are made.

        Raises:
            TransportError: one cannot be written; those before it are there.
        """
        for file in files:
            self.write_atomic(file.path, file.data, file.mode)

    def path(self, text: str) -> Path:
        """Return a path on this machine."""
        return Path(text)

    def real_path(self, path: str) -> str:
        """Return a path without symbolic links.

        Raises:
            TransportError: the file system does not answer.
        """
        return self._access(lambda: os.path.realpath(path), "cannot resolve", path)

    def change(self, path: str, change: Callable[[bytes | None], bytes]) -> None:
        """Read a file, change its content and write it, under the lock of `recipes.locks`.

        Raises:
            LockedError: another program holds the lock.
            InputError: it is a directory.
            TransportError: it cannot be read or written.
        """
        with RecipeLock(Path(path)):
            entry = self.stat(path)
            if entry is not None and entry.is_dir:
                raise InputError(f"{path} is a directory (expected a file)", where=path)
            self.write_atomic(path, change(None if entry is None else self.read(path)))

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; an existing one is fine.

        Raises:
            TransportError: it cannot be made.
        """
        self._access(lambda: make_directory(Path(path)), "cannot make", path)

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            TransportError: it cannot be removed.
        """
        self._access(lambda: Path(path).unlink(), "cannot remove", path)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and its contents.

        Raises:
            TransportError: it cannot be removed.
        """
        self._access(lambda: shutil.rmtree(path), "cannot remove", path)

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str, output: str) -> ProcessId:
        """Start a process that outlives this program, in its own session; its output is appended to a file.

        Raises:
            TransportError: it cannot be started.
        """
        try:
            # An interrupt between start and return would leave an unrecorded process.
            with uninterrupted():
                pid = os.posix_spawn(
                    "/bin/sh",
                    ["sh", "-c", 'cd -- "$0" && exec "$@"', cwd, *argv],
                    dict(env),
                    file_actions=(
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_OPEN, 1, output, _OUTPUT_FLAGS, 0o644),
                        (os.POSIX_SPAWN_DUP2, 1, 2),
                    ),
                    setsid=True,
                    setsigmask=(),
                    setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT),
                )
                _reap_later(pid)
                return ProcessId(self.host, _boot_id(), pid, _start_ticks(pid) or 0)
        except OSError as error:
            raise TransportError(f"'{argv[0]}' cannot be started: {error.strerror}") from error

    def alive(self, process: ProcessId) -> bool | None:
        """Return whether the process still runs; None where this machine cannot know."""
        if process.host != self.host:
            return None
        return process.boot == _boot_id() and _start_ticks(process.pid) == process.started

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal to the process; return False if it is gone.

        Raises:
            TransportError: it belongs to another user.
        """
        if not self.alive(process):
            return False
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise TransportError(f"process {process.pid} belongs to another user") from error
        return True

    def was_started_with(self, process: ProcessId, assignment: str) -> bool:
        """Return whether the user's process was started with `NAME=value` in its environment."""
        return bool(self.alive(process)) and _was_started_with(process.pid, assignment)

    def find_process(self, assignment: str) -> ProcessId | None:
        """Return the user's oldest process that was started with `NAME=value` in its environment."""
        processes = []
        for directory in Path("/proc").glob("[0-9]*"):
            pid = int(directory.name)
            if _was_started_with(pid, assignment) and (started := _start_ticks(pid)) is not None:
                processes.append((started, pid))
        if not processes:
            return None
        started, pid = min(processes)
        return ProcessId(self.host, _boot_id(), pid, started)

    def _scanned(self, scan: DirectoryScan) -> list[FileStat]:
        def where() -> str:
            return scan.where

        try:
            return self._caller.call(scan.run, "cannot list", scan.path, self._deadline_s, where)
        except OSError as error:
            raise access_error(error, "cannot list", scan.path) from error
        except TransportError:
            rest = scan.behind_silence()
            if rest is None:
                raise
        return self._scanned(rest)

    def _access(self, action: Callable[[], Result], failure: str, path: str) -> Result:
        try:
            return self._caller.call(action, failure, path, self._deadline_s)
        except OSError as error:
            raise access_error(error, failure, path) from error


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _writable_by(status: os.stat_result) -> str:
    """Return who besides the owner can write; a group of the owner alone is not counted."""
    if status.st_mode & stat.S_IWOTH:
        return "everybody"
    if not status.st_mode & stat.S_IWGRP:
        return ""
    owner = _user_name(status.st_uid)
    try:
        group = grp.getgrgid(status.st_gid)
    except KeyError:
        return f"group {status.st_gid}"
    return "" if is_private_group(group.gr_name, owner, group.gr_mem) else f"group {group.gr_name}"


def _was_started_with(pid: int, assignment: str) -> bool:
    directory = Path("/proc", str(pid))
    try:
        if directory.stat().st_uid != os.getuid():
            return False
        return assignment.encode() in (directory / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or gone
        return False


def _reap_later(pid: int) -> None:
    """Wait for the child in the background, so that it does not stay as a zombie."""
    threading.Thread(target=os.waitpid, args=(pid, 0), name=f"reap-{pid}", daemon=True).start()


def this_process() -> ProcessId:
    """Return the process that this program runs in."""
    pid = os.getpid()
    return ProcessId(platform.node(), _boot_id(), pid, _start_ticks(pid) or 0)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _start_ticks(pid: int) -> int | None:
    """Return a process's start time in clock ticks after boot; None for one that is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])
