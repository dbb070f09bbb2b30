"""End of a command whose own thread waits for a file system that gives no answer.

Most files are read on threads with a deadline (`recipes.file_calls`). What remains (a test whether a
directory is there, the files of a checkout, imports) waits in the kernel for as long as the file server is
gone. Linux tells for each thread which system call it is in; one on files that lasts longer than the deadline
ends the command with a message.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from pathlib import Path

from recipes.errors import Exit
from recipes.limits import FILE_SECONDS

_POLL_S = 0.5
_ON_PATHS = {
    # open stat lstat access readlink mkdir rmdir rename unlink chmod statfs getxattr, with the path first
    "x86_64": (2, 4, 6, 21, 89, 83, 84, 82, 87, 90, 137, 191, 192),
    "aarch64": (8, 9, 43),
}
_AT_DIRECTORIES = {
    # openat newfstatat statx readlinkat faccessat faccessat2 mkdirat unlinkat renameat renameat2 fchmodat
    # utimensat
    "x86_64": (257, 262, 332, 267, 269, 439, 258, 263, 264, 316, 268, 280),
    "aarch64": (56, 79, 291, 78, 48, 439, 34, 35, 38, 276, 53, 88),
}
_ON_DESCRIPTORS = {
    # read pread64 write pwrite64 getdents64 fstat fsync fdatasync ftruncate close
    "x86_64": (0, 17, 1, 18, 217, 5, 74, 75, 77, 3),
    "aarch64": (63, 67, 64, 68, 61, 80, 82, 83, 46, 57),
}
"""Numbers of system calls by machine (Linux: syscall_64.tbl of x86, asm-generic/unistd.h)."""
_PATH_BYTES = 4096


class FileCallWatch:
    """Watch over the calling thread while a command runs, to be used with `with`."""

    def __init__(self, limit_s: float = FILE_SECONDS.value) -> None:
        self._limit_s = limit_s
        self._task = Path(f"/proc/self/task/{threading.get_native_id()}")
        self._over = threading.Event()

    def __enter__(self) -> None:
        """Begin to watch; without effect where the system does not tell what a thread waits for."""
        if platform.machine() in _ON_PATHS and self._call() is not None:
            threading.Thread(target=self._watch, name="file call watch", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        last: tuple[str, str] | None = None
        polls = 0
        while not self._over.wait(_POLL_S):
            if "textual" in sys.modules:  # a screen waits, and shows that it does
                return
            call = self._call()
            polls = polls + 1 if call == last else 0
            last = call
            if call is None or polls * _POLL_S < self._limit_s:
                continue
            path = waits_for(call[0])
            if path is not None and call == self._call():
                _end(path, self._limit_s)

    def _call(self) -> tuple[str, str] | None:
        """Return the system call that the thread is in, and how often it has waited; None where unknown."""
        try:
            call = (self._task / "syscall").read_text()
            status = (self._task / "status").read_text()
        except OSError:
            return None
        return call, next((line for line in status.splitlines() if line.startswith("voluntary_ctxt")), "")


def waits_for(call: str, machine: str = platform.machine()) -> str | None:
    """Return the path of the file that a system call is about; None for one on no file.

    `call` is the text of /proc/PID/task/TID/syscall: the number, then the arguments.
    """
    words = call.split()
    if not words[0].isdecimal():  # it runs
        return None
    number, arguments = int(words[0]), [int(word, 16) for word in words[1:3]]
    if number in _ON_DESCRIPTORS[machine]:
        return _path_of(arguments[0])
    if number in _AT_DIRECTORIES[machine]:
        return _text_at(arguments[1]) or _path_of(arguments[0]) or ""
    return _text_at(arguments[0]) if number in _ON_PATHS[machine] else None


def _path_of(descriptor: int) -> str | None:
    """Return the path of an open file; None for pipes, sockets, devices and the standard streams."""
    if not 2 < descriptor < 1 << 31:
        return None
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None
    return path if path.startswith("/") and not path.startswith("/dev/") else None


def _text_at(address: int) -> str:
    """Return the text at an address of this process; empty where there is none any more."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            data = memory.read(_PATH_BYTES) or b""
    except (OSError, ValueError, OverflowError):
        return ""
    return os.fsdecode(data.partition(b"\0")[0])


def _end(path: str, limit_s: float) -> None:
    """Say what does not answer, and end the process: the thread itself cannot."""
    from tui.headless.output import finish, say

    where = f": {path}" if path else ""
    say(f"distill-tui: no answer from the file system for {limit_s:g} s{where}")
    say("  Wait until the file system responds again; what was not finished can be done again then.")
    finish(Exit.OUTSIDE)
    os._exit(Exit.OUTSIDE)
