"""The user of the test cluster, at work on its login node."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.machines import CHECKOUT

PROGRAM = str(Path(sys.prefix) / "bin" / "distill-tui")
RECIPE = str(CHECKOUT / "recipes" / "library" / "rehearsal.yaml")
# The pretended CPUs and memory are not there.
SITE = """\
[profiles.light.environment]
RAY_BARE_CPUS = 2
RAY_BARE_OBJECT_STORE_MEMORY = 100000000
RAY_BARE_DASHBOARD = 0
"""
SHORT = ("distillation.max_num_steps=6", "distillation.val_period=3", "checkpointing.save_period=3")


@dataclass(frozen=True)
class User:
    """The user, with a directory for the runs and settings of one test."""

    cluster: Cluster
    place: Path

    @staticmethod
    def of(cluster: Cluster, name: str) -> User:
        """Return the user in a fresh directory."""
        place = cluster.settings.home / "tests" / f"{name}-{time.time_ns():x}"
        config = place / "config" / "distill-tui"
        config.mkdir(parents=True)
        (config / "site.toml").write_text(SITE)
        for path in (place.parent, place, *place.rglob("*")):
            os.chown(path, cluster.settings.uid, cluster.settings.uid)
        return User(cluster, place)

    @property
    def runs(self) -> Path:
        """Where the runs are."""
        return self.place / "runs"

    def argv(self, *arguments: str, **changes: str) -> list[str]:
        """Return the command that runs distill-tui as the user on the login node."""
        environment = {
            "DISTILL_TUI_RUNS": str(self.runs),
            "XDG_CONFIG_HOME": str(self.place / "config"),
            "XDG_CACHE_HOME": str(self.place / "cache"),
            "XDG_STATE_HOME": str(self.place / "state"),
            **changes,
        }
        return self.cluster.user_command(PROGRAM, *arguments, environment=environment, directory=self.place)

    def __call__(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        """Run distill-tui to its end."""
        return subprocess.run(
            self.argv(*arguments, **changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def accounted(self, *ids: str, columns: str = "") -> list[list[str]]:
        """Return what accounting says of jobs that are over (number, state, more columns), once it knows.

        It learns of an end later than the controller, on a busy machine by seconds.
        """
        argv = ("sacct", "-XnPj", ",".join(ids), "-o", f"JobID,State,{columns}".rstrip(","))
        end = time.monotonic() + 60
        while True:
            rows = [line.split("|") for line in self.cluster.as_user(*argv).splitlines()]
            if rows and not any(row[1].split()[0] in ("PENDING", "RUNNING", "COMPLETING") for row in rows):
                return rows
            assert time.monotonic() < end, rows
            time.sleep(0.5)

    def submit(self, *arguments: str, nodes: int = 2, time_: str = "10", **changes: str) -> dict[str, Any]:
        """Submit a rehearsal; returns what was printed."""
        done = self(
            "submit", RECIPE, *arguments, "--rehearse", "--nodes", str(nodes), "--time", time_,
            "--account", "distill", "--profile", "light", "--json", **changes,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed

    def state(self, run: str) -> dict[str, Any]:
        """Return the state of a run."""
        done = self("watch", "--once", "--json", run)
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed

    def wait(self, run: str, holds: Callable[[dict[str, Any]], bool], within_s: float) -> dict[str, Any]:
        """Wait until something holds of a run's state."""
        end = time.monotonic() + within_s
        while True:
            state = self.state(run)
            if holds(state):
                return state
            assert time.monotonic() < end, (state["state"], state["reason"], state["milestones"])
            time.sleep(1)

    def jobs(self) -> list[str]:
        """Return the comments of all the user's jobs that Slurm knows of in this test's place."""
        printed = self.cluster.as_user("squeue", "-h", "-t", "all", "-o", "%i|%Z|%k")
        return [line for line in printed.splitlines() if str(self.place) in line]

    def put_before(self, name: str, script: str) -> str:
        """Put a command of ours before Slurm's own; returns a PATH."""
        folder = self.place / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
        return f"{folder}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

    def clean_up(self) -> None:
        """Cancel what is left and remove the directory."""
        self.cluster.cancel_all()
        shutil.rmtree(self.place)


def ray_processes(cluster: Cluster) -> dict[str, list[str]]:
    """Return the user's processes on the nodes that belong to a job."""
    found = {}
    for node in cluster.nodes:
        if node.pid is None:  # off
            continue
        lines = [line for line in node.processes(cluster.settings.user) if not re.search(r"\bps -u\b", line)]
        if lines:
            found[node.name] = lines
    return found
