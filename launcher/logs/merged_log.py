"""Several logs as one, their lines in the order of time, without a copy of them.

Kept is a table of pieces: which bytes of which file come next. The times come from the launcher's clock of
the logs, else from stamps that the lines carry; a log with neither comes whole at the time it was last
written. Within a file the order of lines never changes. What comes while we look is appended as it is seen,
in whole lines; a line that stays unfinished is taken as it is after some seconds.
"""

from __future__ import annotations

import math
import time
from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from launcher.errors import TransportError
from launcher.logs.clock import LogClock
from launcher.logs.sources import CLOCK_NAME
from launcher.logs.stamping import stamped_lines
from launcher.transports.base import FileStat, Transport

BLOCK = 64 * 1024
_BLOCKS = 16
"""Blocks of files kept for the next read: a megabyte."""
_STEP = 256
"""Pieces put in place before the caller may do something else."""
UNFINISHED_S = 3.0
_NEWLINE = 0
"""Stands in the table for a newline that is in no file."""


@dataclass(slots=True)
class _LogPart:
    label: str
    path: str
    taken: int = 0
    """Bytes that are in the table."""
    inode: int | None = None
    size: int = 0
    grew: float = 0.0
    directory: str = ""

    def __post_init__(self) -> None:
        self.directory = str(PurePosixPath(self.path).parent)


@dataclass(frozen=True, slots=True, order=True)
class _Piece:
    """Bytes of a file up to `end`, from where the piece before it ended, and when they were written."""

    time: float
    file: int
    end: int


