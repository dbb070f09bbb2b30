"""What the terminal takes: bytes a second, and whether it is behind."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import IO

WINDOW_S = 10.0
"""Time over which the output is averaged."""
BLOCKED = 0.2
"""Part of the time that writing may wait for the terminal; beyond it the connection is slow."""
STALLED_S = 0.3
"""A single write that waits for so long is a slow connection, too."""


class OutputMeter:
    """Counts what is written, and how long writing waited. Written and read on different threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._writes: deque[tuple[float, int, float]] = deque()
        """Time, bytes and seconds waited of each write within the window."""
        self._writing_since: float | None = None
        self.total = 0
        """Bytes since the start."""

    def begin(self) -> None:
        """Note that a write begins."""
        self._writing_since = self._now()

    def end(self, size: int) -> None:
        """Note that the write of `size` bytes has ended."""
        now = self._now()
        with self._lock:
            began = self._writing_since if self._writing_since is not None else now
            self._writes.append((now, size, now - began))
            self._writing_since = None
            self.total += size
            self._forget(now)

    def _forget(self, now: float) -> None:
        while self._writes and self._writes[0][0] < now - WINDOW_S:
            self._writes.popleft()

    @property
    def bytes_per_s(self) -> float:
        """Bytes a second within the window."""
        with self._lock:
            self._forget(self._now())
            return sum(size for _, size, _ in self._writes) / WINDOW_S

    @property
    def slow(self) -> bool:
        """Whether the terminal takes output more slowly than it comes."""
        now = self._now()
        since = self._writing_since
        if since is not None and now - since > STALLED_S:
            return True
        with self._lock:
            self._forget(now)
            return sum(waited for _, _, waited in self._writes) > BLOCKED * WINDOW_S


class MeteredFile:
    """A text file whose writes are measured."""

    def __init__(self, file: IO[str], meter: OutputMeter) -> None:
        self._file = file
        self._meter = meter

    def write(self, text: str) -> int:
        """Write text."""
        self._meter.begin()
        try:
            written = self._file.write(text)
            self._file.flush()
        finally:
            self._meter.end(len(text.encode(errors="replace")))
        return written

    def flush(self) -> None:
        """Write what is buffered."""
        self._file.flush()

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self._file.isatty()
