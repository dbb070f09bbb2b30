"""The login node that is examined: its kernel, its directories and processes; this machine, or a host."""

from __future__ import annotations

import os
import platform
import re
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from launcher.errors import TransportError
from launcher.storage import quotas
from launcher.storage.host_directories import HostDirectory, host_directory

if TYPE_CHECKING:
    from launcher.transports.base import Transport

_TIMEOUT_S = 20.0
_KERNEL = "id -u; uname -m; ulimit -Sn; ulimit -Hn"
_PROGRAM = 'PATH=$1; command -v -- "$2"'
_CLOCK = """
file=$(mktemp -p "$1" .distill-tui.XXXXXXXX) || exit 1
before=$(date +%s.%N); echo x >"$file"; changed=$(stat -c %.9Y -- "$file"); after=$(date +%s.%N)
rm -f -- "$file"; echo "$before $changed $after"
"""
_PROCESSES = """
for directory in /proc/[0-9]*; do
  [ -O "$directory" ] && grep -a -q -e raylet -e gcs_server "$directory/cmdline" 2>/dev/null || continue
  printf '= %s\\n' "${directory#/proc/}"
  tr '\\n\\0' ' \\n' <"$directory/cmdline" 2>/dev/null | head -c 4096
  echo
done
"""
"""Words of a command line are lines below its process's number."""


class LoginNode(Protocol):
    """A login node, as checks of it ask; what a host does not tell raises `TransportError`."""

    @property
    def user_id(self) -> int:
        """The user's number there."""
        ...

    @property
    def architecture(self) -> str:
        """Kind of machine, such as `x86_64`."""
        ...

    @property
    def open_files(self) -> tuple[int, int | None]:
        """Soft and hard limit of open files of the user's shell; None is no limit."""
        ...

    def mounts(self) -> str:
        """Return the mount table."""
        ...

    def nearest(self, path: Path) -> Path:
        """Return a path without links, or its nearest parent that exists."""
        ...

    def refusal(self, path: Path) -> str:
        """Return why a directory cannot be made and written; empty where it can."""
        ...

    def clock_difference(self, directory: Path) -> float | None:
        """Return how far the clock is ahead of the file system's; None where it does not tell its time."""
        ...

    def processes(self) -> Iterator[tuple[int, Sequence[bytes]]]:
        """Yield the user's processes, those of Ray at least: numbers and words of the command lines.

        Raises:
            OSError: they cannot be listed.
        """
        ...

    def program(self, name: str, folders: Sequence[str]) -> str | None:
        """Return the path of a program in one of some directories; None where there is none."""
        ...


