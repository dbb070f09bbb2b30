"""Where a log's bytes come from: a file, or several files merged."""

from __future__ import annotations

from typing import Protocol

from launcher.transports.base import FileStat, Transport


class LogSource(Protocol):
    """Bytes that grow at their end. Every method may block on the file system."""

    def prepare(self) -> float:
        """Do a part of what comes before reading; returns how much of it is done, 1 for all."""
        ...

    def stat(self) -> FileStat | None:
        """Return its size, and an `inode` that changes when it begins anew; None when it is not there."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        ...

    def locate(self, path: str, offset: int) -> int | None:
        """Return where a byte of a file is; None where it is not in here."""
        ...


class FileSource:
    """One file, read through a transport."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def prepare(self) -> float:
        """Say that nothing is to be done before."""
        return 1.0

    def stat(self) -> FileStat | None:
        """Return what the file system says."""
        return self._transport.stat(self._path)

    def read(self, offset: int, size: int) -> bytes:
        """Read from the file."""
        return self._transport.read(self._path, offset, size)

    def locate(self, path: str, offset: int) -> int | None:
        """Return the offset as it is."""
        return offset if path == self._path else None
