"""Watching a run: find its logs, follow them, ask the cluster, and keep the run's state."""

from __future__ import annotations

import os.path
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from launcher.errors import TransportError
from launcher.logs.clock import LogClock
from launcher.logs.events import (
    Event,
    FindingSeen,
    JobChanged,
    JobState,
    NoticesChanged,
    Role,
    RootFindingChanged,
    unanswered,
)
from launcher.logs.follow import BUDGET, Follower
from launcher.logs.lines import segments
from launcher.logs.sources import CLOCK_NAME, LogFile, discover, role_of
from launcher.logs.trackers import Trackers
from launcher.monitor.state import RunState
from launcher.monitor.stuck import stuck
from launcher.transports.base import FileStat, Transport
from recipes.errors import ExplainedError

JobProbe = Callable[[], JobChanged | None]
RECENT_S = 120.0
"""A log written within this time is taken as a sign that its run lives, where no cluster can be asked."""


NOTICE_S = 5.0
"""How often it is looked at whether something is stuck."""
TAIL_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class LogLocations:
    """Where the logs of a job are at this moment."""

    directories: Mapping[str, str] = field(default_factory=dict)
    """Directory -> what stands before the names of its logs."""
    files: tuple[LogFile, ...] = ()
    missing: tuple[FindingSeen, ...] = ()
    """What to tell where they cannot be found or read."""