@dataclass(frozen=True)
class ThisLoginNode:
    """The machine that the program runs on."""

    transport: Transport
    proc: Path

    @property
    def user_id(self) -> int:
        """The user's number."""
        return os.getuid()

    @property
    def architecture(self) -> str:
        """Kind of machine."""
        return platform.machine()

    @property
    def open_files(self) -> tuple[int, int | None]:
        """Soft and hard limit of open files; None is no limit."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        return soft, None if hard == resource.RLIM_INFINITY else hard

    def mounts(self) -> str:
        """Return the mount table."""
        return quotas.mounts()

    def nearest(self, path: Path) -> Path:
        """Return a path without links, or its nearest parent that exists."""
        return quotas.nearest(path)

    def refusal(self, path: Path) -> str:
        """Return why a directory cannot be made and written; empty where it can."""
        existing = quotas.nearest(path)
        return _refusal(
            str(existing),
            is_directory=existing.is_dir(),
            is_writable=os.access(existing, os.W_OK | os.X_OK),
        )

    def clock_difference(self, directory: Path) -> float | None:
        """Return how far the clock is ahead of the file system's, by a file that is gone at once."""
        try:
            with tempfile.TemporaryFile(dir=quotas.nearest(directory)) as file:
                before = time.time()
                file.write(b"x")
                file.flush()
                os.fsync(file.fileno())
                changed, after = os.fstat(file.fileno()).st_mtime, time.time()
        except OSError:
            return None
        return _difference(before, changed, after)

    def processes(self) -> Iterator[tuple[int, Sequence[bytes]]]:
        """Yield the user's processes."""
        for entry in os.scandir(self.proc):
            if not entry.name.isdigit():
                continue
            try:
                if entry.stat().st_uid == os.getuid():
                    yield int(entry.name), Path(entry.path, "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended meanwhile
                continue

    def program(self, name: str, folders: Sequence[str]) -> str | None:
        """Return the path of a program in one of some directories."""
        paths = (f"{folder}/{name}" for folder in folders)
        return next((path for path in paths if self.transport.stat(path) is not None), None)


@dataclass(frozen=True)
class HostLoginNode:
    """A host over SSH; each question is one command there."""

    transport: Transport
    home: str
    mount_table: quotas.QuotaReader
    """Has read the mount table."""
    _directories: dict[str, HostDirectory] = field(default_factory=dict, init=False, repr=False)

    def _ask(self, script: str, *arguments: str) -> str:
        done = self.transport.run(["sh", "-c", script, "sh", *arguments], timeout_s=_TIMEOUT_S)
        if done.code != 0:
            raise TransportError(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.code}")
        return done.stdout

    @cached_property
    def _kernel(self) -> list[str]:
        return self._ask(_KERNEL).split("\n")

    @property
    def user_id(self) -> int:
        """The user's number there."""
        return _number(self._kernel[0])

    @property
    def architecture(self) -> str:
        """Kind of machine."""
        return self._kernel[1]

    @property
    def open_files(self) -> tuple[int, int | None]:
        """Soft and hard limit of open files; None is no limit."""
        soft, hard = self._kernel[2:4]
        return (1 << 62 if soft == "unlimited" else _number(soft)), (
            None if hard == "unlimited" else _number(hard)
        )

    def mounts(self) -> str:
        """Return the mount table."""
        return self.mount_table.mounts()

    def _directory(self, path: Path) -> HostDirectory:
        text = str(path.absolute())
        if text not in self._directories:
            answer = host_directory(self.transport, text, self.home)
            if answer is None:
                raise TransportError(f"{path} does not answer")
            self._directories[text] = answer
        return self._directories[text]

    def nearest(self, path: Path) -> Path:
        """Return a path without links, or its nearest parent that exists."""
        return self.transport.path(self._directory(path).existing)

    def refusal(self, path: Path) -> str:
        """Return why a directory cannot be made and written; empty where it can."""
        answer = self._directory(path)
        return _refusal(answer.existing, is_directory=answer.is_directory, is_writable=answer.is_writable)

    def clock_difference(self, directory: Path) -> float | None:
        """Return how far the clock is ahead of the file system's, by a file that is gone at once."""
        try:
            before, changed, after = map(float, self._ask(_CLOCK, str(self.nearest(directory))).split())
        except (TransportError, ValueError):
            return None
        return _difference(before, changed, after)

    def processes(self) -> Iterator[tuple[int, Sequence[bytes]]]:
        """Yield the user's processes of Ray."""
        for part in re.split(r"(?m)^= (?=\d+$)", self._ask(_PROCESSES))[1:]:
            pid, *words = part.split("\n")
            yield int(pid), [word.encode("utf-8", "replace") for word in words]

    def program(self, name: str, folders: Sequence[str]) -> str | None:
        """Return the path of a program in one of some directories."""
        arguments = [_PROGRAM, "sh", ":".join(folders), name]
        done = self.transport.run(["sh", "-c", *arguments], timeout_s=_TIMEOUT_S)
        path = done.stdout.strip()
        return path if path.startswith("/") else None


def _refusal(existing: str, *, is_directory: bool, is_writable: bool) -> str:
    if not is_directory:
        return f"{existing} is no directory"
    return "" if is_writable else f"{existing} cannot be written"


def _difference(before: float, changed: float, after: float) -> float:
    return before - changed if changed < before else min(after - changed, 0.0)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise TransportError(f"an answer cannot be read: {text[:80]}")
    return int(text)
