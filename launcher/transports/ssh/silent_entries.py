"""Entries of a host that give no answer, as a link to a mount whose server is gone: they hide no other.

`find` hangs at the first of them. Then the names are listed alone, which asks the directory only, and each
entry is looked at by a process of its own; those that do not answer are silent, and not asked again at once.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from shlex import quote
from typing import TYPE_CHECKING

from launcher.errors import LateError
from launcher.transports.base import FileStat
from launcher.transports.ssh.remote_shell import PLAIN_ENVIRONMENT, run_script

if TYPE_CHECKING:
    from launcher.transports.ssh.connection import SshConnection

_ANSWER_S = 3
"""Time for entries that are looked at together: each takes a millisecond."""
_TIMEOUT_S = 20.0
_CHUNK_BYTES = 3000
"""Length of the answers of one process: up to 4096 bytes come in one piece, whatever others print."""
_RECORD_BYTES = 60
_AT_ONCE = 200
_DIRECTORY, _KIND = 0o040000, 0o170000


def names_in(connection: SshConnection, directory: str) -> list[str]:
    """Return the names in a directory, none of which is looked at.

    Raises:
        LateError: the directory gives no answer.
        OSError: it cannot be listed.
        TransportError: no connection, or no answer in time.
    """
    inner = posixpath.join(directory, "")
    body = (
        f"ls -a -- {quote(inner)}. >/dev/null 2>&1 || {{ [ -d {quote(inner)} ] && exit 13; exit 2; }}\n"
        f"cd -- {quote(inner)} && for name in * .[!.]* ..?*; do printf '%s\\0' \"$name\"; done"
    )
    done = run_script(
        connection, body, "ls", env=PLAIN_ENVIRONMENT, timeout_s=_ANSWER_S * 2, while_it_comes=True
    )
    if done.code:
        raise (
            PermissionError(errno.EACCES, "Permission denied", directory)
            if done.code == 13
            else (FileNotFoundError(errno.ENOENT, "No such file or directory", directory))
        )
    return done.stdout.decode("utf-8", errors="surrogateescape").split("\0")[:-1]


def entries_of(connection: SshConnection, paths: Iterable[str]) -> dict[str, FileStat]:
    """Return the entries of paths, links followed; of what is not there, none.

    Raises:
        TransportError: no connection, or no answer in time.
    """
    silent = connection.silent_paths
    wanted = dict.fromkeys(paths)
    asked = [path for path in wanted if not silent.is_silent(path)]
    entries = {path: _silent_entry(path) for path in wanted if silent.is_silent(path)}
    answered, left = _ask(connection, list(_chunks(asked)))
    entries |= answered
    answered, left = _ask(connection, [[path] for chunk in left for path in chunk])
    entries |= answered
    for chunk in left:
        silent.note(chunk[0])
        entries[chunk[0]] = _silent_entry(chunk[0])
    for path in asked:
        if path not in entries or not entries[path].is_silent:
            silent.forget(path)
    return entries


def listing_of(connection: SshConnection, directory: str) -> list[FileStat]:
    """Return a directory's entries, sorted by name; those that give no answer are silent.

    Raises:
        OSError: it cannot be listed.
        TransportError: it gives no answer, or no connection.
    """
    paths = [posixpath.join(directory, name) for name in names_in(connection, directory)]
    return sorted(entries_of(connection, paths).values(), key=lambda entry: entry.name)


def listings_below(
    connection: SshConnection, directory: str, depth: int, pattern: str
) -> dict[str, list[FileStat]]:
    """Return the listings of a directory and of those below it whose names match, by path, up to a depth.

    Raises:
        TransportError: no connection, or no answer in time.
    """
    listings: dict[str, list[FileStat]] = {}
    waiting = [(directory, 1)]
    while waiting:
        path, level = waiting.pop(0)
        try:
            listings[path] = listing_of(connection, path)
        except (OSError, LateError):  # whoever asks for it gets the refusal
            continue
        if level < depth:
            waiting += [
                (posixpath.join(path, entry.name), level + 1)
                for entry in listings[path]
                if entry.is_dir and fnmatchcase(entry.name, pattern)
            ]
    return listings


def _silent_entry(path: str) -> FileStat:
    return FileStat(posixpath.basename(path), 0, 0.0, 0, is_dir=False, is_silent=True)


def _chunks(paths: Sequence[str]) -> Iterable[list[str]]:
    """Yield paths in parts whose answers come in one piece."""
    chunk: list[str] = []
    length = 0
    for path in paths:
        size = len(path.encode("utf-8", "surrogateescape")) + _RECORD_BYTES
        if chunk and length + size > _CHUNK_BYTES:
            yield chunk
            chunk, length = [], 0
        chunk.append(path)
        length += size
    if chunk:
        yield chunk


def _ask(
    connection: SshConnection, chunks: Sequence[list[str]]
) -> tuple[dict[str, FileStat], list[list[str]]]:
    """Look at paths, those of a chunk by one process; return the entries, and the chunks without answer."""
    entries: dict[str, FileStat] = {}
    ended = set[int]()
    for begin in range(0, len(chunks), _AT_ONCE):
        numbered = list(enumerate(chunks))[begin : begin + _AT_ONCE]
        lines = [
            f"{{ stat -L --printf 'F %f %s %.9Y %i %n\\0' -- {' '.join(map(quote, chunk))};"
            f" printf 'E {number}\\0'; }} &"
            for number, chunk in numbered
        ]
        # Nothing waits for them: a process that hangs in the kernel cannot even be killed.
        body = "\n".join(
            ["(", *lines, f") </dev/null 2>/dev/null | timeout -s KILL {_ANSWER_S} cat", "exit 0"]
        )
        done = run_script(
            connection, body, "stat", env=PLAIN_ENVIRONMENT, timeout_s=_TIMEOUT_S, while_it_comes=True
        )
        for record in done.stdout.decode("utf-8", errors="surrogateescape").split("\0")[:-1]:
            kind, _, rest = record.partition(" ")
            if kind == "E":
                ended.add(int(rest))
                continue
            mode, size, mtime, inode, path = rest.split(" ", 4)
            is_dir = int(mode, 16) & _KIND == _DIRECTORY
            entries[path] = FileStat(posixpath.basename(path), int(size), float(mtime), int(inode), is_dir)
    left = [chunk for number, chunk in enumerate(chunks) if number not in ended]
    for chunk in left:
        for path in chunk:
            entries.pop(path, None)
    return entries, left
