"""Generators of hostile run directories and of Slurm commands that answer anything, with the commands that meet them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from launcher.clusters.slurm.client import QUERY_TIMEOUT_S as SLURM_S
from launcher.transports.local import FILE_DEADLINE_S
from tests.hostile.attempts import DEADLINE_S, SECRET, SECRET_NAME, Attempt, make_special
from tests.hostile.broken_machine import TROUBLES
from tests.hostile.documents import changed
from tests.hostile.log_inputs import log_text

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
RUN = "runs/20261128-020000-demo-ab12"
ORDERS = (("runs",), ("runs", "--json"), ("cancel", RUN), ("resume", RUN, "--dry-run"), ("report", RUN), ("watch", "--once", RUN),
           ("watch", "--once", "--json", RUN), ("runs", "--disk-use"), ("compare", RUN, RUN),
           ("scale", "r.yaml", "--run", RUN, "--nodes", "2"), ("report", RUN, "--json"))  # fmt: skip
_QUESTIONS = [order for order in ORDERS if order[0] not in ("cancel", "compare", "scale")] + [
    ("detect",),
    ("detect", "--json"),
    ("watch", "--once", "4711"),
    ("doctor",),
]
FILES_OF_A_RUN = (
    "run.json", "jobs.json", "summary.json", "plan.json", "recipe.yaml", "effective.yaml", "secrets.env", "report.md",
    "logs/ray-driver.log", "logs/log-clock.tsv", "logs/launcher.log", "logs/gpu-n1.csv",
)  # fmt: skip
_SPECIAL = ("fifo", "directory", "loop", "gigabyte", "sparse", "socket", "-> /dev/zero", "-> /proc/kmsg", "-> /dev/full", "-> nowhere",
            "-> /proc/self/mem", "-> /dev/tty")  # fmt: skip
HURRY = 25.0
"""Factor of the clock for commands that hang: 75 s become 3 s."""
GARBAGE = (
    "exit 1", "echo '4711|PENDING|Priority'", "echo garbage", "printf '\\033[2J\\377\\000|||\\n'", "yes '4711|RUNNING|x' | head -c 3000000",
    "head -c 2000000 /dev/zero", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "kill -9 $$", "",
    "echo '4711|'", "printf '4711|RUNNING|None'; sleep 40 & exit 0", "echo 99999999999999999999999; exit 0", "printf '%0100000d|x\\n' 1",
    "echo 'Fehler: Zugriff verweigert' >&2; exit 1", "printf 'erreur: d\\351lai d\\351pass\\351\\n' >&2; exit 1", "cat /bin/ls",
    "printf '4711|LÄUFT|Keine|x\\n'", "printf '\\377\\3764\\0007\\0001\\0001\\000|\\000'", "yes | head -c 40000000", "printf '4711|RUNNI'; exit 1",
    "echo '4711|RUNNING|None|9999-99-99T99:99:99|Unknown|n[1-99999999]|1-00:00:00|x||booster|99999999999|name'", "exit 126",
    "echo '4711|PENDING|Priority|Unknown|Unknown||-5:00|x||\x1b[2J|0|\u202e'", "echo slurm 99999999999999999999.1", "seq 1 300000",
    "echo 'PartitionName=a[0-99999999] State=UP MaxTime=99999999999-00:00:00 MaxNodes=1e9 Nodes=(null)'", "echo '||||||||||||||||||||||||'",
    "echo '--me|RUNNING|x'; echo '4711,4712|RUNNING|x'", "printf '\\xed\\xa0\\x80|\\xe2\\x80\\xae\\n'", "echo ok >&2; exit 255",
)  # fmt: skip
_SILENT = (
    "sleep 300", "trap '' TERM INT HUP; sleep 300 & wait; sleep 300", "printf '4711|RUNN'; sleep 300", "sleep 300 & sleep 300",
    "exec 2>&1; yes '4711|RUNNING|None|x' ", "while :; do printf x; sleep 1; done", "cat /dev/zero", "setsid sleep 30 & exit 0",
    "kill -STOP $$", "exec >&- 2>&-; sleep 300",
)  # fmt: skip
SLURM = ("sinfo", "scontrol", "sacctmgr", "squeue", "sacct", "scancel", "sbatch", "sprio")


@dataclass(frozen=True)
class RunAttempt(Attempt):
    """Attempt on a run's directory; with Slurm's commands as scripts, where there are any."""

    commands: tuple[tuple[str, str], ...] = ()

    @property
    def deadline_s(self) -> float:
        """Time in which it must have ended: that of one question to Slurm, and 2 s.

        On a mount without answer: of one call by each of four parts of a command that have files of their own.
        """
        if self.trouble == "hang":
            return 4 * FILE_DEADLINE_S + 2
        return SLURM_S / self.hurry + 2 if self.hurry != 1 else DEADLINE_S

    def prepare(self, directory: Path) -> None:
        """Make the files and the commands."""
        (directory / RUN / "logs").mkdir(parents=True)
        (directory / "bin").mkdir()
        for name, data in self.files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(data)
        for name, kind in self.special.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            make_special(directory / name, kind)
        for name, script in self.commands:
            path = directory / "bin" / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)


def stored(random: Random, document: Any) -> bytes:
    """Return a document as a file, sometimes cut or replaced by bytes of any kind."""
    data = json.dumps(document).encode()
    chance = random.random()
    if chance < 0.05:
        return data[: random.randint(0, len(data))]
    if chance < 0.1:
        return random.randbytes(300)
    if chance < 0.13:
        return random.choice((b"[" * 100_000, b'{"a":' * 50_000, b"", b"NaN", b"\xff\xfe", b" " * 9_000_000))
    return data


def run_files(random: Random, *, damaged: bool) -> dict[str, bytes]:
    """Return the files of a run, sound or some of them damaged."""
    documents = {
        "run.json": _SPEC,
        "jobs.json": _JOBS,
        "summary.json": _SUMMARY,
        "plan.json": {"schema": 1, "argv": ["sbatch"], "env": {}},
    }
    bad = set(random.sample(list(documents), random.randint(1, 2))) if damaged else set()
    keep = [name for name in documents if name != "summary.json" or damaged]
    files = {
        f"{RUN}/{name}": stored(random, changed(random, documents[name]))
        if name in bad
        else json.dumps(documents[name]).encode()
        for name in keep
    }
    return files | {
        f"{RUN}/recipe.yaml": b"a: 1\n",
        f"{RUN}/effective.yaml": b"distillation: {}\n",
        f"{RUN}/logs/ray-driver.log": log_text(random),
    }


VARIABLES = {
    "DISTILL_TUIRUNS": "runs", "PATH": "bin:/usr/bin:/bin", SECRET_NAME: SECRET,
    "XDG_CACHE_HOME": "cache", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state",
}  # fmt: skip
QUICK = tuple((name, "exit 0") for name in SLURM)


def run_attempts_of_directories(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield damaged run directories, with a Slurm that knows nothing of them."""
    random = Random(seed)
    for number in range(count):
        files, special, kind = run_files(random, damaged=True), {}, "damaged files"
        if number % 4 == 3:
            name = f"{RUN}/{random.choice(FILES_OF_A_RUN)}"
            # A log is read whole, whatever it takes: 64 GiB are minutes.
            kind = random.choice([item for item in _SPECIAL if item != "sparse" or "logs/" not in name])
            files.pop(name, None)
            special[name] = kind
        yield RunAttempt(
            "run directories",
            kind,
            ORDERS[number % len(ORDERS)],
            files,
            special,
            variables=VARIABLES,
            commands=QUICK,
        )


