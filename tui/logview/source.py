"""Source of a log's bytes: a file, or several merged files (`launcher.logs.merged_log`)."""

from __future__ import annotations

from typing import Protocol

from launcher.transports.base import FileStat, Transport


class LogSource(Protocol):
    """Bytes that grow at their end. Every method may block on the file system."""

    def prepare(self) -> float:
        """Do a part of the preparation for reading; returns its progress, from 0 to 1."""
        ...

    def stat(self) -> FileStat | None:
        """Return its size, and an `inode` that changes when it is replaced; None when it does not exist."""
        ...

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        ...

    def locate(self, path: str, offset: int) -> int | None:
        """Return the position of a file's byte in this source; None where it is not part of it."""
        ...


class FileSource:
    """One file, read through a transport."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    def prepare(self) -> float:
        """Return 1: a file needs no preparation."""
        return 1.0

    def stat(self) -> FileStat | None:
        """Return the file's size and inode."""
        return self._transport.stat(self._path)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file."""
        return self._transport.read(self._path, offset, size)

    def locate(self, path: str, offset: int) -> int | None:
        """Return the offset itself."""
        return offset if path == self._path else None
