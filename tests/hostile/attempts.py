"""Attempts: hostile inputs with the command that meets them, tried in child processes with bounded memory."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 15 + 2
MEMORY_MIB = 300
_ADDRESS_SPACE = 3 << 30
"""Bytes of a child's address space: a bomb ends its process and not the machine."""
_BATCH = 40

SECRET_NAME, SECRET = "UPLOAD_TOKEN", "zq7Yt-planted-4411"


@dataclass(frozen=True)
class Attempt:
    """Hostile input."""

    group: str
    kind: str
    argv: tuple[str, ...]
    """Arguments of the command; the working directory is the attempt's own."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    special: Mapping[str, str] = field(default_factory=dict)
    """Names of what is no regular file, with what it is: fifo, socket, directory, loop, sparse, gigabyte, -> TARGET."""
    refused: str = ""
    """Pattern of the error that must be printed; empty where accepting is fine, too."""
    variables: Mapping[str, str] = field(default_factory=dict)
    uid: int = 0
    """User to try it as; 0: the user of the tests."""
    trouble: str = ""
    """What is wrong with the file system of the attempt's directory (`broken_machine.TROUBLES`), or "clock"."""
    seed: int = 0
    """Seed of the trouble."""
    hurry: float = 1.0
    """Factor by which the clock of deadlines runs faster, for commands that hang."""

    @property
    def deadline_s(self) -> float:
        """Time in which it must have ended, whatever waits."""
        return DEADLINE_S

    def prepare(self, directory: Path) -> None:
        """Make the files."""
        directory.mkdir()
        for name, data in self.files.items():
            path = Path(os.fsdecode(os.fsencode(directory / name)))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for name, kind in self.special.items():
            make_special(directory / name, kind)


def make_special(path: Path, kind: str) -> None:
    """Make what is no regular file, or one that is too large."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            os.chdir(path.parent)  # the path of a socket has at most 107 bytes
            server.bind(path.name)
            os.chdir(ROOT)
    elif kind == "directory":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 36)
    elif kind == "gigabyte":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        path.symlink_to(kind.removeprefix("-> "))


@dataclass(frozen=True)
class Outcome:
    """Outcome of an attempt."""

    code: int
    fault: str
    """Exception that left the command."""
    cpu_s: float
    wall_s: float
    out: str
    err: str


@dataclass
class Tally:
    """Count of attempts, and of those that ended badly."""

    tried: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    peak_mib: float = 0.0
    slowest_s: float = 0.0

    def __str__(self) -> str:
        """Render one line per group."""
        groups = Counter(dict.fromkeys(self.tried, 0))
        groups.update(line.partition("/")[0] for line in self.bad)
        lines = [f"{group}: tried {self.tried[group]}, bad {groups[group]}" for group in sorted(groups)]
        return "\n".join([*lines, f"peak {self.peak_mib:.0f} MiB, slowest {self.slowest_s:.1f} s"])


def run_attempts(
    attempts: Iterable[Attempt], directory: Path, *, at_once: int = 1
) -> Iterator[tuple[Attempt, Path, Outcome, float]]:
    """Try attempts in batches; yields each with its directory, its outcome and its batch's peak (MiB).

    `at_once`: batches side by side, for attempts that mostly wait; these are small.
    """
    pending = list(attempts)
    size = _BATCH if at_once == 1 else max(1, min(4, len(pending) // at_once))
    numbers = range(0, len(pending), size)
    batches = [
        [
            (attempt, directory / f"{start + number}")
            for number, attempt in enumerate(pending[start : start + size])
        ]
        for start in numbers
    ]

    def tried(batch: Sequence[tuple[Attempt, Path]]) -> tuple[list[Outcome], float]:
        for attempt, folder in batch:
            attempt.prepare(folder)
        return _run_batch([item for item, _ in batch], [folder for _, folder in batch], directory)

    with ThreadPoolExecutor(at_once) as pool:
        for batch, (outcomes, peak) in zip(batches, pool.map(tried, batches), strict=True):
            for (attempt, folder), outcome in zip(batch, outcomes, strict=True):
                yield attempt, folder, outcome, peak
                shutil.rmtree(folder, ignore_errors=True)


def _run_batch(batch: Sequence[Attempt], folders: Sequence[Path], home: Path) -> tuple[list[Outcome], float]:
    orders: list[dict[str, Any]] = [
        {
            "argv": [*attempt.argv],
            "folder": str(folder),
            "variables": dict(attempt.variables),
            "uid": attempt.uid,
            "trouble": attempt.trouble,
            "seed": attempt.seed,
            "hurry": attempt.hurry,
        }
        for attempt, folder in zip(batch, folders, strict=True)
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HF_HOME": str(home / "hf"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "LANG": "C.UTF-8",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("child.py")), str(_ADDRESS_SPACE)],
        input=json.dumps(orders),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    lines = done.stdout.splitlines()
    outcomes = [Outcome(**json.loads(line)) for line in lines if line.startswith("{")]
    reason = f"the process ended with {done.returncode}: {done.stderr[-300:]}"
    while len(outcomes) < len(batch):  # it died at the first of these
        outcomes.append(Outcome(-1, reason, 0.0, 0.0, "", ""))
    peak = float(lines[-1].removeprefix("peak ")) if lines and lines[-1].startswith("peak ") else 0.0
    return outcomes, peak
