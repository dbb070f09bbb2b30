"""Other viewers of logs: less, lnav and toolong, each in a terminal of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import termios
import time
from pathlib import Path

from tests.bench.measuring import LIVE_S, Row, memory_of, writing


def peer(name: str, argv: list[str], mark: str | None, busy: list[Path], lines_a_s: int = 0) -> Row | None:
    """Run another viewer in a terminal, until it shows the mark, or while files grow; None without it."""
    program = shutil.which(argv[0])
    if program is None:
        return None
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", HOME=str(busy[0].parent))
        os.execv(program, argv)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        if mark is not None:
            shown = _until(terminal, mark.encode(), began)
            memory = memory_of(pid)
            return Row(name, shown, memory)
        _drain(terminal, 3)
        with writing(busy, lines_a_s):
            _drain(terminal, 1)
            cpu, began = cpu_of(pid), time.monotonic()
            _drain(terminal, LIVE_S)
            percent = 100 * (cpu_of(pid) - cpu) / (time.monotonic() - began)
            return Row(name, None, memory_of(pid), percent)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def _until(terminal: int, mark: bytes, began: float) -> float | None:
    text = b""
    while time.monotonic() - began < 60:
        if select.select([terminal], [], [], 0.05)[0]:
            text = text[-4096:] + os.read(terminal, 65536)
            if mark in text:
                return (time.monotonic() - began) * 1000
    return None


def _drain(terminal: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            os.read(terminal, 65536)


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_tree(pid: int) -> float:
    """Return the CPU seconds of a process and its children that live."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return cpu_of(pid) + sum(cpu_of_tree(int(child)) for child in children)


def peers_of(files: list[str], toolong: str) -> list[tuple[str, list[str]]]:
    """Return the other viewers and how they are called."""
    return [
        ("less +F", ["less", "+F", files[0]]),
        ("lnav", ["lnav", *files]),
        ("toolong", [toolong, *files]),
    ]
