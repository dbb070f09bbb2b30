"""Generators of submissions with any value of any field, of orders on a Slurm that answers anything, of doctor's quotas."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from launcher.clusters.slurm.client import QUERY_TIMEOUT_S as SLURM_S
from launcher.clusters.slurm.stopping import STOP_WITHIN_S
from launcher.fields import FIELDS
from tests.hostile.attempts import SECRET, SECRET_NAME, Attempt, Outcome
from tests.hostile.recipe_parts import hostile_text
from tests.hostile.run_inputs import GARBAGE, QUICK, RUN, SLURM, VARIABLES, RunAttempt, run_files
from tests.tui.fakeslurm import LoginNode

_TEXTS = (
    "", " ", "0", "-1", "1", "1e308", "nan", "inf", "-inf", "1_000", "0x10", "0b1", "٣", "²", "9" * 5000, "9" * 30, "1.5", "-5e-6", "+3", "1,2",
    "true", "off", "null", "~", "x", "a b", "a=b", "a,b", "[1, 2]", "{a: 1}", "${x}", "${oc.env:UPLOAD_TOKEN}", "'", '"', "\\", "$(id)", "`id`",
    "--me", "-x", "/", "..", "../../etc/passwd", "/dev/zero", "/proc/kmsg", "~nosuch/x", "~", "%j", "100%", "\n", "a\nb", "\x1b[2J", "\u202e", "\udcff",
    "\u2028", "x" * 70_000, "[" * 300, "1:2:3:4", "99-99:99:99", "1-00:00:00", "0:00", "-5:00", "999999999-0", "HF_TOKEN=x", "PATH", "LD_PRELOAD=/x",
    "org/model", "ssh://a:b@c/d", "a\tb", "é中🔍", "=", "==", ":", "a:b:c", "/a:/b:ro,/c", "booster", "devel", "closed", "!!int x", "&a", "*a", "# x", "@",
)  # fmt: skip
_OPTIONS = tuple(row for row in FIELDS if row.flag)
_OF_RECIPE = tuple(row.name for row in FIELDS if row.of_recipe)
_BOTH = tuple(row.name for row in FIELDS if row.of_recipe and row.both)


@dataclass(frozen=True)
class SubmitAttempt(Attempt):
    """Submission on a login node, or an examination of it."""

    commands: tuple[tuple[str, str], ...] = ()
    """Further commands on PATH."""

    def prepare(self, directory: Path) -> None:
        """Make the login node."""
        node = LoginNode.at(directory)
        for name, script in self.commands:
            node.answer(name, script)


_NODE = {
    "PATH": "bin:/usr/bin:/bin", "HOME": ".", "USER": "carla", "NEMO_RL_ROOT": "nemo-rl", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache", "DISTILL_TUI_RUNS": "runs", "RAY_BARE_VENV": sys.prefix, SECRET_NAME: SECRET,
}  # fmt: skip


def _value(random: Random) -> str:
    chance = random.random()
    if chance < 0.7:
        return random.choice(_TEXTS)
    return hostile_text(random, random.randint(1, 6)).replace("\x00", "")  # exec takes none


def submit_attempts(count: int, *, seed: int) -> Iterator[SubmitAttempt]:
    """Yield submissions with hostile values: every field in turn, with others by chance."""
    random = Random(seed)
    for number in range(count):
        words = ["submit", "nemo-rl/recipe.yaml", "--dry-run"]
        if number % 3 == 0:
            words.append("--json")
        given = {"--nodes": "1", "--time": "2:00:00"}
        name = _OF_RECIPE[number % len(_OF_RECIPE)]
        words += ["--set", f"{name}={_value(random)}"]
        if random.random() < 0.3:
            words += ["--set-both", f"{random.choice(_BOTH)}={_value(random)}"]
        if random.random() < 0.4:
            words += [
                "--set",
                f"{hostile_text(random, 3) if random.random() < 0.2 else random.choice(_OF_RECIPE)}={_value(random)}",
            ]
        if number % 2:
            row = random.choice(_OPTIONS)
            if row.flag not in ("--rehearse", "--smoke") and row.metavar != "":
                given[row.flag] = _value(random)
        words += [f"{flag}={value}" for flag, value in given.items()]
        yield SubmitAttempt("submissions", name, tuple(words), variables=_NODE)


_QUOTAS = (
    "lfs",
    "mmlsquota",
    "quota",
    "jutil",
    "module",
    "uv",
    "git",
    "ray",
    "apptainer",
    "srun",
    "nvidia-smi",
    "df",
    "du",
    "tmux",
)


def doctor_attempts(count: int, *, seed: int) -> Iterator[SubmitAttempt]:
    """Yield login nodes whose commands answer anything, with what the doctor makes of it."""
    random = Random(seed)
    asks = (
        ("doctor", "nemo-rl/recipe.yaml"),
        ("doctor", "nemo-rl/recipe.yaml", "--json"),
        ("doctor", "--print"),
        ("doctor",),
    )
    for number in range(count):
        names = {
            *random.sample(_QUOTAS, random.randint(1, 5)),
            *random.sample(SLURM, random.randint(0, 3)),
        } - {"sbatch", "scancel"}
        commands = tuple((name, random.choice(GARBAGE)) for name in sorted(names))
        yield SubmitAttempt(
            "doctor", ", ".join(sorted(names)), asks[number % len(asks)], variables=_NODE, commands=commands
        )


_TELLS_NOTHING = tuple(script for script in GARBAGE if re.search(r"exit (1|126|255)$|kill -9", script))
"""Answers of squeue from which nobody can know that a job has ended."""
_ORDERS = (
    ("cancel", RUN),
    ("resume", RUN),
    ("cancel", "4711"),
    ("cancel", RUN, "--trust"),
    ("resume", RUN, "--json"),
)


@dataclass(frozen=True)
class OrderAttempt(RunAttempt):
    """Order about a run; `cancel` waits for Slurm for a while, and says so."""

    @property
    def deadline_s(self) -> float:
        """Time in which it must have ended: the wait of `cancel`, one more question, and 2 s."""
        return STOP_WITHIN_S + SLURM_S + 2


def order_attempts(count: int, *, seed: int) -> Iterator[RunAttempt]:
    """Yield orders about a run on a Slurm that answers anything."""
    random = Random(seed)
    for number in range(count):
        commands = dict(QUICK) | {
            name: random.choice(GARBAGE) for name in random.sample(SLURM, random.randint(1, len(SLURM)))
        }
        kind = "garbage"
        if number % 2:
            kind, commands["squeue"] = "no answer", random.choice(_TELLS_NOTHING)
        yield OrderAttempt(
            "orders", kind, _ORDERS[number % len(_ORDERS)], run_files(random, damaged=False), variables=VARIABLES,
            commands=tuple(commands.items()),
        )  # fmt: skip


def no_false_stop(attempt: Attempt, folder: Path, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong where a run is called stopped although Slurm told nothing."""
    if attempt.kind == "no answer" and attempt.argv[0] == "cancel" and outcome.code == 0:
        yield f"called stopped: {outcome.err[-300:]!r}"
    if any(name.startswith("-") for name in os.listdir(folder)):
        yield f"a file that a command made: {os.listdir(folder)}"
