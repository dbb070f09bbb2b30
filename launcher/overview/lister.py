"""The runs of a root, kept up to date: one listing of the root, and reads of what changed or lives."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.logs.job_state import JobState
from launcher.overview.row_cache import CachedRow, Version, cache_file, dumped, load_rows
from launcher.overview.rows import RunRow, damaged_row, filled_row, starting_row
from launcher.run_directories import list_directories, user_roots
from launcher.text import clean
from launcher.transports.base import FileStat, ReadRange
from recipes.errors import ExplainedError

if TYPE_CHECKING:  # imported by the methods, on the thread, after the first paint
    from launcher.monitor.watch import Watch
    from launcher.runs import Run, RunStore
    from launcher.transports.base import Transport

LIVE_S = 3.0
"""Polling interval of a run that lives."""
UNKNOWN_S = 30.0
"""Polling interval of a run with an unknown state."""
_SAVE_S = 60.0
_COUNTED_ENTRIES = 20_000
_HEAD_BYTES = 256 * 1024
_HEADS = 100
"""Runs of a host whose models are read in one request; those of further ones are left open."""
_EFFECTIVE = "effective.yaml"
_NAME_CHARS = 500
_MODEL = r"^{side}:\n(?:[ ]{{2}}.*\n|\n)*?  model_name: (?P<name>.+)$"
_STUDENT, _TEACHER = (re.compile(_MODEL.format(side=side), re.MULTILINE) for side in ("policy", "teacher"))


@dataclass(slots=True)
class _Entry:
    """A run of the list, and its watch while it is active."""

    version: Version
    row: RunRow
    run: Run | None = None
    """None for a row from the cache, and for a directory that cannot be read as a run."""
    watch: Watch | None = None
    due: float = 0.0
    """Time of the next poll (monotonic clock); infinity once it has ended."""


@dataclass(slots=True)
class RunLister:
    """Lists the runs of a root; reads the logs of active runs, and the summaries of the others."""

    transport: Transport
    root: str
    now: Callable[[], float] = time.monotonic
    in_front: Callable[[], bool] = lambda: True
    """Whether the terminal has the focus."""
    cache: Path | None = None
    """File of the rows of ended runs; None: nothing is kept."""
    host: str = ""
    """Name of the host that has the runs; empty for this machine."""
    progress: Callable[[], None] = lambda: None
    """Called after each run that is read."""
    earlier: tuple[str, ...] | None = None
    """Further directories whose runs are listed; None: as the settings here say."""
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _order: list[str] = field(default_factory=list)
    _listed: dict[str, Version | None] = field(default_factory=dict)
    """Roots as they were when they were listed last; None: not there."""
    _kept: dict[str, CachedRow] | None = None
    _unsaved: bool = False
    _saved: float = field(default=float("-inf"))

    @classmethod
    def of_user(
        cls,
        transport: Transport,
        root: str,
        in_front: Callable[[], bool],
        environment: Mapping[str, str] = os.environ,
    ) -> RunLister:
        """Return the lister of a root with the user's cache."""
        return cls(transport, root, in_front=in_front, cache=cache_file(root, environment))

    @classmethod
    def of_host(
        cls,
        host: str,
        store: RunStore,
        in_front: Callable[[], bool],
        environment: Mapping[str, str] = os.environ,
    ) -> RunLister:
        """Return the lister of a host's runs, whose ended ones are kept in the user's cache here."""
        cache = cache_file(store.root, environment, host)
        return cls(
            store.transport, store.root, in_front=in_front, cache=cache, host=host, earlier=store.earlier
        )

    def looking(self) -> AbstractContextManager[None]:
        """Return a context in which the records of all runs are those of its beginning, read at once.

        Raises (on entering):
            TransportError: the machine does not answer.
        """
        from launcher.runs import JOBS, SPEC, SUMMARY

        return self.transport.looking_at_files(self._roots(), (SPEC, JOBS, SUMMARY))

    def _roots(self) -> tuple[str, ...]:
        if self.earlier is None:
            return user_roots(Path(self.root))
        return (self.root, *self.earlier)

    def relist(self, *, forced: bool = False) -> None:
        """List the root again; what its directories say to have changed is read at the next polls.

        `forced`: everything is, also what has ended.

        Raises:
            TransportError: the root cannot be listed.
        """
        kept = self._kept_rows()
        order: list[str] = []
        roots = self._roots()
        self._listed = {root: self._version(root) for root in roots}
        listed = list_directories(self.transport, roots)
        self._read_heads(listed, kept)
        for directory, status in listed:
            entry = self._entries.get(directory)
            version = (status.mtime, status.inode)
            if entry is None or forced or entry.version != version:
                cached = kept.get(directory)
                if entry is None and not forced and cached is not None and cached.version == version:
                    entry = _Entry(version, cached.row, due=float("inf"))
                elif status.is_silent:
                    entry = self._damaged(directory, version, "no answer from the file system")
                else:
                    entry = self._read(directory, version, entry)
                    self.progress()
                if entry is None:
                    continue
                self._entries[directory] = entry
            order.append(directory)
        gone = self._entries.keys() - set(order)
        for directory in gone:
            del self._entries[directory]
            self._unsaved = kept.pop(directory, None) is not None or self._unsaved
        self._order = order

    def look_at(self, directories: Iterable[str]) -> bool:
        """Look whether these runs, or those that live, have changed; False where all must be listed again.

        Listing a thousand runs takes ten times as long.

        Raises:
            TransportError: a directory cannot be looked at.
        """
        if not self._listed or any(self._version(root) != version for root, version in self._listed.items()):
            return False
        live = (directory for directory, entry in self._entries.items() if entry.due < float("inf"))
        for directory in dict.fromkeys((*directories, *live)):
            entry, version = self._entries.get(directory), self._version(directory)
            if entry is None or version is None:
                return False
            if entry.version != version:
                changed = self._read(directory, version, entry)
                if changed is None:
                    return False
                self._entries[directory] = changed
        return True

    def _version(self, directory: str) -> Version | None:
        status = self.transport.stat(directory)
        return (status.mtime, status.inode) if status is not None else None

    def _read_heads(self, listed: list[tuple[str, FileStat]], kept: Mapping[str, CachedRow]) -> None:
        """Read at once what names the models of runs that are new; without effect on this machine."""
        new = [
            directory
            for directory, status in listed
            if directory not in self._entries
            and (directory not in kept or kept[directory].version != (status.mtime, status.inode))
        ]
        paths = (str(Path(directory, _EFFECTIVE)) for directory in new[:_HEADS])
        self.transport.read_ahead([ReadRange(path, 0, _HEAD_BYTES) for path in paths])

    def _read(self, directory: str, version: Version, before: _Entry | None) -> _Entry | None:
        """Return the entry of a directory that is new or has changed; None where it is no run at all."""
        from launcher.errors import ConnectionLostError, InputError, TransportError
        from launcher.runs import SPEC, load

        try:
            if self.transport.stat(str(Path(directory, SPEC))) is None:
                return None
            run = load(self.transport, directory)
        except ConnectionLostError:  # that says nothing about the run
            raise
        except (InputError, TransportError) as error:
            return self._damaged(directory, version, error.what)
        row = replace(starting_row(run), host=self.host)
        if before is not None and before.run is not None and not before.row.damaged:
            # Its jobs changed: what is known of it stays on the screen until it is read.
            known = before.row
            row = replace(known, name=row.name, job=row.job, jobs=row.jobs, started=row.started)
            watch = before.watch
        else:
            student, teacher = self._models(directory)
            row, watch = replace(row, student=student, teacher=teacher), None
        return _Entry(version, row, run, watch)

    def _damaged(self, directory: str, version: Version, problem: str) -> _Entry:
        """Return the entry of a directory that cannot be read; it is read again when it has changed."""
        from launcher.runs import Damaged

        row = damaged_row(Damaged(directory, problem))
        return _Entry(version, replace(row, host=self.host), due=float("inf"))

    def _models(self, directory: str) -> tuple[str, str]:
        """Return the names of student and teacher, by the effective recipe as this program wrote it."""
        try:
            text = self.transport.read(str(Path(directory, _EFFECTIVE)), 0, _HEAD_BYTES)
        except ExplainedError:
            return "", ""
        content = text.decode(errors="replace")
        matches = (pattern.search(content) for pattern in (_STUDENT, _TEACHER))
        student, teacher = (
            clean(match["name"][:_NAME_CHARS].strip("'\" ")) if match else "" for match in matches
        )
        return student, teacher

    def poll_next(self) -> bool:
        """Poll the next run that is due; False when none is."""
        for directory in self._order:
            entry = self._entries[directory]
            if entry.due <= self.now():
                self._poll(entry)
                return True
        return False

    def rows(self) -> tuple[RunRow, ...]:
        """Return the list, newest first."""
        return tuple(self._entries[directory].row for directory in self._order)

    def _poll(self, entry: _Entry) -> None:
        from launcher.errors import ConnectionLostError
        from launcher.monitor.watch_run import summarise, watch_run
        from launcher.saved_summary import load_summary

        if entry.run is None:
            entry.due = float("inf")
            return
        try:
            summary = load_summary(self.transport, entry.run) if entry.watch is None else None
            if summary is None:
                watch = entry.watch = entry.watch or watch_run(self.transport, entry.run)
                watch.in_front = self.in_front()
                watch.catch_up()
                summary = summarise(self.transport, entry.run, watch)
        except ConnectionLostError:
            raise
        except ExplainedError as error:  # its files are damaged, or gone, since it was listed
            entry.row = replace(entry.row, state=None, damaged=clean(error.what))
            entry.due = self.now() + UNKNOWN_S
            return
        entry.row = filled_row(entry.row, summary)
        settled = entry.watch is None or entry.watch.state.settled
        entry.due = self.now() + _pause(entry.row, settled=settled)
        if entry.due == float("inf"):
            entry.watch = None
            self._keep(entry)

    def _keep(self, entry: _Entry) -> None:
        """Keep the row of a run that has ended."""
        status = self.transport.stat(entry.row.directory)
        if status is not None:
            # Saving its summary has changed the directory.
            entry.version = (status.mtime, status.inode)
            self._kept_rows()[entry.row.directory] = CachedRow(entry.version, entry.row)
            self._unsaved = True

    # ------------------------------------------------------------ size on disk

    def count_one(self, directories: Iterable[str]) -> bool:
        """Count the size on disk of the first of these that has ended and was not counted; False: none."""
        from launcher.storage.disk_use import DiskCounter

        for directory in directories:
            entry = self._entries.get(directory)
            if entry is not None and entry.row.bytes is None and entry.row.state and entry.row.state.ended:
                counter = DiskCounter(entries=_COUNTED_ENTRIES)
                entry.row = replace(entry.row, bytes=sum(counter.count(directory).values()))
                self._keep(entry)
                return True
        return False

    # ------------------------------------------------------------ cache

    def _kept_rows(self) -> dict[str, CachedRow]:
        if self._kept is None:
            self._kept = load_rows(self.cache) if self.cache is not None else {}
        return self._kept

    def save(self, *, now: bool = False) -> None:
        """Write the kept rows if there are new ones, at most once a minute unless `now`."""
        from launcher.storage.private_files import write_private

        if self.cache is None or not self._unsaved or (not now and self.now() - self._saved < _SAVE_S):
            return
        self._unsaved, self._saved = False, self.now()
        with suppress(OSError):  # a full or read-only home directory: read anew each time
            write_private(self.cache, dumped(self._kept_rows()))


def _pause(row: RunRow, *, settled: bool) -> float:
    if row.state is None or row.state is JobState.UNKNOWN or (row.state.ended and not settled):
        return UNKNOWN_S
    return float("inf") if row.state.ended else LIVE_S
