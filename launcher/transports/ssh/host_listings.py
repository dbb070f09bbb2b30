"""Listings of a host's directories, each taken once; what they do not tell is asked for."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from shlex import quote

from launcher.errors import LateError
from launcher.transports.ssh.host_access import HostMachine
from launcher.transports.ssh.remote_shell import PLAIN_ENVIRONMENT, run_script
from launcher.transports.ssh.shell_files import refusal
from launcher.transports.ssh.silent_entries import names_in
from launcher.transports.ssh.silent_paths import no_answer

_LISTING_BYTES = 4 << 20
"""Longest listing that is taken whole, some 40,000 names; of a longer one, what is missing is asked for."""
_LIST_TIMEOUT_S = 60.0
_ANSWER_S = 15.0


@dataclass(frozen=True, slots=True)
class HostEntry:
    """A file or directory; of a link, what it leads to."""

    mode: int
    size: int
    mtime_ns: int
    inode: int
    is_link: bool = False

    def status(self) -> os.stat_result:
        """Return it as `os.stat` does."""
        seconds = self.mtime_ns / 1e9
        times = (int(seconds),) * 3
        return os.stat_result(
            (self.mode, self.inode, 0, 1, 0, 0, self.size, *times, *(seconds,) * 3, *(self.mtime_ns,) * 3)
        )


@dataclass(slots=True)
class HostListing:
    """Entries of a directory by name, not all where it was too long. None: a link not yet followed."""

    entries: dict[str, HostEntry | None]
    whole: bool = True


class HostListings:
    """Directories of a host as they were when they were first asked for."""

    def __init__(self, machine: HostMachine) -> None:
        self._machine = machine
        self._listings: dict[str, HostListing | OSError] = {}
        self.now = 0.0
        """Time there at the last listing, in seconds since the epoch."""

    def forget(self, directory: str) -> None:
        """Forget a directory's listing: something in it was changed."""
        self._listings.pop(directory, None)

    def files_below(self, path: str) -> list[str]:
        """Return the paths of all files below a directory that was surveyed, relative to it, sorted."""
        files: list[str] = []
        waiting = [path]
        while waiting:
            directory = waiting.pop()
            listing = self._listings.get(directory)
            for name, entry in listing.entries.items() if isinstance(listing, HostListing) else ():
                inner = posixpath.join(directory, name)
                if entry is not None and stat.S_ISDIR(entry.mode):
                    waiting.append(inner)
                elif entry is not None:
                    files.append(posixpath.relpath(inner, path))
        return sorted(files)

    def entry(self, path: str) -> HostEntry:
        """Return the entry of an absolute path.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
        path = posixpath.normpath(path)
        parent, name = posixpath.split(path)
        if not name:
            return HostEntry(stat.S_IFDIR | 0o755, 0, 0, 0)
        try:
            listing = self.listing(parent)
        except PermissionError:
            return self._ask(path)  # what is in it can be looked at all the same
        entry = listing.entries.get(name)
        if entry is None:
            if name not in listing.entries and listing.whole:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            entry = listing.entries[name] = self._ask(path)
        return entry

    def _ask(self, path: str) -> HostEntry:
        found = self._machine.with_files(lambda files: files.stat(path))
        kind = stat.S_IFDIR if found.is_dir else stat.S_IFREG
        return HostEntry(kind | 0o644, found.size, int(found.mtime * 1e9), found.inode, is_link=True)

    def listing(self, directory: str) -> HostListing:
        """Return a directory's listing; the first time, with those of all directories above it.

        Raises:
            OSError: the refusal.
            TransportError: the host does not answer.
        """
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
        if not isinstance(above, HostListing) or not above.whole:
            return None
        if name not in above.entries:
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
        entry = above.entries[name]
        if entry is not None and not stat.S_ISDIR(entry.mode):
            return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        return None

    def _list(self, directory: str) -> None:
        new = self._unlisted((directory,))
        try:
            self._run_listing(
                new, [*(listing_script(path) for path in new), links_script(directory)], _ANSWER_S
            )
        except LateError:
            self._list_names(new)

    def _list_names(self, directories: Iterable[str]) -> None:
        """List names alone, where something in a directory gives no answer; each is asked for by itself."""
        for directory in directories:
            try:
                names = names_in(self._machine.connection, directory)
            except LateError:
                self._machine.connection.silent_paths.note(directory)
                self._listings[directory] = no_answer(directory)
            except OSError as error:
                self._listings[directory] = error
            else:
                self._listings[directory] = HostListing(dict.fromkeys(names))

    def _unlisted(self, directories: Iterable[str]) -> list[str]:
        """Return the directories, and those above them, that have not been listed."""
        new: dict[str, None] = {}
        for directory in directories:
            while directory not in new and directory not in self._listings:
                new[directory] = None
                if directory == "/":
                    break
                directory = posixpath.dirname(directory)
        return list(new)

    def survey(self, trees: Iterable[str]) -> None:
        """List whole trees, and the directories above them, in one request.

        Hidden directories and environments are left out.

        Raises:
            TransportError: the host does not answer.
        """
        new = [tree for tree in trees if f"{tree}/" not in self._listings]
        if not new:
            return
        parents = dict.fromkeys(map(posixpath.dirname, new))
        above = self._unlisted(parents)
        left_out = "\\( -type d \\( -name '.?*' -o -name venvs \\) -prune \\)"
        lines = [
            f"find -L {quote(tree)}/ -mindepth 1 {left_out} -o -printf 'T %y %s %T@ %i %p\\0' 2>/dev/null\n"
            f"find {quote(tree)}/ -mindepth 1 {left_out} -o -type l -printf 'K %p\\0' 2>/dev/null"
            for tree in new
        ]
        listings = [*map(listing_script, above), *map(links_script, parents)]
        self._run_listing(above, [*listings, *lines])
        for tree in new:
            self._listings[f"{tree}/"] = HostListing({})

    def _run_listing(
        self, directories: Iterable[str], lines: Iterable[str], timeout_s: float = _LIST_TIMEOUT_S
    ) -> None:
        body = "\n".join(["printf 'N %s\\0' \"$(date +%s)\"", *lines, "exit 0"])
        done = run_script(self._machine.connection, body, "find", env=PLAIN_ENVIRONMENT, timeout_s=timeout_s)
        records = done.stdout.decode("utf-8", errors="surrogateescape").split("\0")
        for record, following in pairwise(records):  # the last one is empty, or cut
            if not following.startswith("= 1 "):  # else it was cut in the middle
                self._take(record)
        for directory in directories:
            self._listings.setdefault(
                directory, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), directory)
            )

    def _take(self, record: str) -> None:
        """Take one record of a listing, by its first letter (see `listing_script`, `_list`, `survey`)."""
        kind, _, rest = record.partition(" ")
        if kind == "N":
            self.now = float(rest)
        elif kind == "=":
            whole, _, path = rest.partition(" ")
            listing = self._listings.get(path)
            if whole == "1" and isinstance(listing, HostListing):
                listing.whole = False
            else:
                self._listings[path] = HostListing({})
        elif kind == "E":
            code, _, path = rest.partition(" ")
            self._listings[path] = refusal(code, path)
        elif kind == "F":
            what, size, mtime, inode, path = rest.split(" ", 4)
            entry = None if what == "l" else HostEntry(_mode(what), int(size), _ns(mtime), int(inode))
            self._put(path, entry)
        elif kind == "L":
            mode, size, mtime, inode, path = rest.split(" ", 4)
            self._put(path, HostEntry(int(mode, 16), int(size), _ns(mtime), int(inode), is_link=True))
        elif kind == "T":
            what, size, mtime, inode, path = rest.split(" ", 4)
            path = posixpath.normpath(path)
            if what == "d":
                self._listings.setdefault(path, HostListing({}))
            self._put(path, HostEntry(_mode(what), int(size), _ns(mtime), int(inode)))
        elif kind == "K":
            self._mark_link(posixpath.normpath(rest))

    def _mark_link(self, path: str) -> None:
        """Note of an entry of a tree that a link leads to it."""
        parent, name = posixpath.split(path)
        listing = self._listings.get(parent)
        entry = listing.entries.get(name) if isinstance(listing, HostListing) else None
        if entry is not None:
            self._put(path, replace(entry, is_link=True))

    def _put(self, path: str, entry: HostEntry | None) -> None:
        parent, name = posixpath.split(posixpath.normpath(path))
        listing = self._listings.get(parent)
        if not isinstance(listing, HostListing):
            listing = self._listings[parent] = HostListing({})
        listing.entries[name] = entry

    def is_plain(self, path: str) -> bool:
        """Return whether there is surely no link in a path."""
        while path != "/":
            parent, name = posixpath.split(path)
            listing = self._listings.get(parent)
            if not isinstance(listing, HostListing) or not listing.whole:
                return False
            entry = listing.entries.get(name)
            if name in listing.entries and (entry is None or entry.is_link):
                return False
            path = parent
        return True


def listing_script(directory: str) -> str:
    """Return the lines of `sh` that list one directory, links not followed."""
    name = quote(directory)
    # The refusals of `find` go by the first word after the last colon.
    return (
        f"if out=$(cd -- {name} 2>&1) && [ -r {name} ]; then"
        f" printf '= 0 %s\\0' {name};"
        f" find {quote(posixpath.join(directory, ''))} -mindepth 1 -maxdepth 1"
        f" -printf 'F %y %s %T@ %i %p\\0' 2>/dev/null | {{ head -c {_LISTING_BYTES};"
        f" [ \"$(wc -c)\" -eq 0 ] || printf '\\0= 1 %s\\0' {name}; }};"
        f" else printf 'E %s %s\\0' \"$([ -e {name} ] && {{ [ -d {name} ] && echo EACCES || echo ENOTDIR; }}"
        f' || echo ENOENT)" {name}; fi'
    )


def links_script(directory: str) -> str:
    """Return the line of `sh` that tells what the links in a directory lead to.

    Not for the directories above: that could mount every file system of a site.
    """
    return (
        f"find {quote(directory)}/ -mindepth 1 -maxdepth 1 -type l"
        f" -exec stat -L --printf 'L %f %s %.9Y %i %n\\0' {{}} + 2>/dev/null"
    )


def _mode(kind: str) -> int:
    """Return the mode of a kind as `find` prints it."""
    kinds = {"d": stat.S_IFDIR, "f": stat.S_IFREG, "p": stat.S_IFIFO, "s": stat.S_IFSOCK, "c": stat.S_IFCHR}
    return kinds.get(kind, stat.S_IFBLK) | 0o644


def _ns(seconds: str) -> int:
    """Return a time in nanoseconds from decimal seconds, without the loss of a float."""
    whole, _, part = seconds.partition(".")
    return int(whole) * 10**9 + int(f"{part:0<9.9}" or 0)
