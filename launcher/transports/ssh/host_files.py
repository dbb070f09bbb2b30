"""Files of a host as recipes read them: listed in few requests, and read once while they stay the same.

The first look at a path lists its directory and all above it, in one request; the trees of a checkout are
listed whole, and their sources fetched in one archive. What was read is kept below the user's own cache, by
path, size, inode and time of modification, for this user alone to read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import posixpath
import re
import stat
import tarfile
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from launcher.transports.ssh.host_access import HostMachine
from launcher.transports.ssh.remote_shell import run_script
from launcher.transports.ssh.shell_files import PLAIN_ENVIRONMENT, refusal
from recipes.files import ChangedOnDiskError, unified_diff

_LISTING_BYTES = 4 << 20
"""Longest listing that is taken whole, some 40,000 names; of a longer one, what is missing is asked for."""
_TREES = ("nemo_rl", "examples")
_SOURCE = re.compile(r"(?:.*/)?[^/\n]+\.(?:py|ya?ml)")
"""Files of a checkout that checks read. A name with a line break is read by itself."""
_SETTLED_S = 2.0
"""A file that changed later than that may change again within the same tick of a coarse clock."""
_KEPT_DAYS = 30
_FETCH_TIMEOUT_S = 120.0
_LIST_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class _HostEntry:
    """A file or directory; of a link, what it leads to."""

    mode: int
    size: int
    mtime_ns: int
    inode: int
    is_link: bool = False

    def status(self) -> os.stat_result:
        seconds = self.mtime_ns / 1e9
        times = (int(seconds),) * 3
        return os.stat_result(
            (self.mode, self.inode, 0, 1, 0, 0, self.size, *times, *(seconds,) * 3, *(self.mtime_ns,) * 3)
        )


@dataclass(slots=True)
class _Listing:
    """Entries of a directory by name, not all where it was too long. None: a link not yet followed."""

    entries: dict[str, _HostEntry | None]
    whole: bool = True


class HostFiles:
    """Files of a host (`recipes.remote_path.RemoteFiles`)."""

    def __init__(self, transport: HostMachine, cache: Path) -> None:
        host = transport.connection.host
        self._transport = transport
        self._cache = cache / "hosts" / _digest(f"{host.user}@{host.hostname}:{host.port}")
        self._listings: dict[str, _Listing | OSError] = {}
        self._real: dict[str, str] = {}
        self._now = 0.0

    @property
    def machine(self) -> str:
        """Name of the host as the user gives it."""
        return self._transport.connection.host.alias

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the user's login shell there."""
        return self._transport.environment()

    @property
    def directory(self) -> str:
        """The user's home there."""
        return self.environment.get("HOME", "/")

    def status(self, path: str) -> os.stat_result:
        """Return what `stat` says of an absolute path.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
        return self._entry(path).status()

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        listing = self._listing(path)
        if not listing.whole:
            return sorted(item.name for item in self._transport.listdir(path))
        return sorted(listing.entries)

    def below(self, path: str) -> list[str]:
        """Return the paths of all files below a directory, relative to it; none where there is none.

        Raises:
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        self._survey((path,))
        files: list[str] = []
        waiting = [path]
        while waiting:
            directory = waiting.pop()
            listing = self._listings.get(directory)
            for name, entry in listing.entries.items() if isinstance(listing, _Listing) else ():
                inner = posixpath.join(directory, name)
                if entry is not None and stat.S_ISDIR(entry.mode):
                    waiting.append(inner)
                elif entry is not None:
                    files.append(posixpath.relpath(inner, path))
        return sorted(files)

    def read(self, path: str) -> bytes:
        """Return a file's bytes, from the cache where it is as it was.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        kept = self._kept(path, self._entry(path))
        with contextlib.suppress(OSError):
            return kept.read_bytes()
        data = self._transport.with_files(lambda files: files.read(path, 0, -1))
        if len(data) == self._entry(path).size:
            self._keep(path, data)
        return data

    def real(self, path: str) -> str:
        """Return a path without symbolic links; asked for only where there is a link in it.

        Raises:
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        if path not in self._real:
            self._real[path] = path if self._is_plain(path) else self._transport.real_path(path)
        return self._real[path]

    def save(self, path: str, data: bytes, opened: bytes | None) -> None:
        """Replace a file's content under its lock, with its owner, mode and access list as they are.

        Raises:
            ChangedOnDiskError: it has another content than `opened`.
            LockedError: another program is editing it.
            TransportError: it cannot be written, or the host does not answer.
        """

        def change(content: bytes | None) -> bytes:
            if content == data:  # a first time whose answer was lost
                return data
            if content != opened:
                diff = unified_diff(opened or b"", content or b"", path, f"{path} (now)")
                raise ChangedOnDiskError(Path(path), diff)
            return data

        self._transport.change(path, change, keep_attributes=True)
        self._listings.pop(posixpath.dirname(path), None)

    def prefetch_checkout(self, root: str) -> None:
        """List the trees of a checkout and fetch the sources that are not kept: two requests, or one.

        Raises:
            TransportError: the host does not answer.
        """
        trees = [posixpath.join(posixpath.normpath(root), name) for name in _TREES]
        self._survey(trees)
        missing = [
            path
            for tree in trees
            for path in (posixpath.join(tree, name) for name in self.below(tree) if _SOURCE.fullmatch(name))
            if not self._kept(path, self._entry(path)).exists()
        ]
        self._fetch(missing)

    # ------------------------------------------------------------ listings

    def _entry(self, path: str) -> _HostEntry:
        path = posixpath.normpath(path)
        parent, name = posixpath.split(path)
        if not name:
            return _HostEntry(stat.S_IFDIR | 0o755, 0, 0, 0)
        try:
            listing = self._listing(parent)
        except PermissionError:
            return self._ask(path)  # what is in it can be looked at all the same
        entry = listing.entries.get(name)
        if entry is None:
            if name not in listing.entries and listing.whole:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            entry = listing.entries[name] = self._ask(path)
        return entry

    def _ask(self, path: str) -> _HostEntry:
        found = self._transport.with_files(lambda files: files.stat(path))
        kind = stat.S_IFDIR if found.is_dir else stat.S_IFREG
        return _HostEntry(kind | 0o644, found.size, int(found.mtime * 1e9), found.inode, is_link=True)

    def _listing(self, directory: str) -> _Listing:
        """Return a directory's listing; the first time, with those of all directories above it."""
        known = self._listings.get(directory) or self._from_above(directory)
        if known is None:
            self._list(directory)
            known = self._listings[directory]
        if isinstance(known, OSError):
            raise known
        return known

    def _from_above(self, directory: str) -> OSError | None:
        """Return the refusal that follows from a listing above: nothing of that name, or a file."""
        parent, name = posixpath.split(directory)
        if not name:
            return None
        above = self._listings.get(parent) or self._from_above(parent)
        if isinstance(above, OSError) and above.errno != errno.EACCES:
            return above
        if not isinstance(above, _Listing) or not above.whole:
            return None
        if name not in above.entries:
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
        entry = above.entries[name]
        if entry is not None and not stat.S_ISDIR(entry.mode):
            return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        return None

    def _list(self, directory: str) -> None:
        above = [directory]
        while above[-1] != "/":
            above.append(posixpath.dirname(above[-1]))
        new = [path for path in above if path not in self._listings]
        # Of the directories above, links are not followed: that could mount every file system of a site.
        links = (
            f"find {quote(directory)}/ -mindepth 1 -maxdepth 1 -type l"
            f" -exec stat -L --printf 'L %f %s %.9Y %i %n\\0' {{}} + 2>/dev/null"
        )
        self._run_listing(new, [*(_find(path) for path in new), links])

    def _survey(self, trees: Iterable[str]) -> None:
        """List whole trees in one request; hidden directories and environments are left out."""
        new = [tree for tree in trees if f"{tree}/" not in self._listings]
        if not new:
            return
        lines = [
            f"find -L {quote(tree)}/ -mindepth 1 \\( -type d \\( -name '.?*' -o -name venvs \\)"
            " -prune \\) -o -printf 'T %y %s %T@ %i %p\\0' 2>/dev/null"
            for tree in new
        ]
        self._run_listing(new, lines)
        for tree in new:
            self._listings[f"{tree}/"] = _Listing({})

    def _run_listing(self, directories: Iterable[str], lines: Iterable[str]) -> None:
        body = "\n".join(["printf 'N %s\\0' \"$(date +%s)\"", *lines, "exit 0"])
        done = run_script(
            self._transport.connection, body, "find", env=PLAIN_ENVIRONMENT, timeout_s=_LIST_TIMEOUT_S
        )
        for record in done.stdout.decode("utf-8", errors="surrogateescape").split("\0")[:-1]:
            self._take(record)
        for directory in directories:
            self._listings.setdefault(
                directory, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
            )

    def _take(self, record: str) -> None:
        """Take one record of a listing, by its first letter (see `_find`, `_list`, `_survey`)."""
        kind, _, rest = record.partition(" ")
        if kind == "N":
            self._now = float(rest)
        elif kind == "=":
            whole, _, path = rest.partition(" ")
            self._listings[path] = _Listing({}, whole=whole == "0")
        elif kind == "E":
            code, _, path = rest.partition(" ")
            self._listings[path] = refusal(code, path)
        elif kind == "F":
            what, size, mtime, inode, path = rest.split(" ", 4)
            entry = None if what == "l" else _HostEntry(_mode(what), int(size), _ns(mtime), int(inode))
            self._put(path, entry)
        elif kind == "L":
            mode, size, mtime, inode, path = rest.split(" ", 4)
            self._put(path, _HostEntry(int(mode, 16), int(size), _ns(mtime), int(inode), is_link=True))
        elif kind == "T":
            what, size, mtime, inode, path = rest.split(" ", 4)
            path = posixpath.normpath(path)
            if what == "d":
                self._listings.setdefault(path, _Listing({}))
            self._put(path, _HostEntry(_mode(what), int(size), _ns(mtime), int(inode)))

    def _put(self, path: str, entry: _HostEntry | None) -> None:
        parent, name = posixpath.split(posixpath.normpath(path))
        listing = self._listings.get(parent)
        if not isinstance(listing, _Listing):
            listing = self._listings[parent] = _Listing({})
        listing.entries[name] = entry

    def _is_plain(self, path: str) -> bool:
        """Return whether there is surely no link in a path."""
        while path != "/":
            parent, name = posixpath.split(path)
            listing = self._listings.get(parent)
            if not isinstance(listing, _Listing) or not listing.whole:
                return False
            entry = listing.entries.get(name)
            if name in listing.entries and (entry is None or entry.is_link):
                return False
            path = parent
        return True

    # ------------------------------------------------------------ contents

    def _fetch(self, paths: list[str]) -> None:
        """Fetch files in one archive; one that changes meanwhile, or cannot be read, is left out."""
        if not paths:
            return
        body = (
            "tar -C / -c -z -h --no-recursion --ignore-failed-read -T - 2>/dev/null <<'END_OF_NAMES'\n"
            + "".join(f"{path.lstrip('/')}\n" for path in paths)
            + "END_OF_NAMES\nexit 0"
        )
        done = run_script(
            self._transport.connection, body, "tar", env=PLAIN_ENVIRONMENT, timeout_s=_FETCH_TIMEOUT_S
        )
        with (
            contextlib.suppress(tarfile.TarError, EOFError, OSError),
            tarfile.open(fileobj=io.BytesIO(done.stdout), mode="r:gz") as archive,
        ):
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    self._keep(f"/{member.name}", file.read())
        self._drop_old()

    def _kept(self, path: str, entry: _HostEntry) -> Path:
        name = _digest(f"{path}\0{entry.size}\0{entry.mtime_ns}\0{entry.inode}")
        return self._cache / name[:2] / name

    def _keep(self, path: str, data: bytes) -> None:
        """Keep a file's content; without effect where it is too new, or the cache cannot be written."""
        try:
            entry = self._entry(path)
            if entry.size != len(data) or entry.mtime_ns / 1e9 > self._now - _SETTLED_S:
                return
            kept = self._kept(path, entry)
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=kept.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, kept)
        except OSError:
            return

    def _drop_old(self) -> None:
        """Remove what was kept a month ago."""
        limit = time.time() - _KEPT_DAYS * 86400
        for path in self._cache.glob("*/*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < limit:
                    path.unlink()


def _find(directory: str) -> str:
    """Return the lines of `sh` that list one directory, links not followed."""
    name = quote(directory)
    # The refusals of `find` go by the first word after the last colon.
    return (
        f"if out=$(cd -- {name} 2>&1); then"
        f" printf '= 0 %s\\0' {name};"
        f" find {quote(posixpath.join(directory, ''))} -mindepth 1 -maxdepth 1"
        f" -printf 'F %y %s %T@ %i %p\\0' 2>/dev/null | head -c {_LISTING_BYTES};"
        f" else printf 'E %s %s\\0' \"$([ -e {name} ] && {{ [ -d {name} ] && echo EACCES || echo ENOTDIR; }}"
        f' || echo ENOENT)" {name}; fi'
    )


def _mode(kind: str) -> int:
    """Return the mode of a kind as `find` prints it."""
    kinds = {"d": stat.S_IFDIR, "f": stat.S_IFREG, "p": stat.S_IFIFO, "s": stat.S_IFSOCK, "c": stat.S_IFCHR}
    return kinds.get(kind, stat.S_IFBLK) | 0o644


def _ns(seconds: str) -> int:
    """Return a time in nanoseconds from decimal seconds, without the loss of a float."""
    whole, _, part = seconds.partition(".")
    return int(whole) * 10**9 + int(f"{part:0<9.9}" or 0)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
