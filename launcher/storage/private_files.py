"""Small files that only the user may read, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from recipes.limits import Limit
from recipes.reading import read_regular

_FILE = Limit("size of a draft", 32 << 20, "bytes", "a recipe has at most 1 MiB")


def write_private(path: Path, data: bytes, *, flush: bool = False) -> None:
    """Write a file of mode 600 atomically; a missing directory is made with mode 700.

    Without `flush` the bytes survive the end of the process, not that of the machine; it takes 0.1 ms
    instead of some 10 ms on a disk.

    Raises:
        OSError: the file cannot be written; an earlier one is unchanged.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_private(path: Path) -> bytes:
    """Read a file; raises `OSError`, also for one that is too large, no regular file, or another user's."""
    data = read_regular(path, _FILE)
    if os.stat(path).st_uid not in (os.geteuid(), 0):
        raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
    return data
