"""Files on the far side by `sh`, one round trip each: GNU coreutils and findutils, as on every Linux."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import secrets
from collections.abc import Iterator, Sequence
from shlex import quote

from launcher.errors import LateError
from launcher.text import clean
from launcher.transports.base import FileStat, NewFile
from launcher.transports.bounded_command import MAX_OUTPUT_BYTES
from launcher.transports.replies import WHOLE_FILE_BYTES, too_large_error
from launcher.transports.ssh.connection import SshConnection
from launcher.transports.ssh.remote_shell import PLAIN_ENVIRONMENT, RawResult, run_script
from launcher.transports.ssh.silent_entries import listing_of
from launcher.transports.ssh.silent_paths import no_answer

_PART_BYTES = 16 << 10
_MESSAGE_BYTES = 1 << 20
_LITERAL = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,:;_+=/@{}[]()<>\n"#')
_CODES = {
    "No such file or directory": errno.ENOENT,
    "Not a directory": errno.ENOTDIR,
    "Permission denied": errno.EACCES,
    "No space left on device": errno.ENOSPC,
    "Is a directory": errno.EISDIR,
    "File name too long": errno.ENAMETOOLONG,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
}


class ShellFiles:
    """Files of a host, each access a command."""

    def __init__(self, connection: SshConnection, deadline_s: float) -> None:
        self._connection = connection
        self._deadline_s = deadline_s

    def listdir(self, path: str) -> list[FileStat]:
        """Return a directory's entries; what a link points to, where it can be reached.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        path = posixpath.normpath(path)
        silent = self._connection.silent_paths
        silent.refuse(path)
        if not silent.are_below(path):
            with contextlib.suppress(LateError):
                return self._listdir(path)
        try:
            return listing_of(self._connection, path)
        except LateError:
            silent.note(path)
            raise no_answer(path) from None

    def _listdir(self, path: str) -> list[FileStat]:
        # A link in a circle makes an error of `find`, and hides no other entry.
        body = (
            f"cd -- {quote(path)} && [ -r . ] || {{ ls -- {quote(path)}/. >/dev/null; exit 1; }}\n"
            "find -L . -mindepth 1 -maxdepth 1 -printf '%s %T@ %i %y %f\\0' 2>/dev/null; exit 0"
        )
        done = self._sh(body)
        entries = []
        for record in done.stdout.decode("utf-8", errors="surrogateescape").split("\0")[:-1]:
            size, mtime, inode, kind, name = record.split(" ", 4)
            if kind not in "lN?":
                entries.append(FileStat(name, int(size), float(mtime), int(inode), kind == "d"))
        return sorted(entries, key=lambda entry: entry.name)

    def stat(self, path: str) -> FileStat:
        """Return the entry of a path.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        with self._answering(path):
            done = self._sh(f"stat -L -c '%s %.9Y %i %F' -- {quote(path)}")
        size, mtime, inode, kind = done.stdout.decode().strip().split(" ", 3)
        return FileStat(posixpath.basename(path), int(size), float(mtime), int(inode), kind == "directory")

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; all up to the end for -1.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        most = size if size >= 0 else WHOLE_FILE_BYTES + 1
        body = f"exec 3<{quote(path)} || exit 1\ntail -c +{offset + 1} <&3 | head -c {most}"
        with self._answering(path):
            data = self._sh(body, limit=most).stdout
        if size < 0 and len(data) > WHOLE_FILE_BYTES:
            raise too_large_error(path)
        return data

    def write_atomic(self, path: str, data: bytes, mode: int) -> None:
        """Write a file whole, under its name only when it is complete.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        self._sh("\n".join(writing_lines(path, data, mode)))

    def write_all(self, files: Sequence[NewFile]) -> None:
        """Write files in their order, in one request.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        lines = [line for file in files for line in writing_lines(file.path, file.data, file.mode)]
        self._sh("\n".join(lines))

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        self._sh(f"umask 022; mkdir -p -- {quote(path)}")

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            OSError: the refusal.
            TransportError: no connection, or no answer in time.
        """
        self._sh(f"rm -- {quote(path)}")

    @contextlib.contextmanager
    def _answering(self, path: str) -> Iterator[None]:
        """Ask a path that is not silent; note that it is where no answer comes.

        Raises:
            TimeoutError: it gives no answer, or gave none a short time ago.
        """
        silent = self._connection.silent_paths
        silent.refuse(path)
        try:
            yield
        except LateError:
            silent.note(path)
            raise no_answer(path) from None
        silent.forget(path)

    def _sh(self, body: str, limit: int = MAX_OUTPUT_BYTES) -> RawResult:
        done = run_script(
            self._connection,
            body,
            "sh",
            env=PLAIN_ENVIRONMENT,
            timeout_s=self._deadline_s,
            limit=limit + _MESSAGE_BYTES,
            while_it_comes=True,
        )
        if done.code != 0:
            raise _error(done)
        return done


def writing_lines(path: str, data: bytes, mode: int, last_check: str = "", target: str = "") -> list[str]:
    """Return the lines of `sh` that write a file whole.

    Args:
        path: The file.
        data: Its content.
        mode: Its access rights.
        last_check: Runs before it gets its name.
        target: What gets the name instead, as `sh` has it in double quotes.
    """
    parent, name = posixpath.split(path)
    temporary = posixpath.join(parent, f".{name}.{secrets.token_hex(4)}")
    named = f'"{target}"' if target else quote(path)
    parts = [data[begin : begin + _PART_BYTES] for begin in range(0, len(data), _PART_BYTES)] or [b""]
    return [
        f"new={quote(temporary)}",
        'fail() { rm -f -- "$new"; exit 1; }',
        f"( umask 022; mkdir -p -- {quote(parent or '.')} ) || exit 1",
        "umask 077",
        *(
            f"printf '{_octal(part)}' {'>>' if number else '>'}\"$new\" || fail"
            for number, part in enumerate(parts)
        ),
        f'test "$(wc -c <"$new")" -eq {len(data)} || {{ echo \'No space left on device\' >&2; fail; }}',
        f'chmod {mode:o} -- "$new" || fail',
        'sync -- "$new" 2>/dev/null',
        last_check,
        f'mv -f -T -- "$new" {named} || fail',
    ]


def _octal(data: bytes) -> str:
    """Return bytes as the format of a `printf`, which is built into `sh`: no limit of arguments holds."""
    return "".join(chr(byte) if byte in _LITERAL else f"\\{byte:03o}" for byte in data)


def _error(done: RawResult) -> OSError:
    """Return what a command's message says as the error that a system call gives."""
    text = clean(done.stderr.decode("utf-8", errors="replace").strip().rpartition("\n")[2])
    for words, code in _CODES.items():
        if words.lower() in text.lower():
            return OSError(code, words)
    return OSError(text or f"exit {done.code}")


def refusal(name: str, path: str) -> OSError:
    """Return the refusal of a name such as ENOENT, as a system call gives it."""
    code = getattr(errno, name, errno.EIO)
    return OSError(code, os.strerror(code), path)
