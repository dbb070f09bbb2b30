"""What reads and changes files of a host: by SFTP or by `sh`, and the transport that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from launcher.transports.base import FileStat
from launcher.transports.ssh.connection import SshConnection

Result = TypeVar("Result")


class HostAccess(Protocol):
    """Files of a host; refusals are OSErrors."""

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries, sorted by name."""
        ...

    def stat(self, path: str) -> FileStat:
        """Return the entry of a path."""
        ...

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1."""
        ...

    def write_atomic(self, path: str, data: bytes, mode: int) -> None:
        """Write a file completely or not at all."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file."""
        ...


class HostMachine(Protocol):
    """The parts of a host's transport that its files need."""

    connection: SshConnection

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the user's login shell."""
        ...

    def with_files(self, action: Callable[[HostAccess], Result]) -> Result:
        """Return what an action does with the files; refusals are OSErrors."""
        ...

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries, sorted by name."""
        ...

    def real_path(self, path: str) -> str:
        """Return a path without symbolic links."""
        ...

    def change(
        self, path: str, change: Callable[[bytes | None], bytes], *, keep_attributes: bool = False
    ) -> None:
        """Read a file, change its content and write it, under its lock."""
        ...
