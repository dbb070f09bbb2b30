"""Copies of runs from another machine, file by file, continued where they were broken off.

A part of a file has the time of the file's last change in its name, so that it is continued only while the
file is the same. A log that has grown is continued from what is here. Keys are never copied.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from launcher.errors import ConnectionLostError, InputError, TransportError
from launcher.runs import SECRETS, Run
from launcher.storage.size import gigabytes
from launcher.text import clean
from launcher.transports.base import Transport

CHUNK_BYTES = 4 << 20
"""Bytes of one read: what is lost at most when the connection breaks."""
CHECKPOINTS = "checkpoints"
_LIST_TIMEOUT_S = 120.0
_TRIES = 6
"""Reads of one chunk: with the pauses of the connection they go on for a minute."""
_SIZE, _TIME = re.compile("[0-9]{1,18}"), re.compile(r"-?[0-9]{1,11}(\.[0-9]{0,20})?")
Progress = Callable[[str, int, int], None]
"""Gets the file, and the bytes that are here of all."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a run on another machine."""

    path: str
    """Relative to the run's directory."""
    size: int
    mtime: float

    @property
    def is_log(self) -> bool:
        """Whether it only grows."""
        return self.path.endswith((".log", ".out", ".err"))

    @property
    def is_checkpoint(self) -> bool:
        """Whether it lies in a directory of checkpoints."""
        return CHECKPOINTS in PurePosixPath(self.path).parts[:-1]


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What was copied, and what was not."""

    directory: Path
    files: int
    bytes: int
    """Bytes of all files."""
    read: int
    """Bytes that were read this time."""
    left_out: int
    """Bytes of checkpoints that were not asked for."""


def fetch_run(
    transport: Transport,
    run: Run,
    target: Path,
    *,
    checkpoints: bool = False,
    progress: Progress = lambda *_: None,
    sleep: Callable[[float], None] = time.sleep,
) -> FetchResult:
    """Copy a run's directory below `target`; what is here already is not read again.

    Raises:
        InputError: something else has the run's name there, or it cannot be written.
        TransportError: the machine gives no answer; the next call goes on from there.
    """
    directory = target / run.spec.id
    found = list_files(transport, run.directory)
    files = [item for item in found if checkpoints or not item.is_checkpoint]
    total, read = sum(item.size for item in files), 0
    try:
        missing = [item for item in files if not _is_here(directory / item.path, item)]
        done = total - sum(item.size for item in missing)
        _require_room(directory, total - done)
        for item in missing:
            path = directory / item.path
            path.parent.mkdir(parents=True, exist_ok=True)
            new = _fetch(transport, run.directory, item, path, done, total, progress, sleep)
            done, read = done + item.size, read + new
            progress(item.path, done, total)
    except OSError as error:
        raise InputError(
            f"the run cannot be copied there: {error.strerror or error}", where=directory
        ) from error
    left_out = sum(item.size for item in found) - total
    return FetchResult(directory, len(files), total, read, left_out)


def _require_room(directory: Path, missing: int) -> None:
    """Refuse to copy more bytes than there is room for: a sparse file has any size."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if missing > free:
        raise InputError(
            f"{gigabytes(missing)} are to be copied, and {gigabytes(free)} are free",
            where=directory,
            fix="Give another directory with --to.",
        )


def _is_here(path: Path, item: RemoteFile) -> bool:
    """Return whether a file was copied already."""
    status = path.lstat() if os.path.lexists(path) else None
    return status is not None and status.st_size == item.size and abs(status.st_mtime - item.mtime) < 1


def list_files(transport: Transport, directory: str) -> list[RemoteFile]:
    """Return the files below a directory, without keys and unfinished ones, small ones first.

    Raises:
        TransportError: it cannot be listed.
    """
    # A name with a line break would be read as a file of its own, anywhere.
    argv = ["find", "-H", directory, "-name", "*\n*", "-prune", "-o", "-type", "f", "-printf", r"%s %T@ %P\n"]
    done = transport.run(argv, env=None, timeout_s=_LIST_TIMEOUT_S)
    if done.code and not done.stdout:
        raise TransportError(f"cannot list {clean(directory)}: {done.stderr.strip().rpartition(': ')[2]}")
    return sorted(_listed(done.stdout.splitlines()), key=lambda item: (item.size, item.path))


def _listed(lines: Iterable[str]) -> Iterable[RemoteFile]:
    for line in lines:
        size, _, rest = line.partition(" ")
        mtime, _, path = rest.partition(" ")
        parts = PurePosixPath(path).parts
        hidden = any(part.startswith(".") for part in parts)
        if not _SIZE.fullmatch(size) or not _TIME.fullmatch(mtime) or not parts or hidden or path == SECRETS:
            continue
        if path.startswith("/") or "\0" in path:  # not below the directory: a machine may answer anything
            continue
        yield RemoteFile(path, int(size), float(mtime))


def _fetch(
    transport: Transport,
    root: str,
    item: RemoteFile,
    path: Path,
    done: int,
    total: int,
    progress: Progress,
    sleep: Callable[[float], None],
) -> int:
    """Copy one file that is not here, or not whole; return the bytes that were read."""
    part = path.with_name(f".{path.name}.{int(item.mtime * 1000)}.part")
    if item.is_log and path.is_file() and not path.is_symlink() and not part.exists():
        path.replace(part)
    begin = min(part.stat().st_size, item.size) if part.exists() else 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(part, flags, 0o600), "wb") as file:
        file.truncate(begin)
        file.seek(begin)
        position = begin
        while position < item.size:
            size = min(CHUNK_BYTES, item.size - position)
            data = _read(transport, f"{root}/{item.path}", position, size, sleep)
            if not data:  # it has become shorter
                break
            file.write(data)
            file.flush()
            position += len(data)
            progress(item.path, done + position, total)
    os.utime(part, (item.mtime, item.mtime))
    part.replace(path)
    for stale in path.parent.glob(f".{path.name}.*.part"):
        stale.unlink()
    return position - begin


def _read(transport: Transport, path: str, offset: int, size: int, sleep: Callable[[float], None]) -> bytes:
    """Read a chunk; after a break, once the connection is made again."""
    for attempt in range(1, _TRIES + 1):
        try:
            return transport.read(path, offset, size)
        except ConnectionLostError:
            if attempt == _TRIES:
                raise
            sleep(min(2.0**attempt, 15.0))
    raise AssertionError("unreachable")
