"""A run's directory on another machine as a colleague left it: names of any kind, links, pipes; and what its `find` says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from tests.hostile.attempts import make_special

NAMES = (
    b"a.log", b"x\n5 1.0 ", b"x\n5 1.0 ..", b"..\n", b"\x1b[2J.log", b"\xff\xfe", "\u202e.log".encode(), b"-rf", b"$(touch pwned)", b" ",
    b".hidden", b".ssh", b"secrets.env", b"a\rb", b"a\tb", b"a" * 250, b"checkpoints", b"report.md", b"run.json", b"...", b"a\\nb", b"\x7f",
)  # fmt: skip
KINDS = (
    "fifo",
    "socket",
    "loop",
    "directory",
    "-> /proc/version",
    "-> ../victim",
    "-> /dev/zero",
    "-> /proc/kmsg",
    "-> ..",
    "-> nowhere",
)
LINES = (
    "5 1.0 /VICTIM", "5 1.0 ../victim", "5 1.0 a/../../../victim", "5 1.0 ./../victim", "5 1.0 ..", "5 nan x.log", "5 inf x.log", "5 -inf x",
    "5 1e400 x", "-5 1.0 x", "5", "", "5 1.0", "5 1.0 ", "5 x y", "٣ 1.0 x", "9" * 5000 + " 1.0 x", "99999999999999999 1.0 big.bin",
    "5 99999999999999.9 x", "5 1.0 " + "a" * 300, "5 1.0 " + "a/" * 3000 + "b", "5 1.0 logs", "5 1.0 logs/x/y", "5 1.0 a\x00b", "5 1.0 .", "5 1.0 //VICTIM",
)  # fmt: skip
"""Lines of a machine that answers anything; VICTIM stands for a file of the user, without its first slash."""


class AnyAnswer(LocalTransport):
    """A machine whose `find` prints what it likes, and whose files have other sizes than it says."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__()
        self.lines = lines

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        if argv[0] == "find":
            return Completed(0, "\n".join(self.lines), "")
        return super().run(argv, env=env, cwd=cwd, timeout_s=timeout_s)

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        if path.endswith((".json", ".yaml")):
            return super().read(path, offset, size)
        return b"planted"[: max(size, 0)] if offset == 0 else b""


def fill(directory: Path, random: Random) -> None:
    """Put entries of any name and kind below a directory."""
    folders = [directory]
    for _ in range(random.randint(3, 14)):
        path = random.choice(folders) / os.fsdecode(random.choice(NAMES))
        if os.path.lexists(path):
            continue
        with suppress(OSError):
            chance = random.random()
            if chance < 0.4:
                path.mkdir()
                folders.append(path)
            elif chance < 0.7:
                path.write_bytes(random.choice((b"x", b"5 1.0 /etc/passwd\n", b"\x1b[2J" * 100)))
            else:
                make_special(path, random.choice(KINDS))


def snapshot(root: Path, leave_out: Sequence[Path]) -> Mapping[str, tuple[int, bytes]]:
    """Return every file below a directory but those below some: mode and content."""
    result = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if Path(folder, name) not in leave_out]
        for name in files:
            path = Path(folder, name)
            status = path.lstat()
            result[str(path)] = (
                status.st_mode,
                path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
            )
    return result