@dataclass(slots=True)
class Watch:
    """The logs of one run, followed. `poll` does everything; call it from one thread at a time."""

    transport: Transport
    directories: tuple[str, ...] = ()
    files: tuple[LogFile, ...] = ()
    probe: JobProbe | None = None
    """Asks the cluster; None where there is only what the logs say."""
    state: RunState = field(default_factory=RunState)
    problem: str = ""
    """Why the logs cannot be read at this moment; empty when they can."""
    places: Callable[[], LogLocations] | None = None
    """Where the logs are, where that may change: asked at every poll."""
    prefixes: Mapping[str, str] = field(default_factory=dict)
    """Directory -> what stands before the names of its logs."""
    missing: tuple[FindingSeen, ...] = ()
    """What is told of logs that cannot be read."""
    in_front: bool = True
    """Whether someone looks; where nobody does, the cluster is asked less often."""
    now: Callable[[], float] = time.time
    _followers: dict[str, Follower] = field(default_factory=dict)
    _clocks: dict[str, LogClock] = field(default_factory=dict)
    _live_from: dict[str, int] = field(default_factory=dict)
    _polls: int = 0
    _noticed: float = 0.0
    _newest: float = 0.0
    _sizes: dict[str, int] = field(default_factory=dict)
    _trackers: Trackers | None = None
    _root: FindingSeen | None = None

    def find_logs(self) -> None:
        """Find the logs there are, so that they can be looked at before anything of them was read."""
        try:
            for log, entry in self._look():
                self._take(self._follow(log, entry, 0))
        except TransportError as error:
            self.problem = str(error)

    def poll(self, budget: int = BUDGET) -> list[Event]:
        """Read what is new (up to `budget` bytes of each log), take it into the state, return the events."""
        events: list[Event] = []
        try:
            present = self._look()
            self.problem = ""
        except TransportError as error:
            self.problem = str(error)
            return events
        for log, entry in present:
            events += self._take(self._follow(log, entry, budget))
        events += self._take(self._date())
        events += self._take(self._ask())
        events += self._track()
        events += self._changed_verdict()
        events += self._take(self._notice())
        self._polls += 1
        return events

    def catch_up(self, *, final: bool = False) -> list[Event]:
        """Poll until all that is there is read; `final`: also unfinished last lines."""
        events = self.poll()
        while self.behind:
            events += self.poll()
        if final:
            for follower in self._followers.values():
                events += self._take(follower.finish(self._clock_of(follower.log)))
            events += self._track(force=True)
            events += self._changed_verdict()
            events += self._take(self._notice())
        return events

    @property
    def known_logs(self) -> tuple[LogFile, ...]:
        """The logs found so far, also those that are gone again."""
        return tuple(follower.log for follower in self._followers.values())

    @property
    def behind(self) -> bool:
        """Whether some log holds more than was read at the last poll."""
        return any(self._sizes.get(name, 0) > follower.offset for name, follower in self._followers.items())

    def _track(self, *, force: bool = False) -> list[Event]:
        """Take in the files of tracking tools, once a driver is there to write them."""
        if self._trackers is None:
            if not self.state.tracked and not any(log.role is Role.DRIVER for log in self.known_logs):
                return []
            self._trackers = Trackers(self.transport, set(self.directories))
        self._trackers.directories |= self.state.tracked
        return self._take(self._trackers.poll(self.now(), force=force))

    def _take(self, events: Iterable[Event]) -> list[Event]:
        """Take events into the state, each as it comes."""
        taken = []
        for event in events:
            self.state.apply(event)
            taken.append(event)
        return taken

    def _changed_verdict(self) -> list[Event]:
        """Tell when another finding is taken for the cause than at the last poll."""
        root, before = self.state.diagnosis.root, self._root
        self._root = root
        if (root and (root.id, root.source)) == (before and (before.id, before.source)):
            return []
        return [RootFindingChanged(root, before)]

    def _notice(self) -> Iterator[Event]:
        """Tell what seems to be stuck or missing, when that has changed."""
        now = self.now()
        if self.behind or abs(now - self._noticed) < NOTICE_S:
            return
        self._noticed = now
        notices = (*stuck(self.state, now, self._last_line), *self.missing)
        if notices != self.state.notices:
            yield NoticesChanged(notices)

    def _last_line(self, name: str) -> str:
        """Return the last line of a log that says something; empty where it cannot be read."""
        log = self._followers[name].log
        try:
            start = max(self._sizes.get(name, 0) - TAIL_BYTES, 0)
            data = self.transport.read(log.path, start, TAIL_BYTES)
        except TransportError:
            return ""
        texts = (segment.text for line in reversed(data.split(b"\n")) for segment in segments(line)[-1:])
        return next(texts, "")

    def _look(self) -> list[tuple[LogFile, FileStat | None]]:
        """Return every log known so far or found now, with what the directory says of it."""
        present: dict[str, tuple[LogFile, FileStat | None]] = {}
        for name, follower in self._followers.items():
            present[name] = (follower.log, None)
        if self.places is not None:
            found_now = self.places()
            self.directories, self.prefixes = tuple(found_now.directories), found_now.directories
            self.files, self.missing = found_now.files, found_now.missing
        present |= {log.name: (log, self.transport.stat(log.path)) for log in self.files}
        for directory in self.directories:
            found, prefix = discover(self.transport, directory), self.prefixes.get(directory, "")
            for relative, entry in found.clocks:
                self._read_clock(directory, relative, f"{prefix}{relative}".rstrip("/"), entry)
            for log, entry in found.logs:
                named = replace(log, name=f"{prefix}{log.name}") if prefix else log
                present[named.name] = (named, entry)
        self._sizes = {name: entry.size for name, (_, entry) in present.items() if entry is not None}
        self._newest = max((entry.mtime for _, entry in present.values() if entry is not None), default=0.0)
        return list(present.values())

    def _read_clock(self, directory: str, relative: str, name: str, entry: FileStat) -> None:
        clock = self._clocks.setdefault(name, LogClock())
        if entry.size > clock.offset:
            path = os.path.join(directory, relative, CLOCK_NAME)
            clock.feed(self.transport.read(path, clock.offset, entry.size - clock.offset))

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
            known = self._noted(log.name, offset)
            return known if known is not None or offset < live_from else now

        return clock

    def _noted(self, log: str, offset: int) -> float | None:
        """Return when a byte of a log was there at the latest, as the clock beside the log tells."""
        directory, _, base = log.rpartition("/")
        clock = self._clocks.get(directory)
        return clock.time_of(base, offset) if clock is not None else None

    def _date(self) -> Iterator[Event]:
        """Give milestones that were read before the clock had reached their lines the time it tells now."""
        for event in list(self.state.milestones.values()):
            if event.time is None:
                known = self._noted(event.source.log, event.source.offset)
                if known is not None:
                    yield replace(event, time=known)

    def _ask(self) -> Iterator[Event]:
        try:
            answer = self.probe() if self.probe is not None else None
        except ExplainedError as error:
            # No answer is not the end of a job: what was said last stands, and it is asked again.
            answer = unanswered(self.state.job, error.what)
        answer = answer or self._guess()
        if answer != self.state.job:
            yield answer

    def _guess(self) -> JobChanged:
        """Judge from the logs' age alone."""
        if not self._sizes:
            return JobChanged(JobState.UNKNOWN, "no logs here yet")
        if self.now() - self._newest <= RECENT_S:
            return JobChanged(JobState.RUNNING, "its logs are being written")
        return JobChanged(JobState.UNKNOWN, "nothing was written for some time, and no end is in the logs")


def watch_directory(transport: Transport, directory: str) -> Watch:
    """Watch a directory of logs that may have been written by anything."""
    return Watch(transport, (directory,))


def watch_logs(transport: Transport, logs: Sequence[tuple[Role | None, str]]) -> Watch:
    """Watch single files; a role that is not given is told by the file's name, else it is a driver's."""
    files = [
        LogFile(Path(path).name if _unique(path, logs) else path, path, role or role_of(path) or Role.DRIVER)
        for role, path in logs
    ]
    return Watch(transport, files=tuple(files))


def _unique(path: str, logs: Sequence[tuple[Role | None, str]]) -> bool:
    return sum(Path(other).name == Path(path).name for _, other in logs) == 1