def troubled_attempts(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield sound runs and recipes on a machine that is not well: its file system fails, or its clock jumps."""
    random = Random(seed)
    edits = (("recipe", "set", "r.yaml", "a", "5"), ("recipe", "show", "r.yaml"), ("recipe", "lint", "r.yaml"),
             ("settings", "notify", "bell"), ("site", "export"), ("compare", RUN, "runs/other"))  # fmt: skip
    orders = (*(order for order in ORDERS if order[0] != "cancel"), *edits)
    troubles = [*(name for name in TROUBLES if name != "hang"), "clock"]
    for number in range(count):
        files = run_files(random, damaged=False) | {
            "r.yaml": b"a: 1\n",
            "runs/other/ray-driver.log": log_text(random),
        }
        if number % 3:
            files[f"{RUN}/summary.json"] = json.dumps(_SUMMARY).encode()
        trouble = troubles[number % len(troubles)]
        yield RunAttempt(
            "troubled machines", trouble, random.choice(orders), files, variables=VARIABLES, commands=QUICK,
            trouble=trouble, seed=random.randrange(1 << 30),
        )  # fmt: skip


def silent_mounts(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield sound runs on a mount whose server gives no answer."""
    random = Random(seed)
    orders = [order for order in ORDERS if order[0] != "cancel"]
    for number in range(count):
        yield RunAttempt(
            "silent mounts", "hang", orders[number % len(orders)], run_files(random, damaged=False),
            variables=VARIABLES, commands=QUICK, trouble="hang", seed=random.randrange(1 << 30),
        )  # fmt: skip


def slurm_attempts(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield a Slurm that answers anything, with the commands that ask it."""
    random = Random(seed)
    for number in range(count):
        commands = tuple((name, random.choice(GARBAGE)) for name in SLURM)
        yield RunAttempt(
            "Slurm commands", "garbage", _QUESTIONS[number % len(_QUESTIONS)], run_files(random, damaged=False),
            variables=VARIABLES, commands=commands,
        )  # fmt: skip


def silent_slurm_attempts(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield a Slurm some of whose commands never end, with the commands that ask it; the clock runs faster."""
    random = Random(seed)
    for number in range(count):
        silent = set(random.sample(SLURM, random.randint(1, len(SLURM))))
        commands = tuple((name, random.choice(_SILENT if name in silent else GARBAGE)) for name in SLURM)
        yield RunAttempt(
            "silent Slurm", "hang", _QUESTIONS[number % len(_QUESTIONS)], run_files(random, damaged=False),
            variables=VARIABLES, commands=commands, hurry=HURRY,
        )  # fmt: skip
