"""Generators of hostile logs, with the commands that read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from tests.driver_text import LAUNCHER, DriverText, launcher_end
from tests.hostile.attempts import SECRET, SECRET_NAME, Attempt

_NUMBERS = (
    b"9" * 5000,
    b"1e308",
    b"-1",
    b"nan",
    b"inf",
    b"0",
    b"99999999999999999999",
    b"1e-400",
    b"\xd9\xa3",
    b"0x10",
    b"",
)
_PIECES = (
    b"\x00", b"\xff\xfe", b"\x1b[2J", b"\x1b]52;c;eA==\x07", b"\x9b31m", "\u202e\u2028\u200b".encode(), b"\xe4\xb8", b"\r" * 300,
    b"\n" * 500, b"\x1b" * 200, b"\xed\xa0\x80", b"[" * 3000, b"(W pid=", b"[rank", b"Traceback (most recent call last):\n" * 60,
    b"  File \"x.py\", line 99999999999999999999, in f\n", b"ray.exceptions.RayTaskError(", b"\x0c\x0b\x85", b"%s%n{}{0}",
    b"[NRL_PHASE][9999-99-99T99:99:99+0000][+99999999999999999999s] x\n", b"[NRL_PHASE][0000-01-01T00:00:00+0000][-5s] x\n",
)  # fmt: skip
_READS = (
    ("watch", "--once", "."), ("watch", "--once", "--json", "."), ("report", "."), ("report", ".", "--json", "--tar", "t.tgz"),
    ("watch", "--once", "--plain", "."), ("report", ".", "--lines", "3", "--tar", "t.tgz"),
)  # fmt: skip
_LOG_NAMES = ("ray-driver.log", "launcher.log", "ray-head.log", "ray-worker-0.log", "slurm-41.out", "log-clock.tsv",
              "ray-worker-\udcff\x1b[2J.log", "driver.log")  # fmt: skip


def log_text(random: Random) -> bytes:
    """Return the text of a log of a run, as it may be."""
    losses = [
        random.choice((0.5, 1e308, float("nan"), float("inf"), -1.0)) for _ in range(random.randint(1, 6))
    ]
    end = random.choice(("", "ValueError: bad", "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB"))
    text = random.choice(
        (DriverText(losses, end=end).text(), LAUNCHER, LAUNCHER + launcher_end(1),
         "1764295200\tray-driver.log\t100\n1764295100\tray-driver.log\t50\n1764295300\tlauncher.log\t10\n")
    )  # fmt: skip
    return text.encode()


def _mutated(random: Random, data: bytes) -> bytes:
    """Change a log: numbers, lines, bytes, its length."""
    for _ in range(random.randint(1, 6)):
        kind = random.randrange(7)
        if kind == 0:
            numbers = list(re.finditer(rb"\d+(?:\.\d+)?", data))
            if numbers:
                match = random.choice(numbers)
                data = data[: match.start()] + random.choice(_NUMBERS) + data[match.end() :]
        elif kind == 1:
            lines = data.split(b"\n")
            random.shuffle(lines)
            data = b"\n".join(lines)
        elif kind == 2:
            at = random.randint(0, len(data))
            data = data[:at] + random.choice(_PIECES) * random.choice((1, 1, 50)) + data[at:]
        elif kind == 3:
            data = data[: random.randint(0, len(data))]
        elif kind == 4:
            at = random.randint(0, len(data))
            data = data[:at] + random.randbytes(random.randint(1, 400)) + data[at:]
        elif kind == 5:
            data = (data * random.randint(2, 20))[: 1 << 20]
        else:
            data = data.replace(b"\n", random.choice((b"\r", b"\r\n", b" ", b"\n\n", b"")))
    return data


def log_attempts(count: int, *, seed: int) -> Iterator[Attempt]:
    """Yield logs that hold anything, each with a command that reads them."""
    random = Random(seed)
    for number in range(count):
        names = random.sample(_LOG_NAMES, random.randint(1, 4))
        files = {name: _mutated(random, log_text(random)) for name in names}
        special = {}
        kind = "mutated logs"
        if number % 8 == 0:
            kind = random.choice(
                (
                    "fifo",
                    "directory",
                    "loop",
                    "gigabyte",
                    "socket",
                    "-> /dev/zero",
                    "-> /proc/kmsg",
                    "-> /dev/full",
                )
            )
            special[names[0]] = kind
            del files[names[0]]
        elif number % 40 == 1:
            kind, files[names[0]] = (
                "one long line",
                random.choice((b"a", b"\x1b", b"\xff", b"a \r")) * (1 << 22),
            )
        yield Attempt(
            "logs", kind, _READS[number % len(_READS)], files, special, variables={SECRET_NAME: SECRET}
        )
