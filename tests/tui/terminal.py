"""A terminal of our own: a pseudo-terminal with the app in it, byte by byte."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
APP = (sys.executable, str(ROOT / "distill_tui.py"))


@dataclass
class Terminal:
    """A running command and what it has written."""

    pid: int
    descriptor: int
    written: bytes = b""
    code: int | None = None
    """Exit code, once it has ended."""

    def read(self, for_s: float = 0.0) -> bytes:
        """Take what it writes within a time; returns what is new."""
        new = b""
        deadline = time.monotonic() + for_s
        while True:
            left = max(deadline - time.monotonic(), 0)
            if not select.select([self.descriptor], [], [], left)[0]:
                break
            try:
                data = os.read(self.descriptor, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            new += data
        self.written += new
        return new

    def see(self, *wanted: str, limit_s: float = 20.0) -> None:
        """Wait until all of it was written; what the app paints anew counts, what it leaves does not."""
        self.until(lambda: all(part.encode() in self.written for part in wanted), f"{wanted}", limit_s)

    def until(self, condition: Callable[[], bool], what: str, limit_s: float = 20.0) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"never: {what}; written: {self.written[-2000:]!r}"
            self.read(0.05)

    def press(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self, limit_s: float = 10.0) -> int:
        """Wait for its end and return the exit code."""
        self.until(self.ended, "the end", limit_s)
        self.read()
        assert self.code is not None
        return self.code

    def modes(self) -> list[object]:
        """Return the line settings without the control characters."""
        return list(termios.tcgetattr(self.descriptor)[:4])


@contextmanager
def opened(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    size: tuple[int, int] = (80, 24),
    ignore_hangup: bool = False,
    program: tuple[str, ...] = APP,
) -> Iterator[Terminal]:
    """Run the app in a terminal; whatever is left of it is ended afterwards."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})})
        if ignore_hangup:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.execv(program[0], [*program, *arguments])
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    terminal = Terminal(pid, descriptor)
    try:
        yield terminal
    finally:
        if not terminal.ended():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        with suppress(OSError):
            os.close(descriptor)
