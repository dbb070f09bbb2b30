"""Generators of hostile logs, run directories and Slurm commands, with the commands that read them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.driver_text import LAUNCHER, DriverText, launcher_end
from tests.hostile.attempts import SECRET, SECRET_NAME, Attempt

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**400, 1e308, "", "x", "--me", "4711,4712", "\udcff", "\x1b[2J", "9" * 5000, "0001-01-01T00:00:00Z", [],
    "9999-12-31T23:59:59Z", [[]], {}, {"a": 1}, ["x"] * 3, "../../../etc", "/dev/zero", "\u202e", "a" * 300_000, 2**63, -(2**70),
)  # fmt: skip
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


def _base(random: Random) -> bytes:
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
        files = {name: _mutated(random, _base(random)) for name in names}
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


# ------------------------------------------------------------ run directories and Slurm

_SPEC: dict[str, Any] = {
    "schema": 1, "id": "20261128-020000-demo-ab12", "name": "demo", "kind": "training", "created": "2026-11-28T02:00:00Z",
    "user": "alice", "host": "login1", "recipe": {"source": "r.yaml", "overrides": ["a=1"]}, "cluster": "slurm", "nodes": 2,
    "gpus_per_node": 4, "max_steps": 20, "slurm": {"partition": "booster", "time_s": 3600, "chain": 2, "options": {}},
    "checkout": "/x", "launcher": "ray_bare", "request": {"env": [], "modules": "a"}, "skipped_checks": [{"id": "C1"}], "logs": "logs",
}  # fmt: skip
_JOBS: dict[str, Any] = {
    "schema": 1, "cancel_requested": None,
    "jobs": [{"id": "4711", "submitted": "2026-11-28T02:00:00Z", "token": "job-ab12", "link": 1}],
}  # fmt: skip
_SUMMARY: dict[str, Any] = {
    "schema": 1, "state": "completed", "reason": "", "ended": 1.8e9, "job": None, "attempts": [{"text": "a"}],
    "metrics": {"step": 3, "max_steps": 5, "loss": [0.5], "steps": [1], "checkpoints": [3]}, "findings": [], "milestones": [],
}  # fmt: skip
_RUN = "runs/20261128-020000-demo-ab12"
_ORDERS = (("runs",), ("runs", "--json"), ("cancel", _RUN), ("resume", _RUN, "--dry-run"), ("report", _RUN), ("watch", "--once", _RUN),
           ("watch", "--once", "--json", _RUN), ("runs", "--disk-use"))  # fmt: skip
_GARBAGE = (
    "exit 1", "echo '4711|PENDING|Priority'", "echo garbage", "printf '\\033[2J\\377\\000|||\\n'", "yes '4711|RUNNING|x' | head -c 3000000",
    "head -c 2000000 /dev/zero", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "kill -9 $$", "",
    "echo '4711|'", "printf '4711|RUNNING|None'; sleep 40 & exit 0", "echo 99999999999999999999999; exit 0", "printf '%0100000d|x\\n' 1",
    "echo '--me|RUNNING|x'; echo '4711,4712|RUNNING|x'", "printf '\\xed\\xa0\\x80|\\xe2\\x80\\xae\\n'", "echo ok >&2; exit 255",
)  # fmt: skip
SLURM = ("sinfo", "scontrol", "sacctmgr", "squeue", "sacct", "scancel", "sbatch", "sprio")


@dataclass(frozen=True)
class RunAttempt(Attempt):
    """Attempt on a run's directory; with Slurm's commands as scripts, where there are any."""

    commands: tuple[tuple[str, str], ...] = ()

    def prepare(self, directory: Path) -> None:
        """Make the files and the commands."""
        (directory / _RUN / "logs").mkdir(parents=True)
        (directory / "bin").mkdir()
        for name, data in self.files.items():
            (directory / name).write_bytes(data)
        for name, script in self.commands:
            path = directory / "bin" / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the path of every value in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def changed(random: Random, document: Any) -> Any:
    """Return a document with one to three values changed or missing."""
    document = json.loads(json.dumps(document))
    for _ in range(random.randint(1, 3)):
        path = random.choice(places(document))
        value = deepcopy(random.choice(VALUES))
        if not path:
            if random.random() < 0.1:
                return value
            continue
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        if random.random() < 0.2 and isinstance(holder, dict):
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
    return document


def _stored(random: Random, document: Any) -> bytes:
    data = json.dumps(document).encode()
    chance = random.random()
    if chance < 0.05:
        return data[: random.randint(0, len(data))]
    if chance < 0.1:
        return random.randbytes(300)
    if chance < 0.13:
        return random.choice((b"[" * 100_000, b'{"a":' * 50_000, b"", b"NaN", b"\xff\xfe", b" " * 9_000_000))
    return data


def _run_files(random: Random, *, damaged: bool) -> dict[str, bytes]:
    documents = {
        "run.json": _SPEC,
        "jobs.json": _JOBS,
        "summary.json": _SUMMARY,
        "plan.json": {"schema": 1, "argv": ["sbatch"], "env": {}},
    }
    bad = set(random.sample(list(documents), random.randint(1, 2))) if damaged else set()
    keep = [name for name in documents if name != "summary.json" or damaged]
    files = {
        f"{_RUN}/{name}": _stored(random, changed(random, documents[name]))
        if name in bad
        else json.dumps(documents[name]).encode()
        for name in keep
    }
    return files | {
        f"{_RUN}/recipe.yaml": b"a: 1\n",
        f"{_RUN}/effective.yaml": b"distillation: {}\n",
        f"{_RUN}/logs/ray-driver.log": _base(random),
    }


def run_attempts_of_directories(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield damaged run directories, with a Slurm that knows nothing of them."""
    random = Random(seed)
    quick = tuple((name, "exit 0") for name in SLURM)
    for number in range(count):
        yield RunAttempt(
            "run directories", "damaged files", _ORDERS[number % len(_ORDERS)], _run_files(random, damaged=True),
            variables={"DISTILL_TUI_RUNS": "runs", "PATH": "bin:/usr/bin:/bin", SECRET_NAME: SECRET}, commands=quick,
        )  # fmt: skip


def slurm_attempts(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield a Slurm that answers anything, with the commands that ask it."""
    random = Random(seed)
    orders = [order for order in _ORDERS if order[0] != "cancel"] + [
        ("detect",),
        ("detect", "--json"),
        ("watch", "--once", "4711"),
    ]
    for number in range(count):
        commands = tuple((name, random.choice(_GARBAGE)) for name in SLURM)
        yield RunAttempt(
            "Slurm commands", "garbage", orders[number % len(orders)], _run_files(random, damaged=False),
            variables={"DISTILL_TUI_RUNS": "runs", "PATH": "bin:/usr/bin:/bin", SECRET_NAME: SECRET}, commands=commands,
        )  # fmt: skip
