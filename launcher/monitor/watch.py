"""Watch of a run: finds its logs, follows them, asks the cluster, and keeps the run's state."""

from __future__ import annotations

import os.path
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from launcher.errors import TransportError
from launcher.logs.clock import CLOCK_NAME, LogClock
from launcher.logs.events import (
    Event,
    FindingSeen,
    JobChanged,
    NoticesChanged,
    Role,
    RootFindingChanged,
    Source,
    unanswered,
)
from launcher.logs.follow import BUDGET, CHUNK, Follower
from launcher.logs.gpu_tables import TAIL_BYTES as GPU_TAIL_BYTES
from launcher.logs.gpu_tables import NodeGpus, node_of_table, read_table_end
from launcher.logs.lines import segments
from launcher.logs.roles import ContentRoles, role_of
from launcher.logs.sources import DEPTH, LOG_DIRECTORIES, DirectoryLogs, LogFile, LogLocations, discover
from launcher.logs.trackers import Trackers, resolve
from launcher.monitor.run_status import job_status_by_log_age
from launcher.monitor.state import RunState
from launcher.monitor.stuck import stuck
from launcher.monitor.usual import Usual
from launcher.transports.base import FileStat, ReadRange, Transport
from recipes.errors import ExplainedError

JobProbe = Callable[[], JobChanged | None]
NOTICE_S = 5.0
"""Interval of the checks for what is stuck."""
TAIL_BYTES = 16 * 1024
_PARENTS = 3
"""Log directories lie up to so many levels below where a job was submitted from."""


def _unreadable_finding(problem: str) -> FindingSeen:
    """Return the warning about a directory whose logs are not among those that are followed."""
    source = Source("", Role.DRIVER, 0)
    return FindingSeen(
        "no-logs", "A directory of logs cannot be read", "warning", problem, source, "", tier=3
    )


