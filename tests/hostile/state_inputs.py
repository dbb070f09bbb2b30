"""Generators of damaged files of the user's own: caches, settings, drafts, remembered jobs, the doctor's last report."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.hostile.documents import changed
from tests.hostile.run_inputs import QUICK, RUN, VARIABLES, RunAttempt, run_files, stored

GROUP = "files of the user"
_ROW: dict[str, Any] = {
    "id": "x", "name": "n", "directory": "runs/x", "state": "completed", "step": 3, "max_steps": 5, "started": 1.7e9,
    "ended": 1.8e9, "losses": [0.5], "jobs": ["1"], "durations": [["step", 2.0]], "bytes": 5, "recipe": "r.yaml", "nodes": 1,
}  # fmt: skip
_DOCUMENTS: dict[str, Any] = {
    "cache/distill-tui/doctor/last.json": {
        "schema": 1, "at": 1.7e9, "host": "login1", "recipe": "r.yaml",
        "checks": [{"id": "D1", "title": "t", "where": "login", "outcome": "fail", "evidence": "e"}],
    },
    "state/distill-tui/watched-jobs.json": [
        {"id": "4711", "name": "n", "state": "completed", "reason": "", "started": 1.7e9, "ended": 1.8e9}
    ],
    "config/distill-tui/sites.json": {"sites": {"generic": {"values": {"A": "1"}, "passed": ["B"], "modules": ["m"]}}},
    "cache/distill-tui/runs/ROWS.json": {"format": 1, "rows": [{"version": [1.7e9, 5], "row": _ROW}]},
    "cache/distill-tui/slurm-HOST-USER.json": {
        "schema": 3, "at": time.time(), "conf": "",
        "answers": {
            "version": "22.05", "sinfo": "a*|up|1:00|2|gpu:4|96|2|24", "partitions": "", "accounts": "", "qos": "", "cluster": "",
            "budgets": "", "quotas": {}, "accounting": True,
        },
    },
}  # fmt: skip
_SETTINGS = (
    "notify",
    "storage.runs",
    "storage.earlier_runs",
    "monitor.layout",
    "monitor.panes",
    "x",
    "theme",
)
_READS = (("report", RUN), ("report", RUN, "--json"), ("runs",), ("runs", "--json"), ("detect",), ("settings",), ("doctor",),
          ("watch", "--once", RUN), ("site", "export"), ("profile",), ("doctor", "--json"))  # fmt: skip


def state_attempts(count: int, *, seed: int, names: tuple[str, str] = ("", "")) -> Iterator[RunAttempt]:
    """Yield damaged files of the user, each with a command that reads some of them.

    Args:
        count: Number of attempts.
        seed: Seed of what is damaged.
        names: This machine and this user, as the names of cached answers have them.
    """
    random = Random(seed)
    for number in range(count):
        files = run_files(random, damaged=False)
        special = {}
        for name, document in _DOCUMENTS.items():
            path = name.replace("HOST", names[0]).replace("USER", names[1])
            files[path] = (
                stored(random, changed(random, document))
                if random.random() < 0.7
                else json.dumps(document).encode()
            )
        value = json.dumps(
            random.choice(("x", 1, -1, 1e308, [], {}, "\x1b[2J", ["a"], "~nosuch", "/dev/zero", "a" * 5000))
        )
        files["config/distill-tui/settings.toml"] = f"{random.choice(_SETTINGS)} = {value}\n".encode()
        if random.random() < 0.2:
            path = random.choice(list(_DOCUMENTS)).replace("HOST", names[0]).replace("USER", names[1])
            del files[path]
            special[path] = random.choice(
                ("fifo", "directory", "loop", "sparse", "-> /dev/zero", "-> /proc/kmsg")
            )
        yield RunAttempt(
            GROUP, "damaged", _READS[number % len(_READS)], files, special, variables=VARIABLES, commands=QUICK,
        )  # fmt: skip
