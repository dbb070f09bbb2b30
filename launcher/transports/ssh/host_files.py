"""Files of a host as recipes read them: listed in few requests, and read once while they stay the same.

The first look at a path lists its directory and all above it, in one request; the trees of a checkout are
listed whole, and their sources fetched in one archive. What was read is kept below the user's own cache, by
path, size, inode and time of modification, for this user alone to read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import posixpath
import re
import tarfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from launcher.errors import ConnectionLostError, TransportError
from launcher.transports.ssh.host_access import HostMachine
from launcher.transports.ssh.host_listings import HostEntry, HostListings
from launcher.transports.ssh.remote_shell import PLAIN_ENVIRONMENT, run_script
from recipes.files import ChangedOnDiskError, unified_diff

_TREES = ("nemo_rl", "examples")
_SOURCE = re.compile(r"(?:.*/)?[^/\n]+\.(?:py|ya?ml)")
"""Files of a checkout that checks read. A name with a line break is read by itself."""
_SETTLED_S = 2.0
"""A file that changed later than that may change again within the same tick of a coarse clock."""
_KEPT_DAYS = 30
_FETCH_TIMEOUT_S = 120.0


class HostFiles:
    """Files of a host (`recipes.remote_path.RemoteFiles`)."""

    def __init__(self, transport: HostMachine, cache: Path) -> None:
        host = transport.connection.host
        self._transport = transport
        self._cache = cache / "hosts" / _digest(f"{host.user}@{host.hostname}:{host.port}")
        self._listings = HostListings(transport)
        self._real: dict[str, str] = {}

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
        return self._listings.entry(path).status()

    def look_again(self, path: str) -> None:
        """Forget the listing of a directory: another program may have changed what is in it."""
        self._listings.forget(posixpath.normpath(path))

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        listing = self._listings.listing(path)
        if not listing.whole:
            return sorted(item.name for item in self._transport.listdir(path))
        return sorted(listing.entries)

    def below(self, path: str) -> list[str]:
        """Return the paths of all files below a directory, relative to it; none where there is none.

        Raises:
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        self._listings.survey((path,))
        return self._listings.files_below(path)

    def read(self, path: str) -> bytes:
        """Return a file's bytes, from the cache where it is as it was.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        kept = self._kept(path, self._listings.entry(path))
        with contextlib.suppress(OSError):
            return kept.read_bytes()
        data = self._transport.with_files(lambda files: files.read(path, 0, -1))
        if len(data) == self._listings.entry(path).size:
            self._keep(path, data)
        return data

    def real(self, path: str) -> str:
        """Return a path without symbolic links; asked for only where there is a link in it.

        Raises:
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        if path not in self._real:
            self._real[path] = path if self._listings.is_plain(path) else self._transport.real_path(path)
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
        self._listings.forget(posixpath.dirname(path))

    def prefetch_checkout(self, root: str) -> None:
        """List the trees of a checkout and fetch the sources that are not kept: two requests, or one.

        Trees that are too large or slow for that are read file by file afterwards.

        Raises:
            ConnectionLostError: the host does not answer.
        """
        try:
            self._prefetch(root)
        except ConnectionLostError:
            raise
        except TransportError:
            return

    def _prefetch(self, root: str) -> None:
        trees = [posixpath.join(posixpath.normpath(root), name) for name in _TREES]
        self._listings.survey(trees)
        missing = [
            path
            for tree in trees
            for path in (posixpath.join(tree, name) for name in self.below(tree) if _SOURCE.fullmatch(name))
            if not self._kept(path, self._listings.entry(path)).exists()
        ]
        self._fetch(missing)

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
                path = f"/{member.name}"
                # Only what was listed, at the size that was listed: an archive may say anything.
                expected = member.isfile() and self._listings.entry(path).size == member.size
                file = archive.extractfile(member) if expected else None
                if file is not None:
                    self._keep(path, file.read())
        self._drop_old()

    def _kept(self, path: str, entry: HostEntry) -> Path:
        name = _digest(f"{path}\0{entry.size}\0{entry.mtime_ns}\0{entry.inode}")
        return self._cache / name[:2] / name

    def _keep(self, path: str, data: bytes) -> None:
        """Keep a file's content; without effect where it is too new, or the cache cannot be written."""
        try:
            entry = self._listings.entry(path)
            if entry.size != len(data) or entry.mtime_ns / 1e9 > self._listings.now - _SETTLED_S:
                return
            _write_kept(self._kept(path, entry), data)
        except OSError:
            return

    def _drop_old(self) -> None:
        """Remove what was kept a month ago."""
        limit = time.time() - _KEPT_DAYS * 86400
        for path in self._cache.glob("*/*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < limit:
                    path.unlink()


def _write_kept(path: Path, data: bytes) -> None:
    """Write a file of the cache under its name only when it is complete, for this user alone."""
    temporary = f"{path}.{os.getpid()}-{threading.get_ident()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(temporary, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
