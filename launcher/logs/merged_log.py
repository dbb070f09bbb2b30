"""Several logs as one file, their lines in order of time, without a copy of them.

A table of pieces says which bytes of which file come next. Times come from the launcher's clock of the
logs, else from timestamps in the lines; a log with neither is inserted whole at its modification time. Within
a file the order of lines never changes. Data that arrives later is appended as it is read, in whole lines; a
line that stays unfinished is appended as it is after some seconds. A line that two files hold is shown once.
"""

from __future__ import annotations

import math
import time
from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from launcher.errors import TransportError
from launcher.logs.clock import CLOCK_NAME, LogClock, timestamped_pieces
from launcher.logs.copied_lines import CopiedLines
from launcher.transports.base import FileStat, Transport

BLOCK = 64 * 1024
_BLOCKS = 16
"""Blocks of files cached for the next read: a megabyte."""
_STEP = 256
"""Pieces inserted before the caller gets control back."""
_READ_STEP = 512 * 1024
"""Bytes of files with copies that are read, line by line, before the caller gets control back."""
UNFINISHED_S = 3.0
_NEWLINE = 0
"""Owner, in the table, of a newline that is in no file."""


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
    """Bytes of a file from the end of its previous piece up to `end`, and the time they were written."""

    time: float
    file: int
    end: int


