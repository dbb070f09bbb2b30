"""Lines that two logs of one view hold, such as a launcher's in its own log and in Slurm's output file.

Which files copy another is decided by a sample of lines; only those are read line by line. The order in which
the two files are read does not matter: the first of two equal lines is shown, the second one is not.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from launcher.errors import TransportError
from launcher.logs.events import Role
from launcher.logs.roles import role_of
from launcher.transports.base import Transport

SAMPLED = 64 * 1024
"""Bytes at a file's beginning from which lines are sampled."""
_SEARCHED = 4 * 1024 * 1024
"""Bytes at the beginning of a possible copy that are searched for them: a batch script may print before."""
_COLLECTORS = 8
"""Files that are searched for copies at most: each costs megabytes of reading."""
_LINES = 24
_LENGTH = 12
"""Shorter lines (`done`, an empty one) are in any log; they are a copy only right after one."""
_WINDOW = 20_000
"""Lines by which one file may be ahead of its copy."""


@dataclass(slots=True)
class _Unmatched:
    """Lines of a file that its copy has not shown yet, the latest of them."""

    counts: Counter[bytes] = field(default_factory=Counter)
    order: deque[bytes] = field(default_factory=deque)

    def add(self, line: bytes) -> None:
        self.counts[line] += 1
        self.order.append(line)
        if len(self.order) > _WINDOW:
            self._drop(self.order.popleft())

    def take(self, line: bytes) -> bool:
        """Take out a line; False where it is not there."""
        if not self.counts.get(line):
            return False
        self._drop(line)
        return True

    def _drop(self, line: bytes) -> None:
        count = self.counts.get(line, 0)
        if count > 1:
            self.counts[line] = count - 1
        else:
            self.counts.pop(line, None)


@dataclass(slots=True)
class CopiedLines:
    """Files of a view that hold lines of each other."""

    transport: Transport
    _partners: dict[str, set[str]] = field(default_factory=dict)
    """Path -> paths of the files that hold the same lines."""
    _undecided: dict[tuple[str, str], int] = field(default_factory=dict)
    """(original, possible copy) -> size of the original when the pair was last compared."""
    _unmatched: dict[str, _Unmatched] = field(default_factory=dict)
    _after_copy: dict[str, bool] = field(default_factory=dict)
    """Path -> whether the last line of the file was a copy."""

    def restart(self) -> None:
        """Forget the lines that were passed; which files are copies stays."""
        self._unmatched.clear()
        self._after_copy.clear()

    def consider(self, paths: Iterable[str]) -> None:
        """Add files that may be copies: one of two is a batch script's output, the other not a worker's."""
        present = list(paths)
        collectors = sorted(
            (path for path in present if role_of(path) in (Role.SLURM, None)),
            key=lambda path: role_of(path) is None,  # a batch script's own output first
        )[:_COLLECTORS]
        for copy in collectors:
            for original in present:
                pair = (original, copy)
                if original != copy and role_of(original) is not Role.WORKER and pair not in self._undecided:
                    self._undecided.setdefault(pair, -1)

    def compare(self, sizes: dict[str, int]) -> None:
        """Compare the pairs of which nothing is decided and of which the original has grown.

        Raises:
            TransportError: a file cannot be read.
        """
        lines: dict[str, set[bytes]] = {}
        for (original, copy), size in list(self._undecided.items()):
            present = min(sizes.get(original, 0), SAMPLED)
            if present <= size or not sizes.get(copy):
                continue
            sample = _sample(self._read(original, present))
            self._undecided[original, copy] = present
            if copy not in lines:
                lines[copy] = set(self._read(copy, min(sizes[copy], _SEARCHED)).split(b"\n"))
            if sample and 2 * sum(line in lines[copy] for line in sample) >= len(sample):
                self._partners.setdefault(original, set()).add(copy)
                self._partners.setdefault(copy, set()).add(original)

    def _read(self, path: str, size: int) -> bytes:
        try:
            return self.transport.read(path, 0, size)
        except TransportError:
            if self.transport.stat(path) is None:
                return b""
            raise

    def has_copy(self, path: str) -> bool:
        """Return True for a file of which another one holds lines."""
        return path in self._partners

    def new_ranges(self, path: str, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the ranges of lines of a file that no other one has shown yet; neighbours are joined."""
        begin = position = 0
        while position < len(data):
            end = data.find(b"\n", position) + 1 or len(data)
            if self._is_copy(path, data[position:end].rstrip(b"\r\n")):
                if begin < position:
                    yield begin, position
                begin = end
            position = end
        if begin < position:
            yield begin, position

    def _is_copy(self, path: str, line: bytes) -> bool:
        if len(line) < _LENGTH:
            return self._after_copy.get(path, False)
        is_copy = any(self._of(partner).take(line) for partner in self._partners[path])
        if not is_copy:
            self._of(path).add(line)
        self._after_copy[path] = is_copy
        return is_copy

    def _of(self, path: str) -> _Unmatched:
        return self._unmatched.setdefault(path, _Unmatched())


def _sample(data: bytes) -> list[bytes]:
    """Return distinct lines from a file's beginning, evenly spread."""
    lines = [line.rstrip(b"\r") for line in data.split(b"\n")[:-1] if len(line) >= _LENGTH]
    distinct = list(dict.fromkeys(lines))
    step = max(len(distinct) // _LINES, 1)
    return distinct[::step][:_LINES]
