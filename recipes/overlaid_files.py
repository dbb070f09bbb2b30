"""A file that lies nowhere: it appears on another machine to code that takes paths, and is kept in memory.

What the file inherits is read there, and nothing is written there.
"""

from __future__ import annotations

import os
import posixpath
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from recipes.files import ChangedOnDiskError, unified_diff
from recipes.remote_path import RemoteFiles, RemotePath, remote_path_type


class OverlaidFiles:
    """Files of another machine, and one more (`recipes.remote_path.RemoteFiles`)."""

    def __init__(self, below: RemoteFiles, path: str) -> None:
        self._below = below
        self._path = posixpath.normpath(path)
        self._data = b""
        self._changed_ns = time.time_ns()

    @property
    def machine(self) -> str:
        """Name of the machine, as the user gives it."""
        return self._below.machine

    @property
    def directory(self) -> str:
        """Directory that relative paths count from."""
        return self._below.directory

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the user's shell there."""
        return self._below.environment

    def _is_own(self, path: str) -> bool:
        return posixpath.normpath(path) == self._path

    def status(self, path: str) -> os.stat_result:
        """Return what `stat` says of an absolute path."""
        if not self._is_own(path):
            return self._below.status(path)
        seconds = self._changed_ns / 1e9
        times = (int(seconds),) * 3
        mode = stat.S_IFREG | 0o600
        return os.stat_result(
            (mode, 0, 0, 1, 0, 0, len(self._data), *times, *(seconds,) * 3, *(self._changed_ns,) * 3)
        )

    def look_again(self, path: str) -> None:
        """Forget what was listed of a directory."""
        self._below.look_again(path)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, without that of the file."""
        return self._below.names(path)

    def below(self, path: str) -> list[str]:
        """Return the paths of all files below a directory, without that of the file."""
        return self._below.below(path)

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        return self._data if self._is_own(path) else self._below.read(path)

    def real(self, path: str) -> str:
        """Return a path without symbolic links."""
        if self._is_own(path):
            folder, name = posixpath.split(self._path)
            return posixpath.join(self._below.real(folder), name)
        return self._below.real(path)

    def prefetch_checkout(self, root: str) -> None:
        """Fetch the sources of a checkout that are not at hand, in one go."""
        self._below.prefetch_checkout(root)

    def save(self, path: str, data: bytes, opened: bytes | None) -> None:
        """Replace a file's content, if it still is what it was when it was opened.

        Raises:
            ChangedOnDiskError: it is not.
        """
        if not self._is_own(path):
            self._below.save(path, data, opened)
            return
        if self._data not in (opened, data):
            diff = unified_diff(opened or b"", self._data, path, f"{path} (now)")
            raise ChangedOnDiskError(Path(path), diff)
        self.put(data)

    def put(self, data: bytes) -> None:
        """Give the file its content."""
        self._data, self._changed_ns = data, time.time_ns()


def overlaid(base: RemotePath, name: str, text: str) -> RemotePath:
    """Return a path beside another one, of a file that is kept in memory with this text."""
    path = str(base.absolute().parent / name)
    files = OverlaidFiles(base.remote, path)
    files.put(text.encode("utf-8"))
    return remote_path_type(files)(path)