class MergedLog:
    """Bytes of several files in order of time, as one file that grows."""

    def __init__(
        self,
        transport: Transport,
        files: Sequence[tuple[str, str]],
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`files`: (label, path) of each."""
        self._transport = transport
        self._now = now
        self._wall = wall
        self._files = [_LogPart("", ""), *(_LogPart(label, path) for label, path in files)]
        self._epoch = 0
        self._blocks: OrderedDict[str, tuple[int, bytes]] = OrderedDict()
        self.untimed: tuple[str, ...] = ()
        """Labels of logs without any times."""
        self._copies = CopiedLines(transport)
        self._copies.consider(file.path for file in self._files[1:])
        self._restart()

    def _restart(self) -> None:
        self._epoch += 1
        self._starts, self._owners, self._offsets = array("Q"), array("L"), array("Q")
        self._times = array("d")
        self._size = 0
        self._waiting: list[_Piece] | None = None
        self._inserted = 0
        self._blocks.clear()
        self._copies.restart()
        for file in self._files:
            file.taken, file.inode, file.size = 0, None, 0

    def add(self, files: Sequence[tuple[str, str]]) -> None:
        """Add files; their present contents come at the end."""
        present = {file.path for file in self._files[1:]}
        self._files += [_LogPart(label, path) for label, path in files if path not in present]
        self._copies.consider(file.path for file in self._files[1:])

    def prepare(self) -> float:
        """Insert more pieces; return the fraction done, 1 for all.

        Raises:
            TransportError: a file cannot be read.
        """
        if self._waiting is None:
            self._waiting = self._plan()
        if self._inserted >= len(self._waiting):
            self._waiting, self._inserted = [], 0
            return 1.0
        stop, budget = self._inserted + _STEP, _READ_STEP
        for piece in self._waiting[self._inserted : stop]:
            file = self._files[piece.file]
            moment = piece.time if file.label not in self.untimed else None
            before = file.taken
            self._insert(piece.file, self._line_end(file, piece.end), moment)
            self._inserted += 1
            if self._copies.has_copy(file.path):
                budget -= file.taken - before
                if budget <= 0:
                    break
        return self._inserted / len(self._waiting)

    def stat(self) -> FileStat | None:
        """Append new data; return the total size, and an inode that changes when the table is rebuilt.

        Raises:
            TransportError: a file cannot be read.
        """
        entries = self._entries()
        self._copies.compare({path: entry.size for path, entry in entries.items()})
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
        """Return up to `size` bytes from `offset`.

        Raises:
            TransportError: a file cannot be read.
        """
        parts = []
        index = bisect_right(self._starts, offset) - 1
        while size > 0 and 0 <= index < len(self._starts):
            within = offset - self._starts[index]
            length = min(self._end_of(index) - offset, size)
            if length <= 0:
                break
            data = self._bytes(self._owners[index], self._offsets[index] + within, length)
            parts.append(data)
            if len(data) < length:  # truncated meanwhile: the next `stat` notices
                break
            offset, size, index = offset + length, size - length, index + 1
        return b"".join(parts)

    def label(self, offset: int) -> str:
        """Return the label of the file that the byte at `offset` is of."""
        index = bisect_right(self._starts, offset) - 1
        return self._files[self._owners[index]].label if index >= 0 else ""

    def moment(self, offset: int) -> float | None:
        """Return when the byte at `offset` was written; None where unknown."""
        index = bisect_right(self._starts, offset) - 1
        return self._times[index] if index >= 0 and not math.isnan(self._times[index]) else None

    def locate(self, path: str, offset: int) -> int | None:
        """Return the offset here of a file's byte; None where it is not in the table."""
        for index, owner in enumerate(self._owners):
            within = offset - self._offsets[index]
            length = self._end_of(index) - self._starts[index]
            if self._files[owner].path == path and 0 <= within < length:
                return self._starts[index] + within
        return None

    def origin(self, offset: int) -> tuple[str, int]:
        """Return the path of the file that holds a byte, and the byte's offset in it."""
        index = max(bisect_right(self._starts, offset) - 1, 0)
        if not self._starts:
            return "", 0
        return self._files[self._owners[index]].path, self._offsets[index] + offset - self._starts[index]

    def _plan(self) -> list[_Piece]:
        """Return all present pieces, in order of time."""
        entries = self._entries()
        self._copies.compare({path: entry.size for path, entry in entries.items()})
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
                ends = list(timestamped_pieces(self._transport, file.path, entry))
            if not ends and entry.size:
                untimed.append(file.label)
            ends.append((max(entry.mtime, ends[-1][0] if ends else 0.0), entry.size))
            latest = 0.0
            for moment, end in ends:
                latest = max(latest, moment)
                if self._copies.has_copy(file.path):
                    start = pieces[-1].end if pieces and pieces[-1].file == number else 0
                    pieces += [
                        _Piece(latest, number, at) for at in range(start + _READ_STEP, end, _READ_STEP)
                    ]
                pieces.append(_Piece(latest, number, end))
        self.untimed = tuple(untimed)
        return sorted(pieces)

    def _clock(self, directory: str) -> LogClock:
        clock = LogClock()
        path = str(PurePosixPath(directory, CLOCK_NAME))
        if (entry := self._transport.stat(path)) is not None:
            clock.follow(partial(self._transport.read, path), entry.size)
        return clock

    def _entries(self) -> dict[str, FileStat]:
        """Return the entries of all files, with one call per directory; none for a directory that is gone."""
        entries = {}
        for directory, files in Counter(file.directory for file in self._files[1:]).items():
            if files == 1:
                continue
            try:
                listing = self._transport.listdir(directory)
            except TransportError:
                if self._transport.stat(directory) is None:
                    continue
                raise
            entries.update({str(PurePosixPath(directory, entry.name)): entry for entry in listing})
        for file in self._files[1:]:
            if file.path not in entries and (entry := self._transport.stat(file.path)) is not None:
                entries[file.path] = entry
        return entries

    def _line_end(self, file: _LogPart, offset: int) -> int:
        """Return the end of the line that holds the byte before `offset`, else of what is in the table."""
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
        """Append new data of a file."""
        file = self._files[number]
        self._insert(number, self._last_line_end(file), self._wall())
        if file.taken < file.size and self._now() - file.grew > UNFINISHED_S:
            self._insert(number, file.size, self._wall())
            self._add(_NEWLINE, 0, 1, None)

    def _insert(self, number: int, end: int, moment: float | None) -> None:
        file = self._files[number]
        while file.taken < end:
            start = file.taken
            if not self._copies.has_copy(file.path):
                self._add(number, start, end - start, moment)
                file.taken = end
                return
            stop = end if end - start <= _READ_STEP else self._line_end(file, start + _READ_STEP)
            stop = stop if start < stop < end else end  # one line that is longer than a step
            data = self._transport.read(file.path, start, stop - start)
            for first, last in self._copies.new_ranges(file.path, data):
                self._add(number, start + first, last - first, moment)
            file.taken = start + len(data) if data else end

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

    def _end_of(self, index: int) -> int:
        return self._starts[index + 1] if index + 1 < len(self._starts) else self._size

    def _bytes(self, number: int, offset: int, length: int) -> bytes:
        if number == _NEWLINE:
            return b"\n"[:length]
        return self._bytes_of(self._files[number], offset, length)

    def _bytes_of(self, file: _LogPart, offset: int, length: int) -> bytes:
        """Read from a file, or from its cached block."""
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
