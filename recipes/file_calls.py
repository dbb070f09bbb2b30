"""Calls on files, each on a thread with a deadline, and what is known of those that got no answer.

A mount whose server is gone hangs every call on it for good. Such a call costs its thread; the threads that
still wait are the record of what does not answer, so that a process waits for its deadline once, and not for
each call, whoever makes it.
"""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WHILE_SILENT_S = 1.0
"""Deadline of a call while another one has no answer: a file system that answers does so within ms."""
_LEAST_S = 0.02
_MOUNTS = "/proc/self/mounts"


class FileThread(threading.Thread):
    """Thread for calls on files. Whoever gave a call up says so here, with the path that did not answer."""

    def __init__(self, target: Callable[[], None]) -> None:
        super().__init__(target=target, name="files", daemon=True)
        self.unanswered: str | None = None
        """Path of a call that was given up; None where none was, or it has returned after all."""


def unanswered_paths() -> list[str]:
    """Return the paths of all calls of this process that were given up and have not returned."""
    threads = [thread for thread in threading.enumerate() if isinstance(thread, FileThread)]
    return [thread.unanswered for thread in threads if thread.unanswered is not None]


def absolute(path: str) -> str:
    """Return an absolute path without `..`; only a relative one asks for the current directory."""
    return os.path.normpath(path) if path.startswith("/") else os.path.abspath(path)


def patience(path: str, deadline_s: float) -> float:
    """Return how long a call on a path is waited for.

    While others wait it is a second, and on the same mount half as long after each: all together they take
    two seconds more than the first, however many there are.

    Raises:
        TimeoutError: one on the same path still has no answer.
    """
    silent = unanswered_paths()
    if not silent:
        return deadline_s
    if path and path in silent:
        raise no_answer(path, 0.0, deadline_s)
    mounts = _mount_points()
    own = _mount_of(path, mounts)
    near = sum(_mount_of(other, mounts) == own for other in silent)
    shortened = WHILE_SILENT_S * 0.5 ** max(near - 1, 0)
    return min(deadline_s, max(shortened, _LEAST_S))


def no_answer(path: str, waited_s: float, deadline_s: float) -> TimeoutError:
    """Return the error for a call that was given up."""
    length = f"for {deadline_s:g} s" if waited_s == deadline_s else "still"
    return TimeoutError(errno.ETIMEDOUT, f"no answer from the file system {length}", path or None)


def _mount_points() -> list[str]:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            points = [line.split(" ")[1].replace("\\040", " ") for line in file]
    except (OSError, IndexError):
        return []
    return sorted(points, key=len, reverse=True)


def _mount_of(path: str, points: list[str]) -> str:
    """Return the mount point that a path is below by its name; links are not followed."""
    return next((point for point in points if path == point or path.startswith(f"{point.rstrip('/')}/")), "")
