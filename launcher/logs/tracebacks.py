"""Python tracebacks in a log where many processes print: first line, frames, and the exception at the end.

Of chained tracebacks the first block is the cause. `RayTaskError` and an `ActorDiedError` of a creation task
carry another process's traceback, which follows with the process that raised it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from launcher.logs.lines import Segment

BEGIN = "Traceback (most recent call last):"
ENDLESS = 2000
"""A traceback is dropped after so many lines without one of its process."""
_AGE_EVERY = 256
_HANDLED_LINES = 3
"""Python announces a handled exception at most so many lines before its traceback."""
_CHAINED = ("During handling of the above", "The above exception was")
_EXCEPTION = re.compile(
    r"[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Died|Full|Failure)(?:\([\w.]+\))?:?$"
    r"|[A-Za-z_][\w.]*(?:\([\w.]+\))?: $"
)
_WRAPPER = re.compile(r"(?:[\w.]*\.)?(?:RayTaskError|ActorDiedError|RayActorError|ActorUnavailableError)\b")
_REMOTE = re.compile(r"\(pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?(?:.*?\[rank=(?P<rank>\d+)\])?")
# Python went on after these: they are not failures.
HANDLED = ("Exception ignored in", "--- Logging error ---")

Key = tuple[str | None, int | None, str | None]


@dataclass(frozen=True, slots=True)
class Process:
    """Process that a line is about."""

    node: str | None = None
    rank: int | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Raised:
    """Exception line of a traceback."""

    message: str
    began: int
    own: bool
    wrapper: bool
    process: Process


@dataclass(slots=True)
class _Block:
    began: int
    handled: bool
    frames: bool = True
    last: int = 0
    process: Process = field(default_factory=Process)


class Tracebacks:
    """Tracebacks of all processes in one log; at most one of each process is open."""

    def __init__(self) -> None:
        self._open: dict[Key, _Block] = {}
        self._handled: dict[Key, int] = {}

    @property
    def any_open(self) -> bool:
        """True if the next lines may belong to a traceback."""
        return bool(self._open)

    def inside_frames(self, segment: Segment) -> bool:
        """Return True for source code in a traceback of the line's process."""
        block = self._open.get(_key(segment))
        return block is not None and block.frames and segment.body[:1].isspace()

    def process(self, segment: Segment) -> Process:
        """Return the process that a line is about: its printer, or the one whose error a traceback shows."""
        block = self._open.get(_key(segment))
        inner = block.process if block is not None else Process()
        return Process(
            inner.node or segment.ip, _first(inner.rank, segment.rank), _first(inner.pid, segment.pid)
        )

    def take(self, segment: Segment, line: int) -> Raised | None:
        """Read a line; return its exception if it ends a traceback."""
        key, text = _key(segment), segment.body
        if text.startswith(BEGIN):
            block = self._open.get(key)
            if block is None:
                handled = line - self._handled.pop(key, -_HANDLED_LINES) < _HANDLED_LINES
                self._open[key] = _Block(line, handled, last=line)
            else:
                block.frames, block.last = True, line
            return None
        if text.startswith(HANDLED):
            self._handled[key] = line
        if line % _AGE_EVERY == 0:
            self._forget_endless(line)
        block = self._open.get(key)
        if block is not None:
            block.last = line
        if block is None or not text or text[0].isspace() or text.startswith(_CHAINED):
            return None
        return self._unindented(key, block, segment)

    def _unindented(self, key: Key, block: _Block, segment: Segment) -> Raised | None:
        text = segment.body
        wrapper = _WRAPPER.match(text) is not None
        if wrapper or text.startswith("ray::"):
            if remote := _REMOTE.search(text):
                rank = remote["rank"]
                block.process = Process(remote["ip"], int(rank) if rank else None, int(remote["pid"]))
            block.frames = True
            if not wrapper:
                return None
        elif not block.frames or _EXCEPTION.match(_head(text)) is None:
            if not block.frames:  # something else goes on: the traceback is over
                del self._open[key]
            return None
        else:
            block.frames = False
        if block.handled:
            return None
        return Raised(text, block.began, segment.own, wrapper, self.process(segment))

    def _forget_endless(self, line: int) -> None:
        for key, block in list(self._open.items()):
            if line - block.last > ENDLESS:
                del self._open[key]


def _key(segment: Segment) -> Key:
    return (segment.actor, segment.pid, segment.ip)


def _head(text: str) -> str:
    """Return an exception line up to the colon: its message may hold anything."""
    name, colon, _ = text.partition(": ")
    return name + colon


def _first(first: int | None, second: int | None) -> int | None:
    return first if first is not None else second
