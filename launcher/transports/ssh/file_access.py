"""Files of a host as transports read and write them: by `sh` in one round trip, large contents by SFTP."""

from __future__ import annotations

from launcher.transports.ssh.connection import SshConnection
from launcher.transports.ssh.sftp_files import NoSftpError, SftpFiles
from launcher.transports.ssh.shell_files import ShellFiles

_SMALL_BYTES = 64 << 10
"""Contents that go in one request: opening, asking, reading and closing by SFTP are four."""


class FileAccess(ShellFiles):
    """Files of a host; a server without SFTP gets large contents by `sh`, too."""

    def __init__(self, connection: SshConnection, deadline_s: float) -> None:
        super().__init__(connection, deadline_s)
        self._sftp: SftpFiles | None = SftpFiles(connection, deadline_s)

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        if size > _SMALL_BYTES and self._sftp is not None:
            try:
                return self._sftp.read(path, offset, size)
            except NoSftpError:
                self._sftp = None
        return super().read(path, offset, size)

    def write_atomic(self, path: str, data: bytes, mode: int) -> None:
        """Write a file whole, under its name only when it is complete.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        if len(data) > _SMALL_BYTES and self._sftp is not None:
            try:
                self._sftp.write_atomic(path, data, mode)
            except NoSftpError:
                self._sftp = None
            else:
                return
        super().write_atomic(path, data, mode)