@dataclass(slots=True)
class Watch:
    """Followed logs of one run. `poll` does everything; call it from one thread at a time."""

    transport: Transport
    directories: tuple[str, ...] = ()
    files: tuple[LogFile, ...] = ()
    probe: JobProbe | None = None
    """Returns the cluster's status of the job; None where there are only logs."""
    state: RunState = field(default_factory=RunState)
    problem: str = ""
    """Why the logs cannot be read at this moment; empty if they can."""
    locate: Callable[[], LogLocations] | None = None
    """Returns the locations of the logs, where they may change; called at every poll."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Directory -> prefix of the names of its logs."""
    missing: tuple[FindingSeen, ...] = ()
    """Warnings about logs that cannot be found or read."""
    working_directories: tuple[str, ...] = ()
    """Directories that the driver may run in, the likeliest first; it prints paths relative to its own."""
    in_front: bool = True
    """True while displayed; the cluster is asked less often otherwise."""
    with_trackers: bool = True
    """Whether the metrics of TensorBoard's files become part of the state."""
    usual: Callable[[], Usual] = Usual
    """Returns the usual durations of the run's recipe and size; called when first needed."""
    now: Callable[[], float] = time.time
    _followers: dict[str, Follower] = field(default_factory=dict)
    _clocks: dict[str, LogClock] = field(default_factory=dict)
    _clock_files: dict[str, tuple[str, FileStat]] = field(default_factory=dict)
    """Clock -> its file's path and entry."""
    _live_from: dict[str, int] = field(default_factory=dict)
    _polls: int = 0
    _last_notices: float = 0.0
    _newest_mtime: float | None = None
    _sizes: dict[str, int] = field(default_factory=dict)
    _trackers: Trackers | None = None
    _resolved: dict[str, str] = field(default_factory=dict)
    """Directory as the driver printed it -> the directory that is searched."""
    _contents: ContentRoles | None = None
    _gpu_tables: dict[str, tuple[str, FileStat]] = field(default_factory=dict)
    """Node -> path and entry of its table of GPU use."""
    _root: FindingSeen | None = None
    _unreadable: tuple[FindingSeen, ...] = ()
    """Warnings about directories of logs that cannot be listed."""

    def find_logs(self) -> None:
        """Find the present logs, so that they can be displayed before anything of them is read."""
        try:
            with self._looking():
                for log, entry in self._list_logs():
                    self._apply(self._follow(log, entry, 0))
        except TransportError as error:
            self.problem = str(error)

    def poll(self, budget: int = BUDGET) -> list[Event]:
        """Read what is new (up to `budget` bytes of each log), apply it to the state, return the events."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._looking())
            except TransportError as error:
                self.problem = str(error)
                return []
            return self._poll(budget)

    def _looking(self) -> AbstractContextManager[None]:
        """Return a context in which the logs' directories are looked at once."""
        return self.transport.looking_at(self.directories, DEPTH, LOG_DIRECTORIES)

    def _poll(self, budget: int) -> list[Event]:
        events: list[Event] = []
        try:
            present = self._list_logs()
            self.problem = ""
            clocks = [
                ReadRange(path, clock.offset, size - clock.offset)
                for clock, path, size in self._grown_clocks()
            ]
            self.transport.read_ahead([*clocks, *self._unread(present, budget)])
            for clock, path, size in self._grown_clocks():
                clock.follow(partial(self.transport.read, path), size)
        except TransportError as error:
            self.problem = str(error)
            return events
        for log, entry in present:
            events += self._apply(self._follow(log, entry, budget))
        events += self._apply(self._date_milestones())
        events += self._apply(self._ask_cluster())
        events += self._read_trackers()
        events += self._root_change()
        events += self._apply(self._check_stuck())
        self._polls += 1
        return events

    def _unread(self, present: Iterable[tuple[LogFile, FileStat | None]], budget: int) -> Iterator[ReadRange]:
        """Yield the parts of logs that this poll will read first, some megabytes of all."""
        left = BUDGET
        for log, entry in present:
            follower = self._followers.get(log.name)
            offset = follower.offset if follower is not None else 0
            size = min(entry.size - offset, CHUNK, budget, left) if entry is not None else 0
            if size > 0:
                left -= size
                yield ReadRange(log.path, offset, size)

    def catch_up(self, *, final: bool = False) -> list[Event]:
        """Poll until everything present is read; `final`: unfinished last lines, too."""
        events = self.poll()
        while self.behind:
            before = self._offsets()
            events += self.poll()
            if self._offsets() == before:  # a file that has less than its entry says
                break
        if final:
            for follower in self._followers.values():
                events += self._apply(follower.finish(self._clock_of(follower.log)))
            events += self._read_trackers(force=True)
            events += self._root_change()
            events += self._apply(self._check_stuck())
        return events

    @property
    def known_logs(self) -> tuple[LogFile, ...]:
        """Logs found so far, including those that are gone again."""
        return tuple(follower.log for follower in self._followers.values())

    @property
    def behind(self) -> bool:
        """True if some log holds more than was read at the last poll; one that cannot be read does not."""
        return any(
            self._sizes.get(name, 0) > follower.offset and not follower.problem
            for name, follower in self._followers.items()
        )

    def _offsets(self) -> list[int]:
        return [follower.offset for follower in self._followers.values()]

    def _read_trackers(self, *, force: bool = False) -> list[Event]:
        """Read the files of tracking tools, once there is a driver to write them."""
        if not self.with_trackers:
            return []
        if self._trackers is None:
            if not self.state.tracked and not any(log.role is Role.DRIVER for log in self.known_logs):
                return []
            self._trackers = Trackers(self.transport, set(self.directories))
        self._trackers.directories |= self._tracking_directories()
        return self._apply(self._trackers.poll(self.now(), force=force))

    def _tracking_directories(self) -> set[str]:
        """Return the directories that the driver printed, found from where it may run."""
        for path in self.state.tracked - self._resolved.keys():
            resolved = resolve(self.transport, path, self._bases())
            if resolved is not None:
                self._resolved[path] = resolved
        return set(self._resolved.values())

    def tracking_directories(self) -> set[str]:
        """Return the directories below which tracking tools may have written files."""
        return set(self.directories) | self._tracking_directories()

    def gpu_tables(self) -> tuple[tuple[str, FileStat], ...]:
        """Return path and entry of each node's latest table of GPU use."""
        return tuple(self._gpu_tables.values())

    def _bases(self) -> Iterator[str]:
        """Yield directories that a driver's relative paths may count from, the likeliest first."""
        yield from self.working_directories
        beside = [*self.directories, *(str(Path(log.path).parent) for log in self.files)]
        for directory in dict.fromkeys(beside):
            yield from map(str, (Path(directory), *Path(directory).parents[:_PARENTS]))

    def _apply(self, events: Iterable[Event]) -> list[Event]:
        """Apply events to the state, each as it comes."""
        applied = []
        for event in events:
            self.state.apply(event)
            applied.append(event)
        return applied

    def _root_change(self) -> list[Event]:
        """Return an event if another finding than at the last poll is taken for the cause."""
        root, before = self.state.diagnosis.root, self._root
        self._root = root
        if (root and (root.id, root.source)) == (before and (before.id, before.source)):
            return []
        return [RootFindingChanged(root, before)]

    def _check_stuck(self) -> Iterator[Event]:
        """Yield an event if the warnings about what is stuck or missing have changed."""
        now = self.now()
        if self.behind or abs(now - self._last_notices) < NOTICE_S:
            return
        self._last_notices = now
        notices = (
            *stuck(self.state, now, self._last_line, self._gpus, self.usual),
            *self.missing,
            *self._unreadable,
        )
        if notices != self.state.notices:
            yield NoticesChanged(notices)

    def _note_gpu_tables(self, listing: DirectoryLogs) -> None:
        """Keep the latest table of each node: a requeue writes new ones."""
        for path, entry in listing.gpu_tables:
            node = node_of_table(Path(path).name) or path
            present = self._gpu_tables.get(node)
            if present is None or present[1].mtime <= entry.mtime:
                self._gpu_tables[node] = (path, entry)

    def _gpus(self) -> tuple[NodeGpus, ...]:
        """Return each node's GPUs by the end of its table; a node whose table cannot be read is left out."""
        nodes = []
        for node, (path, entry) in self._gpu_tables.items():
            start = max(entry.size - GPU_TAIL_BYTES, 0)
            try:
                data = self.transport.read(path, start, entry.size - start)
            except TransportError:
                continue
            nodes.append(read_table_end(node, entry.mtime, data))
        return tuple(nodes)

    def _last_line(self, name: str) -> str:
        """Return the last non-empty line of a log; empty where it cannot be read."""
        log = self._followers[name].log
        try:
            start = max(self._sizes.get(name, 0) - TAIL_BYTES, 0)
            data = self.transport.read(log.path, start, TAIL_BYTES)
        except TransportError:
            return ""
        texts = (segment.text for line in reversed(data.split(b"\n")) for segment in segments(line)[-1:])
        return next(texts, "")

    def _list_logs(self) -> list[tuple[LogFile, FileStat | None]]:
        """Return every log of this or an earlier poll, with its present directory entry."""
        present: dict[str, tuple[LogFile, FileStat | None]] = {}
        for name, follower in self._followers.items():
            present[name] = (follower.log, None)
        if self.locate is not None:
            locations = self.locate()
            self.directories, self.prefixes = tuple(locations.directories), locations.directories
            self.files, self.missing = locations.files, locations.missing
            self.working_directories = (locations.working_directory,) if locations.working_directory else ()
        present |= {log.name: (log, self.transport.stat(log.path)) for log in self.files}
        contents = self._contents = self._contents or ContentRoles(self.transport)
        self._clock_files.clear()
        unreadable: list[str] = []
        for directory in self.directories:
            listing, prefix = discover(self.transport, directory, contents), self.prefixes.get(directory, "")
            unreadable += listing.unreadable
            self._note_gpu_tables(listing)
            for relative, entry in listing.clocks:
                path = os.path.join(directory, relative, CLOCK_NAME)
                self._clock_files[f"{prefix}{relative}".rstrip("/")] = path, entry
            for log, entry in listing.logs:
                named = replace(log, name=f"{prefix}{log.name}") if prefix else log
                present[named.name] = (named, entry)
        self._unreadable = tuple(map(_unreadable_finding, unreadable))
        self._sizes = {name: entry.size for name, (_, entry) in present.items() if entry is not None}
        self._newest_mtime = max(
            (entry.mtime for _, entry in present.values() if entry is not None), default=None
        )
        return list(present.values())

    def _grown_clocks(self) -> Iterator[tuple[LogClock, str, int]]:
        """Yield the clocks that were not read to their ends, with path and size of their files."""
        for name, (path, entry) in self._clock_files.items():
            clock = self._clocks.setdefault(name, LogClock())
            if entry.size > clock.offset:
                yield clock, path, entry.size

    def _follow(self, log: LogFile, entry: FileStat | None, budget: int) -> Iterator[Event]:
        follower = self._followers.get(log.name)
        if follower is None:
            if entry is None:
                return
            follower = self._followers[log.name] = Follower.of(self.transport, log)
            self._live_from[log.name] = 0 if self._polls else entry.size
        yield from follower.poll(entry, self._clock_of(log), budget)

    def _clock_of(self, log: LogFile) -> Callable[[int], float | None]:
        live_from = self._live_from.get(log.name, 0)
        now = self.now()

        def clock(offset: int) -> float | None:
            recorded = self._recorded_time(log.name, offset)
            return recorded if recorded is not None or offset < live_from else now

        return clock

    def _recorded_time(self, log: str, offset: int) -> float | None:
        """Return the time by which a byte of a log was there, by the clock beside the log."""
        directory, _, base = log.rpartition("/")
        clock = self._clocks.get(directory)
        return clock.time_of(base, offset) if clock is not None else None

    def _date_milestones(self) -> Iterator[Event]:
        """Yield milestones again that were read before the clock had reached their lines, with their time."""
        for event in list(self.state.milestones.values()):
            if event.time is None:
                time = self._recorded_time(event.source.log, event.source.offset)
                if time is not None:
                    yield replace(event, time=time)

    def _ask_cluster(self) -> Iterator[Event]:
        try:
            answer = self.probe() if self.probe is not None else None
        except ExplainedError as error:
            # No answer is not the end of a job: its last known status stays.
            answer = unanswered(self.state.job, error.what)
        answer = answer or job_status_by_log_age(self._newest_mtime, self.now())
        if answer != self.state.job:
            yield answer
        else:
            self.state.apply(answer)  # the same answer, but a later one


def watch_directory(transport: Transport, directory: str) -> Watch:
    """Watch a directory of logs, whatever wrote them."""
    return Watch(transport, (directory,))


def watch_logs(transport: Transport, logs: Sequence[tuple[Role | None, str]]) -> Watch:
    """Watch single files; a role that is not given follows from the file's name, else it is a driver's."""
    files = [
        LogFile(
            Path(path).name if _has_unique_name(path, logs) else path,
            path,
            role or role_of(path) or Role.DRIVER,
            mixed=role is None and role_of(path) is None,
        )
        for role, path in logs
    ]
    return Watch(transport, files=tuple(files))


def _has_unique_name(path: str, logs: Sequence[tuple[Role | None, str]]) -> bool:
    return sum(Path(other).name == Path(path).name for _, other in logs) == 1
