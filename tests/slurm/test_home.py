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
SQUEUE = """\
[ -e {place}/down ] && {{ echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }}
PATH=/usr/local/bin:/usr/bin:/bin exec squeue "$@"
"""
SACCT = """\
if [ -e {place}/down ] || [ -e {place}/no-accounting ]
then
    echo "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection" >&2
    exit 1
fi
PATH=/usr/local/bin:/usr/bin:/bin exec sacct "${{@/#now-1days/{since}}}"
"""


def with_own_commands(user: User) -> str:
    """Let squeue and sacct fail while a file is there, accounting begin with this test; returns a PATH."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S")
    user.put_before("squeue", SQUEUE.format(place=user.place))
    path = user.put_before("sacct", SACCT.format(place=user.place, since=since))
    own_everything(user, user.place / "bin")
    return path


def own_everything(user: User, root: Path) -> None:
    """Give what the test wrote to the user."""
    settings = user.cluster.settings
    for path in (root, *root.rglob("*")):
        os.chown(path, settings.uid, settings.uid)


def filtered(tmux: Tmux, text: str, count: str) -> None:
    """Filter the list by typing, until so many rows are left."""
    tmux.press("/")
    tmux.type(text)
    tmux.see(count)
    tmux.press("Enter")


def unfiltered(tmux: Tmux, count: str) -> None:
    """Clear the filter, then the marks, until all is listed."""
    tmux.press("BSpace")  # a key after escape would be another one
    tmux.see(count)
    tmux.until(lambda text: not re.search(r"\d+ of \d+ run", text), "no filter")
    tmux.press("BSpace")
    tmux.until(lambda text: "marked" not in text, "no marks")


def test_thirty_runs_and_five_jobs_by_keys(user: User, tmux: Tmux) -> None:
    for number in range(30):
        identity = f"20261101-0000{number:02d}-old-{number:02d}-00{number:02d}"
        running(user.runs, "", host="elsewhere", identity=identity, name=f"old-{number:02d}").finish(0)
    own_everything(user, user.runs)
    path = with_own_commands(user)
    name = f"other{time.time_ns() % 10**6}"
    for number in range(5):
        argv = ("sbatch", "-J", f"{name}-{number}", "-t", "20", "-A", "distill", "-o", "/dev/null")
        user.cluster.as_user(*argv, f"--wrap=sleep {600 + number}")
    user.submit(*SHORT, nodes=1, PATH=path)
    tmux.start(user.argv("--no-mouse", PATH=path))
    # squeue itself still lists jobs that ended within the last minutes.
    tmux.until(lambda text: re.search(r"31 runs, \d+ other jobs", text) is not None, "all jobs", 90)
    # Jobs of other programs: filtered, marked and cancelled together.
    filtered(tmux, name, "0 of 31 runs, 5 of ")
    tmux.press("A")
    tmux.see("● 5 marked")
    tmux.press("c")
    tmux.see("Cancel 5 jobs?", f"{name}-0")
    tmux.press("y")
    tmux.until(lambda text: text.count(f"⊘ cancelled {name}") >= 5, "five cancelled jobs", 120)
    unfiltered(tmux, "31 runs, ")
    # One of them is opened, as `watch JOBID` does.
    filtered(tmux, f"{name}-3", "0 of 31 runs, 1 of ")
    tmux.press("Enter")
    tmux.see(f"{name}-3", "cancelled", limit_s=60)
    tmux.press("b")
    unfiltered(tmux, "31 runs, ")
    # Sorted, grouped, marked, compared.
    filtered(tmux, "old-0", "10 of 31 runs")
    tmux.press("o", "o")
    tmux.see("by name ↑")
    tmux.press("v")
    tmux.see("▾ rehearsal.yaml  10 runs")
    tmux.press("v", "Home", "Space", "Space")
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


def test_squeue_and_sacct_down(user: User, tmux: Tmux) -> None:
    running(user.runs, "", host="elsewhere", name="done").finish(0)
    own_everything(user, user.runs)
    path = with_own_commands(user)
    name = f"other{time.time_ns() % 10**6}"
    user.cluster.as_user(
        "sbatch", "-J", name, "-t", "20", "-A", "distill", "-o", "/dev/null", "--wrap=sleep 600"
    )
    (user.place / "no-accounting").touch()
    tmux.start(user.argv("--no-mouse", PATH=path))
    tmux.see("1 run, ", "Slurm's accounting gives no answer", name, limit_s=90)
    filtered(tmux, name, "0 of 1 run, 1 of ")
    (user.place / "down").touch()
    tmux.press("F5")
    # Said, with the time; nothing is lost from the list, and what Slurm alone knows is marked.
    tmux.see("Slurm gives no answer since", name, "~", "as of ", limit_s=90)
    unfiltered(tmux, "1 run, ")
    filtered(tmux, "done", "1 run, 0 of ")  # jobs of other tests may fill the list
    tmux.see("✓ completed", "done")
    unfiltered(tmux, "1 run, ")
    (user.place / "down").unlink()
    (user.place / "no-accounting").unlink()
    tmux.press("F5")
    tmux.until(lambda text: "Slurm gives no answer" not in text, "Slurm answers again", 90)


def test_runs_are_cancelled_and_resumed_by_keys(user: User, tmux: Tmux) -> None:
    for _ in range(2):
        user.submit(*SHORT, nodes=1)
    tmux.start(user.argv("--no-mouse", PATH=with_own_commands(user)))
    tmux.see("2 runs", limit_s=60)
    filtered(tmux, "rehearsal.yaml", "2 runs")
    tmux.until(lambda text: len(re.findall("◌ |● running", text)) >= 2, "their states", 60)
    tmux.press("Home", "Space", "Space")
    tmux.see("● 2 marked")
    tmux.press("c")
    tmux.see("Cancel 2 jobs?")
    tmux.press("y")
    tmux.until(lambda text: text.count("⊘ cancelled rehearsal") >= 2, "two cancelled runs", 120)
    tmux.press("r")
    tmux.see("Resume 2 runs?", "GPU hours together", limit_s=60)
    tmux.press("y")
    tmux.see("resumed: rehearsal", limit_s=60)
    tmux.until(lambda text: text.count("⊘ cancelled") == 0, "both are submitted again", 60)
    for run in user.runs.iterdir():
        assert (run / "jobs.json").read_text().count('"submitted"') == 2
    tmux.press("A")  # all that are shown are marked: none is now
    tmux.until(lambda text: "marked" not in text, "no mark")
    tmux.press("Home")
    tmux.until(lambda text: len(re.findall("◌ |● running", text)) >= 1, "its state", 60)
    tmux.press("c")
    tmux.see("Cancel this run?")
    tmux.press("n")
    tmux.until(lambda text: "Cancel this run?" not in text, "the list again")
