"""A machine that is not well: files below a directory answer with errors or not at all, and the clock jumps."""

from __future__ import annotations

import builtins
import errno
import io
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any
from unittest import mock

HANG_S = 100.0
_READING = ("open", "stat", "lstat", "scandir", "listdir", "pread", "read")
_WRITING = (
    "open to write",
    "fsync",
    "replace",
    "rename",
    "mkdir",
    "link",
    "symlink",
    "unlink",
    "chmod",
    "fchmod",
    "write",
)
TROUBLES: dict[str, tuple[int, tuple[str, ...]]] = {
    "stale handle": (errno.ESTALE, _READING),
    "input or output error": (errno.EIO, (*_READING, *_WRITING)),
    "no space": (errno.ENOSPC, _WRITING),
    "quota": (errno.EDQUOT, _WRITING),
    "read-only": (errno.EROFS, _WRITING),
    "not permitted": (errno.EACCES, (*_READING, *_WRITING)),
    "timed out": (errno.ETIMEDOUT, (*_READING, *_WRITING)),
    "too many files": (errno.EMFILE, ("open", "open to write", "scandir")),
    "no memory": (errno.ENOMEM, _READING),
    "hang": (0, _READING),
}
"""What is wrong -> the number of the error (0: no answer), and the calls that meet it."""


class BrokenFiles:
    """Calls on files below a directory, each of which fails by a chance."""

    def __init__(self, directory: str, trouble: str, chance: float, seed: int) -> None:
        self._number, self._calls = TROUBLES[trouble]
        self._random, self._chance = Random(seed), chance
        self._inside = f"{directory}/"
        self._descriptors: set[int] = set()
        self._open, self._io_open = os.open, io.open
        self._answers = threading.Event()

    def _is_below(self, target: object) -> bool:
        if isinstance(target, int):
            return target in self._descriptors
        if not isinstance(target, str | bytes | os.PathLike):
            return False
        return os.path.abspath(os.fsdecode(target)).startswith(self._inside)

    def _fail(self, call: str, target: object) -> None:
        if call in self._calls and self._is_below(target) and self._random.random() < self._chance:
            if not self._number:
                self._answers.wait(HANG_S)
            number = self._number or errno.EIO
            raise OSError(number, os.strerror(number), str(target))

    def _failing(self, call: str) -> Callable[..., Any]:
        original = getattr(os, call)

        def action(*arguments: Any, **named: Any) -> Any:
            self._fail(call, arguments[0] if arguments else ".")
            return original(*arguments, **named)

        return action

    def _open_descriptor(self, path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        self._fail("open to write" if flags & (os.O_WRONLY | os.O_RDWR) else "open", path)
        descriptor = self._open(path, flags, *arguments, **named)
        (self._descriptors.add if self._is_below(path) else self._descriptors.discard)(descriptor)
        return descriptor

    def _open_file(self, file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        self._fail("open to write" if set(mode) & set("wax+") else "open", file)
        return self._io_open(file, mode, *arguments, **named)

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Put these calls in the place of the system's."""
        with ExitStack() as stack:
            for call in sorted({*_READING, *_WRITING} - {"open", "open to write"}):
                stack.enter_context(mock.patch.object(os, call, self._failing(call)))
            stack.enter_context(mock.patch.object(os, "open", self._open_descriptor))
            stack.enter_context(mock.patch.object(io, "open", self._open_file))
            stack.enter_context(mock.patch.object(builtins, "open", self._open_file))
            stack.callback(self._answers.set)  # the next test's calls are not those of a machine that hangs
            yield


@contextmanager
def jumping_clock(seed: int) -> Iterator[None]:
    """Let the clock be set back and forth by seconds to decades."""
    random, real = Random(seed), time.time
    jumps = (0.0, 0.0, 0.0, -1.0, -3600.0, 3600.0, -86400.0 * 400, 86400.0 * 365 * 60, -1.7e9)

    def now() -> float:
        return max(real() + random.choice(jumps), 0.0)

    with mock.patch.object(time, "time", now):
        yield


@contextmanager
def fast_clock(factor: float) -> Iterator[None]:
    """Let deadlines pass faster, so that a command that hangs can be waited for: 75 s in 3 s by a factor of 25."""
    monotonic, sleep = time.monotonic, time.sleep

    def now() -> float:
        return monotonic() * factor

    def pause(seconds: float) -> None:
        sleep(seconds / factor)

    with (
        mock.patch.object(time, "monotonic", now),
        mock.patch.object(time, "sleep", pause),
        mock.patch.object(subprocess, "_time", now),
    ):
        yield
