"""Files on the far side by SFTP: one round trip for a listing or a stat, pipelined reads and writes."""

from __future__ import annotations

import contextlib
import errno
import posixpath
import secrets
import stat
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from launcher.errors import TransportError
from launcher.text import clean
from launcher.transports.base import FileStat
from launcher.transports.replies import WHOLE_FILE_BYTES, too_large_error
from launcher.transports.ssh.connection import SshConnection

if TYPE_CHECKING:
    import paramiko

Result = TypeVar("Result")
_PART_BYTES = 32 << 10
"""Bytes of one request: servers need not answer larger ones (draft-ietf-secsh-filexfer-02, 3)."""


def _send_requests_at_once(file: paramiko.SFTPFile) -> None:
    """Let paramiko send all requests of a `readv` before it reads an answer, and in the reader's thread.

    In a thread of its own (paramiko/sftp_file.py:_prefetch_thread) a request may be sent after the answer to
    the one before: the transfer then counts as complete, and all other parts are asked for again. A break
    there is a traceback on the terminal. The requests for WHOLE_FILE_BYTES fit in the server's window.
    """

    def start(chunks: Sequence[tuple[int, int]], limit: int | None) -> None:
        file._prefetching, file._prefetch_done = True, False  # type: ignore[attr-defined]
        file._prefetch_thread(chunks, limit)  # type: ignore[attr-defined]

    file._start_prefetch = start  # type: ignore[attr-defined]


class NoSftpError(TransportError):
    """The server has no SFTP subsystem."""


class SftpFiles:
    """Files of a host, over a channel of its own."""

    def __init__(self, connection: SshConnection, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._client: paramiko.SFTPClient | None = None
        self._generation = -1

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries; what a link points to, where it can be reached.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """
        return self._do(lambda client: _entries(client, path))

    def stat(self, path: str) -> FileStat:
        """Return the entry of a path.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """
        return self._do(lambda client: _entry(posixpath.basename(path), client.stat(path)))

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """

        def parts(client: paramiko.SFTPClient) -> bytes:
            with client.open(path, "rb") as file:
                end = file.stat().st_size or 0
                length = min(size, end - offset) if size >= 0 else end - offset
                if length <= 0:
                    return b""
                if size < 0 and length > WHOLE_FILE_BYTES:
                    raise too_large_error(path)
                begins = range(offset, offset + length, _PART_BYTES)
                wanted = [(begin, min(_PART_BYTES, offset + length - begin)) for begin in begins]
                _send_requests_at_once(file)
                return b"".join(file.readv(wanted))

        return self._do(parts)

    def write_atomic(self, path: str, data: bytes, mode: int) -> None:
        """Write a file whole, under its name only when it is complete.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """
        parent, name = posixpath.split(path)
        temporary = posixpath.join(parent, f".{name}.{secrets.token_hex(4)}")

        def write(client: paramiko.SFTPClient) -> None:
            _make(client, parent)
            try:
                with client.open(temporary, "wxb") as file:
                    file.chmod(mode)
                    file.set_pipelined(True)
                    file.write(data)
                if (client.stat(temporary).st_size or 0) != len(data):
                    raise OSError(errno.ENOSPC, "the file is incomplete: is the file system full?")
                client.posix_rename(temporary, path)
            except OSError:
                with contextlib.suppress(OSError):
                    client.remove(temporary)
                raise

        self._do(write)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """
        self._do(lambda client: _make(client, path))

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            OSError: the server's refusal.
            TransportError: no connection, or no answer in time.
        """
        self._do(lambda client: client.remove(path))

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
                client = paramiko.SFTPClient.from_transport(
                    transport, window_size=8 << 20, max_packet_size=1 << 15
                )
            except (paramiko.SSHException, EOFError) as error:
                if transport.is_active():
                    raise NoSftpError(
                        f"{self._connection.host.alias}: no SFTP: {clean(str(error))}"
                    ) from error
                raise self._connection.broken("the connection broke") from error
            if client is None:
                raise NoSftpError(f"{self._connection.host.alias}: no SFTP")
            channel = client.get_channel()
            if channel is not None:
                channel.settimeout(self._deadline_s)
            self._client, self._generation = client, self._connection.generation
        return self._client


def _entries(client: paramiko.SFTPClient, path: str) -> list[FileStat]:
    entries = []
    for attributes in client.listdir_attr(path):
        name = attributes.filename
        if stat.S_ISLNK(attributes.st_mode or 0):
            try:
                entries.append(_entry(name, client.stat(posixpath.join(path, name))))
            except (ConnectionError, TimeoutError):
                raise
            except OSError as error:  # a link that leads nowhere, in a circle, or where the user may not look
                if "closed" in str(error).lower():
                    raise
                continue
        else:
            entries.append(_entry(name, attributes))
    return sorted(entries, key=lambda entry: entry.name)


def _entry(name: str, attributes: paramiko.SFTPAttributes) -> FileStat:
    """Return an entry; SFTP (version 3) tells no inode, and whole seconds."""
    is_directory = stat.S_ISDIR(attributes.st_mode or 0)
    return FileStat(name, attributes.st_size or 0, float(attributes.st_mtime or 0), 0, is_directory)


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
