"""Following one log by size and offset. Polling, since no notification crosses a cluster's file systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from launcher.errors import TransportError
from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, LogChanged, LogRestarted, MilestoneReached, Role, Source
from launcher.logs.launcher_log import launcher_reader
from launcher.logs.scanner import Clock, Reader, Scanner
from launcher.logs.sources import LogFile
from launcher.transports.base import FileStat, Transport

CHUNK = 1024 * 1024
BUDGET = 8 * CHUNK
"""Bytes read of one log before the next one has its turn."""


def reader_for(log: LogFile) -> Reader:
    """Return the reader that understands a log."""
    if log.role is Role.DRIVER:
        return DriverReader(log.name)
    return launcher_reader(log.name, log.role)


@dataclass(slots=True)
class Follower:
    """One followed log. Survives truncation, replacement, and being unreadable for a while."""

    transport: Transport
    log: LogFile
    scanner: Scanner
    inode: int | None = None
    said: LogChanged | None = None

    @classmethod
    def of(cls, transport: Transport, log: LogFile) -> Follower:
        """Start at the beginning of a log."""
        return cls(transport, log, Scanner(reader_for(log)))

    @property
    def offset(self) -> int:
        """Bytes taken so far."""
        return self.scanner.splitter.offset

    def poll(self, entry: FileStat | None, clock: Clock, budget: int = BUDGET) -> Iterator[Event]:
        """Yield what the bytes since the last poll tell; `entry` is what the directory says now."""
        if entry is not None and self._unchanged(entry):
            return
        problem = ""
        if entry is None:
            problem = "the file is gone"
        else:
            if self.inode is not None and (entry.inode != self.inode or entry.size < self.offset):
                self.scanner = Scanner(reader_for(self.log))
                yield LogRestarted(Source(self.log.name, self.log.role, 0))
            self.inode = entry.inode
            try:
                yield from self._read(entry.size, clock, budget)
            except TransportError as error:
                problem = error.what
        yield from self._say(problem, entry)

    def _unchanged(self, entry: FileStat) -> bool:
        """Tell whether nothing happened since it was last said how the log stands; most logs are silent."""
        said = self.said
        return (
            said is not None
            and not said.problem
            and said.time == entry.mtime
            and entry.size == said.bytes
            and entry.inode == self.inode
        )

    def finish(self, clock: Clock) -> Iterator[Event]:
        """Yield what an unfinished last line tells, when nothing more will come."""
        yield from self.scanner.finish(clock)

    def _read(self, size: int, clock: Clock, budget: int) -> Iterator[Event]:
        end = min(size, self.offset + budget)
        if self.log.role is Role.DRIVER and self.offset == 0 < end:
            yield MilestoneReached("driver-started", Source(self.log.name, self.log.role, 1), clock(0))
        while self.offset < end:
            data = self.transport.read(self.log.path, self.offset, min(CHUNK, end - self.offset))
            if not data:  # truncated since it was listed; the next poll sees it
                return
            yield from self.scanner.feed(data, clock)

    def _say(self, problem: str, entry: FileStat | None) -> Iterator[Event]:
        splitter = self.scanner.splitter
        written = entry.mtime if entry is not None else None
        now = LogChanged(self.log.name, self.log.role, splitter.offset, splitter.lines, problem, written)
        if now != self.said:
            self.said = now
            yield now
