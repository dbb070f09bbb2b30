"""Reading and writing of files on this machine: a part at once, a file as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path

from launcher.transports.replies import WHOLE_FILE_BYTES, too_large_error


def read_part(path: str, offset: int, size: int) -> bytes:
    """Return up to `size` bytes from `offset`; all up to the end for -1.

    Raises:
        OSError: the file cannot be read, or is too large to be read whole.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        length = size if size >= 0 else max(os.fstat(descriptor).st_size - offset, 0)
        if size < 0 and length > WHOLE_FILE_BYTES:
            raise too_large_error(path)
        return os.pread(descriptor, length, offset)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Make a directory and its parents, writable by the user alone whatever the umask.

    Raises:
        OSError: it cannot be made.
    """
    if path.is_dir():
        return
    if path.parent != path:
        make_directory(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o755)
        return
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Write a file under its name only when it is complete.

    Raises:
        OSError: it cannot be written, or the name is that of a device, pipe or socket that it would
            replace (root could replace `/dev/stdout`).
    """
    make_directory(path.parent)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(kind := path.stat().st_mode) and not stat.S_ISDIR(kind):
            raise OSError(errno.EINVAL, "not a regular file; give another name")
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
