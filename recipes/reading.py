"""Bounded reading of files that somebody else may have made: regular files only, up to a size, within a time.

A FIFO, a device or a file of /proc could block for good or never end; a mount whose server is gone hangs
every call. So a file is looked at before it is opened, opened without waiting, and read on a thread.
"""

from __future__ import annotations

import errno
import os
import queue
import stat
from typing import TYPE_CHECKING, Literal, TypeVar

from recipes.file_calls import FileThread, absolute, no_answer, patience
from recipes.limits import FILE_SECONDS, amount
from recipes.remote_path import RemotePath

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from recipes.limits import Limit

Result = TypeVar("Result")
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_PSEUDO_FILE_SYSTEMS = ("/proc", "/sys")
"""Their files count as regular and have size 0; some block, some never end."""
_PIECE = 1 << 20


class IrregularFileError(OSError):
    """Error for what is no regular file: `strerror` says what it is."""


class TooLargeError(OSError):
    """Error for a file above its limit: `strerror` says which."""


def within(action: Callable[[], Result], deadline_s: float, path: str | Path = "") -> Result:
    """Return what an action returns, on a thread of its own; one that hangs costs that thread.

    `path` is what it asks for: where a call on that has no answer yet, no other is made.

    Raises:
        TimeoutError: it takes longer.
        Exception: whatever the action raises.
    """
    outcomes: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

    def call() -> None:
        try:
            outcomes.put((action(), None))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            outcomes.put((None, error))

    where = absolute(os.fspath(path)) if path else ""
    limit_s = patience(where, deadline_s)
    thread = FileThread(call)
    thread.start()
    try:
        result, error = outcomes.get(timeout=limit_s)
    except queue.Empty:
        thread.unanswered = where
        raise no_answer(str(path), limit_s, deadline_s) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


def kind_of(
    path: str | Path, *, deadline_s: float = FILE_SECONDS.value
) -> Literal["", "file", "directory", "other"]:
    """Return what a path leads to; "" for nothing.

    Raises:
        TimeoutError: the file system does not answer.
        OSError: it refuses.
    """
    try:
        mode = within(lambda: os.stat(path), deadline_s, path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null byte in the name
        return ""
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return ""
        raise
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def read_limited(path: Path, limit: Limit, *, deadline_s: float = FILE_SECONDS.value) -> bytes:
    """Return a regular file's bytes.

    Raises:
        IrregularFileError: it is a FIFO, a device, a socket, or a file of /proc or /sys.
        TooLargeError: it is larger than the limit.
        TimeoutError: the file system does not answer.
        IsADirectoryError: it is a directory.
        OSError: it cannot be read.
    """
    if isinstance(path, RemotePath):
        return read_regular(path, limit)
    return within(lambda: read_regular(path, limit), deadline_s, path)


def read_regular(path: Path, limit: Limit) -> bytes:
    """Return a regular file's bytes like `read_limited`, but on this thread: a checkout has many files."""
    if isinstance(path, RemotePath):
        return _read_remote(path, limit)
    try:
        status = os.stat(path)
    except ValueError as error:  # a null byte in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    _refuse_irregular(status, path)  # opening a device can have effects
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        status = os.fstat(descriptor)
        _refuse_irregular(status, path)
        if status.st_size > limit.value:
            raise _too_large(limit, path)
        pieces, left = [], limit.value + 1
        while left > 0 and (piece := os.read(descriptor, min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise _too_large(limit, path)
    return b"".join(pieces)


def _read_remote(path: RemotePath, limit: Limit) -> bytes:
    """Return the bytes of a file of another machine, which has deadlines of its own."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise IrregularFileError(errno.EINVAL, f"{kind}, not a regular file", str(path))
    if str(path.absolute()).startswith(tuple(f"{mount}/" for mount in _PSEUDO_FILE_SYSTEMS)):
        raise IrregularFileError(errno.EINVAL, "a file of /proc or /sys, not a regular file", str(path))
    if status.st_size > limit.value:
        raise _too_large(limit, path)
    return path.read_bytes()


def _refuse_irregular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise IrregularFileError(errno.EINVAL, f"{kind}, not a regular file", str(path))
    for mount in _PSEUDO_FILE_SYSTEMS:
        if _device_of(mount) == status.st_dev:
            raise IrregularFileError(errno.EINVAL, f"a file of {mount}, not a regular file", str(path))


def _device_of(mount: str) -> int | None:
    try:
        return os.stat(mount).st_dev
    except OSError:
        return None


def _too_large(limit: Limit, path: Path) -> TooLargeError:
    return TooLargeError(errno.EFBIG, f"larger than {amount(limit.value, limit.unit)}", str(path))
