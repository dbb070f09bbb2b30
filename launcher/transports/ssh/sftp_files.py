"""Large files written on the far side by SFTP, which takes them as they are, pipelined."""

from __future__ import annotations

import contextlib
import errno
import posixpath
import secrets
import stat
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from launcher.errors import TransportError
from launcher.text import clean
from launcher.transports.ssh.channels import open_channel
from launcher.transports.ssh.connection import SshConnection

if TYPE_CHECKING:
    import paramiko

Result = TypeVar("Result")
_WINDOW_BYTES = 8 << 20


class NoSftpError(TransportError):
    """The server has no SFTP subsystem."""


class SftpFiles:
    """Writes files of a host, over a channel of its own."""

    def __init__(self, connection: SshConnection, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._client: paramiko.SFTPClient | None = None
        self._generation = -1
        self._left: set[str] = set()
        """Unfinished files that broken connections have left there."""

    def write_atomic(self, path: str, data: bytes, mode: int) -> None:
        """Write a file whole, under its name only when it is complete.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """
        parent, name = posixpath.split(path)
        temporary = posixpath.join(parent, f".{name}.{secrets.token_hex(4)}")

        def write(client: paramiko.SFTPClient) -> None:
            self._remove_left(client)
            _make(client, parent)
            self._left.add(temporary)
            try:
                with client.open(temporary, "wxb") as file:
                    file.chmod(mode)
                    file.set_pipelined(True)
                    file.write(data)
                if (client.stat(temporary).st_size or 0) != len(data):
                    raise OSError(errno.ENOSPC, "the file is incomplete: is the file system full?")
                client.posix_rename(temporary, path)
            except OSError:
                self._remove_left(client)
                raise
            self._left.discard(temporary)

        self._do(write)

    def _remove_left(self, client: paramiko.SFTPClient) -> None:
        """Remove unfinished files; over a connection that has broken, the next one does it."""
        for path in tuple(self._left):
            try:
                client.remove(path)
            except FileNotFoundError:
                self._left.discard(path)
            except OSError:
                return
            else:
                self._left.discard(path)

    def _do(self, action: Callable[[paramiko.SFTPClient], Result]) -> Result:
        import paramiko

        with self._lock:
            client = self._opened()
            try:
                result = action(client)
            except TimeoutError as error:
                raise self._connection.broken(f"no answer for {self._deadline_s:.0f} s") from error
            except (EOFError, paramiko.SSHException, ConnectionError) as error:
                raise self._connection.broken("the connection broke") from error
            except OSError as error:
                if "closed" in str(error).lower() and error.errno is None:
                    raise self._connection.broken("the connection broke") from error
                raise
            self._connection.received()
            return result

    def _opened(self) -> paramiko.SFTPClient:
        import paramiko

        transport = self._connection.transport()
        if self._client is None or self._generation != self._connection.generation:
            try:
                channel = open_channel(
                    transport, "subsystem", "sftp", self._deadline_s, window_bytes=_WINDOW_BYTES
                )
                client = paramiko.SFTPClient(channel)
            except TimeoutError as error:
                raise self._connection.broken(f"no answer for {self._deadline_s:.0f} s", transport) from error
            # SFTPError: what a login shell prints comes before the answer.
            except (paramiko.SSHException, paramiko.SFTPError, EOFError, OSError) as error:
                if _is_refusal(error, transport):
                    raise NoSftpError(
                        f"{self._connection.host.alias}: no SFTP: {clean(str(error))}"
                    ) from error
                raise self._connection.broken("the connection broke", transport) from error
            self._client, self._generation = client, self._connection.generation
        return self._client


def _is_refusal(error: Exception, transport: paramiko.Transport) -> bool:
    """Return whether the server has answered, and said no."""
    return transport.is_active() and "Timeout opening channel" not in str(error)


def _make(client: paramiko.SFTPClient, path: str) -> None:
    try:
        mode = client.stat(path).st_mode or 0
    except FileNotFoundError:
        parent = posixpath.dirname(path)
        if parent != path:
            _make(client, parent)
        with contextlib.suppress(
            OSError
        ):  # another program has made it meanwhile; if not, the next line tells
            client.mkdir(path, 0o755)
        mode = client.stat(path).st_mode or 0
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
