"""The list of all jobs in a terminal of 80x24: runs and jobs of other programs, by keys; Slurm down."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.slurm.tmux import Tmux
from tests.slurm.user import SHORT, User
from tests.tui.replay import running

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(500)]
DOWN = """\
[ -e {down} ] && {{ echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }}
PATH=/usr/local/bin:/usr/bin:/bin exec {name} "$@"
"""


def own_everything(user: User, root: Path) -> None:
    """Give what the test wrote to the user."""
    settings = user.cluster.settings
    for path in (root, *root.rglob("*")):
        os.chown(path, settings.uid, settings.uid)


def test_thirty_runs_and_five_jobs_by_keys(user: User, tmux: Tmux) -> None:
    for number in range(30):
        identity = f"20261101-0000{number:02d}-old-{number:02d}-00{number:02d}"
        running(user.runs, "", host="elsewhere", identity=identity, name=f"old-{number:02d}").finish(0)
    own_everything(user, user.runs)
    down = user.place / "down"
    path = user.put_before("squeue", DOWN.format(down=down, name="squeue"))
    user.put_before("sacct", DOWN.format(down=down, name="sacct"))
    own_everything(user, user.place / "bin")
    name = f"other{time.time_ns() % 10**6}"
    for number in range(5):
        argv = ("sbatch", "-J", f"{name}-{number}", "-t", "20", "-A", "distill", "-o", "/dev/null")
        user.cluster.as_user(*argv, f"--wrap=sleep {600 + number}")
    user.submit(*SHORT, nodes=1, PATH=path)
    tmux.start(user.argv("--no-mouse", PATH=path))
    # The user of the test cluster has had other jobs today.
    tmux.until(lambda text: re.search(r"31 runs, \d+ other jobs", text) is not None, "all jobs", 90)
    # Jobs of other programs: filtered, marked and cancelled together.
    tmux.press("/")
    tmux("send-keys", "-l", name)
    tmux.see("5 of 31 runs", f"{name}-4")
    tmux.press("Enter", "A")
    tmux.see("● 5 marked")
    tmux.press("c")
    tmux.see("Cancel 5 jobs?", f"{name}-0")
    tmux.press("y")
    tmux.until(lambda text: text.count("⊘ cancelled") >= 5, "five cancelled jobs", 120)
    tmux.press("BSpace")  # a key after escape would be another one
    tmux.see("31 runs, ")
    tmux.press("BSpace")
    tmux.until(lambda text: "marked" not in text, "no marks")
    # Sorted, grouped, marked, compared.
    tmux.press("o", "o")
    tmux.see("by name ↑")
    tmux.press("v")
    tmux.see("▾ rehearsal.yaml")
    tmux.press("v", "/")
    tmux("send-keys", "-l", "old-0")
    tmux.see("10 of 31 runs")
    tmux.press("Enter", "Home", "Space", "Space")
    tmux.see("● 2 marked")
    tmux.press("D")
    tmux.see("runs beside each other", "A old-00", "B old-01", limit_s=60)
    tmux.press("2")
    tmux.see("step, median")
    tmux.press("b")
    tmux.see("10 of 31 runs")
    # Removed: both marked ones, with their size.
    tmux.press("d")
    tmux.see("Remove 2 runs?", "on disk", limit_s=60)
    tmux.press("y")
    tmux.see("8 of 29 runs", limit_s=60)
    assert len(list(user.runs.glob("2026*-old-*"))) == 28
    # Slurm gives no answer: said, with the time, and nothing is lost from the list.
    tmux.press("BSpace")
    tmux.see("29 runs, ")
    down.touch()
    tmux.press("F5")
    tmux.see("Slurm gives no answer since", "29 runs, ", limit_s=90)
    down.unlink()
    tmux.press("F5")
    tmux.until(lambda text: "gives no answer" not in text, "Slurm answers again", 90)


def test_a_run_is_cancelled_and_offered_to_be_resumed_by_key(user: User, tmux: Tmux) -> None:
    user.submit(*SHORT, nodes=1)
    tmux.start(user.argv("--no-mouse"))
    tmux.see("rehearsal", limit_s=60)
    tmux.until(lambda text: "◌" in text or "● running" in text, "its state", 60)
    tmux.press("c")
    tmux.see("Cancel this run?")
    tmux.press("y")
    tmux.see("cancelled by you", limit_s=120)
    tmux.press("r")
    tmux.see("Resume this run?", "One more job", limit_s=60)
    tmux.press("n")
    tmux.until(lambda text: "One more job" not in text and " 1 run" in text, "the list again")
