"""Files of a host as transports read and write them: by `sh` in one round trip, large new ones by SFTP."""

from __future__ import annotations

from launcher.transports.ssh.connection import SshConnection
from launcher.transports.ssh.sftp_files import NoSftpError, SftpFiles
from launcher.transports.ssh.shell_files import ShellFiles

_SMALL_BYTES = 64 << 10
"""Contents that are written in one request by `sh`, which gets up to four characters for each byte."""


class FileAccess(ShellFiles):
    """Files of a host; a server without SFTP gets large contents by `sh`, too.

    Reading by SFTP takes four round trips (open, size, parts, close), by `sh` one, and as many bytes.
    """

    def __init__(self, connection: SshConnection, deadline_s: float) -> None:
        super().__init__(connection, deadline_s)
        self._sftp: SftpFiles | None = SftpFiles(connection, deadline_s)

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