class MergedLog:
    """Bytes of several files, in the order of time; looks like one file that grows."""

    def __init__(
        self,
        transport: Transport,
        files: Sequence[tuple[str, str]],
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`files`: label and path of each."""
        self._transport = transport
        self._now = now
        self._wall = wall
        self._files = [_LogPart("", ""), *(_LogPart(label, path) for label, path in files)]
        self._epoch = 0
        self._blocks: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self.untimed: tuple[str, ...] = ()
        """Labels of logs of which nothing tells a time."""
        self._restart()

    def _restart(self) -> None:
        self._epoch += 1
        self._starts, self._owners, self._offsets = array("Q"), array("L"), array("Q")
        self._times = array("d")
        self._size = 0
        self._waiting: list[_Piece] | None = None
        self._placed = 0
        self._blocks.clear()
        for file in self._files:
            file.taken, file.inode, file.size = 0, None, 0

    def add(self, files: Sequence[tuple[str, str]]) -> None:
        """Take more files in; what they hold already comes at the end."""
        known = {file.path for file in self._files[1:]}
        self._files += [_LogPart(label, path) for label, path in files if path not in known]

    def prepare(self) -> float:
        """Put some more pieces in place; returns how much is done, 1 for all.

        Raises:
            TransportError: the file system does not answer or refuses.
        """
        if self._waiting is None:
            self._waiting = self._plan()
        if self._placed >= len(self._waiting):
            self._waiting, self._placed = [], 0
            return 1.0
        pieces = self._waiting[self._placed : self._placed + _STEP]
        for piece in pieces:
            told = piece.time if self._files[piece.file].label not in self.untimed else None
            self._place(piece.file, self._line_end(self._files[piece.file], piece.end), told)
        self._placed += len(pieces)
        return self._placed / len(self._waiting)

    def stat(self) -> FileStat | None:
        """Take in what is new; returns the size of all, and an inode that changes when it begins anew."""
        entries = self._entries()
        grown = []
        for number, file in enumerate(self._files[1:], 1):
            entry = entries.get(file.path)
            if entry is None:
                continue
            if (file.inode is not None and entry.inode != file.inode) or entry.size < file.taken:
                self._restart()
                return FileStat("", 0, 0.0, self._epoch, is_dir=False)
            file.inode = entry.inode
            if entry.size != file.size:
                file.size, file.grew = entry.size, self._now()
            if file.taken < file.size:
                grown.append((entry.mtime, number))
        for _, number in sorted(grown):
            self._append(number)
        return FileStat("", self._size, 0.0, self._epoch, is_dir=False)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        parts = []
        place = bisect_right(self._starts, offset) - 1
        while size > 0 and 0 <= place < len(self._starts):
            within = offset - self._starts[place]
            length = min(self._end_of(place) - offset, size)
            if length <= 0:
                break
            data = self._bytes(self._owners[place], self._offsets[place] + within, length)
            parts.append(data)
            if len(data) < length:  # truncated meanwhile: the next look sees it
                break
            offset, size, place = offset + length, size - length, place + 1
        return b"".join(parts)

    def label(self, offset: int) -> str:
        """Return the label of the file that the byte at `offset` is of."""
        place = bisect_right(self._starts, offset) - 1
        return self._files[self._owners[place]].label if place >= 0 else ""

    def moment(self, offset: int) -> float | None:
        """Return when the byte at `offset` was written, as far as that is known."""
        place = bisect_right(self._starts, offset) - 1
        return self._times[place] if place >= 0 and not math.isnan(self._times[place]) else None

    def locate(self, path: str, offset: int) -> int | None:
        """Return where a byte of a file is; None where it is not in the table."""
        for place, owner in enumerate(self._owners):
            within = offset - self._offsets[place]
            length = self._end_of(place) - self._starts[place]
            if self._files[owner].path == path and 0 <= within < length:
                return self._starts[place] + within
        return None

    def origin(self, offset: int) -> tuple[str, int]:
        """Return the file, and the offset in it, of a byte."""
        place = max(bisect_right(self._starts, offset) - 1, 0)
        if not self._starts:
            return "", 0
        return self._files[self._owners[place]].path, self._offsets[place] + offset - self._starts[place]

    def _plan(self) -> list[_Piece]:
        """Return all pieces there are now, in the order of time."""
        entries = self._entries()
        clocks = {
            directory: self._clock(directory) for directory in {file.directory for file in self._files[1:]}
        }
        pieces: list[_Piece] = []
        untimed = []
        for number, file in enumerate(self._files[1:], 1):
            entry = entries.get(file.path)
            if entry is None:
                continue
            file.inode, file.size, file.grew = entry.inode, entry.size, self._now()
            name = PurePosixPath(file.path).name
            ends = list(clocks[file.directory].ticks(name, entry.size))
            if not ends:
                ends = list(stamped_lines(self._transport, file.path, entry))
            if not ends and entry.size:
                untimed.append(file.label)
            ends.append((max(entry.mtime, ends[-1][0] if ends else 0.0), entry.size))
            latest = 0.0
            for moment, end in ends:
                latest = max(latest, moment)
                pieces.append(_Piece(latest, number, end))
        self.untimed = tuple(untimed)
        return sorted(pieces)

    def _clock(self, directory: str) -> LogClock:
        clock = LogClock()
        path = str(PurePosixPath(directory, CLOCK_NAME))
        if (entry := self._transport.stat(path)) is not None:
            clock.feed(self._transport.read(path, 0, entry.size))
        return clock

    def _entries(self) -> dict[str, FileStat]:
        """Look at all files: one call for each directory; a directory that is gone has none."""
        entries = {}
        for directory, files in Counter(file.directory for file in self._files[1:]).items():
            if files == 1:
                continue
            try:
                found = self._transport.listdir(directory)
            except TransportError:
                if self._transport.stat(directory) is None:
                    continue
                raise
            entries.update({str(PurePosixPath(directory, entry.name)): entry for entry in found})
        for file in self._files[1:]:
            if file.path not in entries and (entry := self._transport.stat(file.path)) is not None:
                entries[file.path] = entry
        return entries

    def _line_end(self, file: _LogPart, offset: int) -> int:
        """Return where the line that holds the byte before `offset` ends; what was taken else."""
        if offset <= file.taken:
            return file.taken
        if offset >= file.size:
            return self._last_line_end(file)
        position = offset - 1
        while position < file.size:
            data = self._bytes_of(file, position, min(BLOCK, file.size - position))
            end = data.find(b"\n")
            if end >= 0:
                return position + end + 1
            if not data:
                break
            position += len(data)
        return file.taken

    def _last_line_end(self, file: _LogPart) -> int:
        stop = file.size
        while stop > file.taken:
            start = max(stop - BLOCK, file.taken)
            end = self._transport.read(file.path, start, stop - start).rfind(b"\n")
            if end >= 0:
                return start + end + 1
            stop = start
        return file.taken

    def _append(self, number: int) -> None:
        """Take in what came at a file's end."""
        file = self._files[number]
        self._place(number, self._last_line_end(file), self._wall())
        if file.taken < file.size and self._now() - file.grew > UNFINISHED_S:
            self._place(number, file.size, self._wall())
            self._add(_NEWLINE, 0, 1, None)

    def _place(self, number: int, end: int, moment: float | None) -> None:
        file = self._files[number]
        if end > file.taken:
            self._add(number, file.taken, end - file.taken, moment)
            file.taken = end

    def _add(self, number: int, offset: int, length: int, moment: float | None) -> None:
        last = len(self._starts) - 1
        if last >= 0 and self._owners[last] == number != _NEWLINE:
            follows = self._offsets[last] + self._end_of(last) - self._starts[last] == offset
            follows = follows and (moment is None or moment - self._times[last] < 1)
        else:
            follows = False
        if not follows:
            self._starts.append(self._size)
            self._owners.append(number)
            self._offsets.append(offset)
            self._times.append(math.nan if moment is None else moment)
        self._size += length

    def _end_of(self, place: int) -> int:
        return self._starts[place + 1] if place + 1 < len(self._starts) else self._size

    def _bytes(self, number: int, offset: int, length: int) -> bytes:
        if number == _NEWLINE:
            return b"\n"[:length]
        return self._bytes_of(self._files[number], offset, length)

    def _bytes_of(self, file: _LogPart, offset: int, length: int) -> bytes:
        """Read from a file, or from a block of it that was read before."""
        if length >= BLOCK:
            return self._transport.read(file.path, offset, length)
        key = file.path
        start, block = self._blocks.get(key, (0, b""))
        if not start <= offset <= offset + length <= start + len(block):
            start, block = offset, self._transport.read(file.path, offset, BLOCK)
            self._blocks[key] = (start, block)
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(key)
        return block[offset - start : offset - start + length]
