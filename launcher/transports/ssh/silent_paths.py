"""Paths of a host that gave no answer: each is asked again after a pause, and not by every caller."""

from __future__ import annotations

import errno
import posixpath
import threading
import time
from collections.abc import Callable

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 600.0


class SilentPaths:
    """Paths of one host that gave no answer, each with the time when it is asked again."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pauses: dict[str, tuple[float, float]] = {}

    def note(self, path: str) -> None:
        """Note that a path gave no answer."""
        with self._lock:
            _, pause = self._pauses.get(path, (0.0, _FIRST_PAUSE_S / 2))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
            self._pauses[path] = (self._monotonic() + pause, pause)

    def forget(self, path: str) -> None:
        """Note that a path has answered."""
        with self._lock:
            self._pauses.pop(path, None)

    def is_silent(self, path: str) -> bool:
        """Return whether a path is not to be asked now."""
        until, _ = self._pauses.get(path, (0.0, 0.0))
        return self._monotonic() < until

    def are_below(self, directory: str) -> bool:
        """Return whether something below a directory gave no answer when it was asked last."""
        start = posixpath.join(posixpath.normpath(directory), "")
        return any(path.startswith(start) for path in tuple(self._pauses))

    def refuse(self, path: str) -> None:
        """Refuse to ask a path that is not to be asked now.

        Raises:
            TimeoutError: it is such a path.
        """
        if self.is_silent(path):
            raise no_answer(path)


def no_answer(path: str) -> TimeoutError:
    """Return the refusal of a path that gave no answer."""
    return TimeoutError(errno.ETIMEDOUT, "no answer from the file system", path)
