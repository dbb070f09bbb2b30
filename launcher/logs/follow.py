"""Follower of one log by size and offset: polls, since cluster file systems send no change notifications."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from launcher.errors import TransportError
from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, LogChanged, LogRestarted, MilestoneReached, Role, Source
from launcher.logs.mixed_log import RecognisingReader, mixed_reader
from launcher.logs.rules import MatchedLine
from launcher.logs.scanner import Clock, Reader, Scanner
from launcher.logs.sources import LogFile
from launcher.transports.base import FileStat, Transport

CHUNK = 1024 * 1024
BUDGET = 8 * CHUNK
"""Bytes read of one log before the next one has its turn."""


def reader_for(log: LogFile) -> Reader:
    """Return the reader for a log's role."""
    if log.role is Role.DRIVER:
        return mixed_reader(log.name) if log.mixed else DriverReader(log.name)
    return RecognisingReader(log.name, log.role)


@dataclass(slots=True)
class Follower:
    """One followed log. Survives truncation, replacement, and a time in which it cannot be read."""

    transport: Transport
    log: LogFile
    scanner: Scanner
    inode: int | None = None
    reported: LogChanged | None = None
    """Last reported status of the file."""
    recognised: bool = False
    """A driver's lines were found in a log of another name."""

    @classmethod
    def of(cls, transport: Transport, log: LogFile) -> Follower:
        """Start at the beginning of a log."""
        return cls(transport, log, Scanner(reader_for(log)))

    @property
    def offset(self) -> int:
        """Bytes taken so far."""
        return self.scanner.splitter.offset

    @property
    def problem(self) -> str:
        """Why it could not be read at the last poll; empty if it could."""
        return self.reported.problem if self.reported is not None else ""

    def poll(self, entry: FileStat | None, clock: Clock, budget: int = BUDGET) -> Iterator[Event]:
        """Yield the events in the bytes since the last poll; `entry`: the file's current directory entry."""
        if entry is not None and self._unchanged(entry):
            return
        problem = ""
        if entry is None:
            problem = "the file is gone"
        elif entry.is_silent:
            problem = "no answer from the file system"
        else:
            if self.inode is not None and (entry.inode != self.inode or entry.size < self.offset):
                self.scanner = Scanner(reader_for(self.log))
                yield LogRestarted(Source(self.log.name, self.log.role, 0))
            self.inode = entry.inode
            try:
                yield from self._read(entry.size, clock, budget)
            except TransportError as error:
                problem = error.what
        yield from self._report(problem, entry)

    def _unchanged(self, entry: FileStat) -> bool:
        """Return True if nothing happened since the last report, the common case."""
        reported = self.reported
        return (
            reported is not None
            and not reported.problem
            and reported.time == entry.mtime
            and entry.size == reported.bytes
            and entry.inode == self.inode
        )

    def finish(self, clock: Clock) -> Iterator[Event]:
        """Yield the events in an unfinished last line, when nothing more will come."""
        yield from self.scanner.finish(clock)

    def _read(self, size: int, clock: Clock, budget: int) -> Iterator[Event]:
        end = min(size, self.offset + budget)
        if self.log.role is Role.DRIVER and self.offset == 0 < end and not self.recognised:
            yield MilestoneReached("driver-started", Source(self.log.name, self.log.role, 1), clock(0))
        while self.offset < end:
            data = self.transport.read(self.log.path, self.offset, min(CHUNK, end - self.offset))
            if not data:  # truncated since it was listed; the next poll sees it
                return
            yield from self.scanner.feed(data, clock)
            reader = self.scanner.reader
            if isinstance(reader, RecognisingReader) and reader.driver is not None:
                yield from self._begin_as_driver(reader.driver)

    def _begin_as_driver(self, line: MatchedLine) -> Iterator[Event]:
        """Read the log from its beginning as a driver's; `line`: the first one of the driver."""
        self.log, self.recognised = replace(self.log, role=Role.DRIVER, mixed=True), True
        self.scanner = Scanner(reader_for(self.log))
        yield LogRestarted(Source(self.log.name, Role.DRIVER, 0))
        yield MilestoneReached("driver-started", line.source._replace(role=Role.DRIVER), line.time)

    def _report(self, problem: str, entry: FileStat | None) -> Iterator[Event]:
        splitter = self.scanner.splitter
        mtime = entry.mtime if entry is not None and not entry.is_silent else None
        status = LogChanged(self.log.name, self.log.role, splitter.offset, splitter.lines, problem, mtime)
        if status != self.reported:
            self.reported = status
            yield status
