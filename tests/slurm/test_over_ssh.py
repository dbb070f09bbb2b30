"""The whole path from a laptop: nothing but sshd, `sh` and Slurm is used on the login node."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.far_cluster import FarCluster, far_cluster
from tests.slurm.user import RECIPE, SHORT, User
from tests.ssh.laptop import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]


@pytest.fixture
def far(user: User, tmp_path: Path) -> Iterator[FarCluster]:
    """Return the laptop; the user's recipe is on the login node."""
    shutil.copy(RECIPE, user.place / "mine.yaml")
    shutil.chown(user.place / "mine.yaml", user.cluster.settings.uid, user.cluster.settings.uid)
    variables = {
        "DISTILL_TUI_RUNS": str(user.runs), "XDG_CONFIG_HOME": str(user.place / "config"),
        "XDG_CACHE_HOME": str(user.place / "cache"), "XDG_STATE_HOME": str(user.place / "state"),
        "RAY_BARE_VENV": sys.prefix,
    }  # fmt: skip
    with far_cluster(user, tmp_path, variables) as one:
        yield one


def submission(user: User, *more: str, nodes: int = 2) -> tuple[str, ...]:
    return (
        "submit", "--host", "far", str(user.place / "mine.yaml"), *more, "--rehearse", "--nodes", str(nodes),
        "--time", "10", "--account", "distill", "--profile", "light", "--json",
    )  # fmt: skip


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr + done.stdout[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout


def test_the_whole_path_from_a_laptop(user: User, far: FarCluster) -> None:
    recipe = f"far:{user.place / 'mine.yaml'}"
    here, there = (
        json.loads(user("detect", "--json").stdout),
        json.loads(good(far("detect", "--host", "far", "--json"))),
    )
    assert there == here

    good(far("recipe", "set", recipe, "checkpointing.save_period", "2"))
    assert "save_period: 2" in (user.place / "mine.yaml").read_text()
    assert (user.place / "mine.yaml").stat().st_uid == user.cluster.settings.uid
    checked = far("check", "--host", "far", str(user.place / "mine.yaml"), "--json")
    assert json.loads(checked.stdout)["checks"], checked.stderr

    sent = json.loads(good(far(*submission(user, *SHORT))))
    (job,) = sent["jobs"]
    directory = Path(sent["dir"])
    assert directory.is_relative_to(user.runs)
    assert len(user.jobs()) == 1
    events = good(far("watch", "--host", "far", "--json", sent["run"], timeout_s=300)).splitlines()
    assert any('"completed"' in event for event in events)
    state = json.loads(good(far("watch", "--host", "far", "--once", "--json", sent["run"])))
    assert (state["state"], state["metrics"]["step"]) == ("completed", 6)
    assert user.state(sent["run"])["milestones"] == state["milestones"]

    report = json.loads(good(far("report", "--host", "far", sent["run"], "--json")))
    assert report["state"] == "completed"
    listed = json.loads(good(far("runs", "--host", "far", "--json")))
    assert [item["run"] for item in listed["runs"]] == [sent["run"]]
    refused = far("resume", "--host", "far", sent["run"])
    assert refused.returncode == 1
    assert "has done all of its 6 steps" in refused.stderr
    assert user.accounted(job["id"])[0][1] == "COMPLETED"


def test_a_run_is_stopped_and_resumed_from_a_laptop(user: User, far: FarCluster) -> None:
    long = ("distillation.max_num_steps=400", "distillation.val_period=0", "checkpointing.save_period=2")
    sent = json.loads(good(far(*submission(user, *long))))
    user.wait(sent["run"], lambda state: (state["metrics"]["step"] or 0) >= 3, 240)
    stopped = far("cancel", "--host", "far", sent["run"], timeout_s=200)
    assert "stopped" in good(stopped) + stopped.stderr
    state = json.loads(good(far("watch", "--host", "far", "--once", "--json", sent["run"])))
    assert state["state"] == "cancelled"
    again = json.loads(good(far("resume", "--host", "far", sent["run"], "--json")))
    assert again["resumes"]["step"] >= 2
    assert len(again["jobs"]) == 1
    jobs = json.loads((Path(sent["dir"]) / "jobs.json").read_text())["jobs"]
    assert [item["link"] for item in jobs] == [1, 2]
    good(far("cancel", "--host", "far", sent["run"], timeout_s=200))


def test_a_connection_that_is_cut_submits_one_job_or_says_so(
    user: User, far: FarCluster, tmp_path: Path
) -> None:
    def relayed(cut_after: int) -> subprocess.CompletedProcess[str]:
        directory = tmp_path / f"laptop-{cut_after}"
        directory.mkdir()
        argv = [
            *far.wrapper, sys.executable, "-m", "tests.ssh.relayed_command", str(far.server.port),
            str(cut_after), user.cluster.settings.user, str(far.server.directory), str(directory),
            *submission(user, "--sbatch-arg=--hold", nodes=1),
        ]  # fmt: skip
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)

    whole = relayed(0)
    passed, _, printed = good(whole).partition("\n")
    assert json.loads(printed)["jobs"]
    submitted = {json.loads(printed)["run"]}
    total = int(passed)
    # The run's files are written and sbatch runs in the last third of what passes.
    for cut in range(20):
        done = relayed(int(total * (0.62 + 0.38 * cut / 20)))
        assert "Traceback" not in done.stderr, done.stderr
        if done.returncode == 0:
            submitted.add(json.loads(done.stdout.partition("\n")[2])["run"])
    jobs = user.jobs()
    directories = [path for path in user.runs.iterdir() if (path / "run.json").exists()]
    with_jobs = {
        path.name: json.loads((path / "jobs.json").read_text())["jobs"]
        for path in directories
        if (path / "jobs.json").exists()
    }
    for path in directories:
        # squeue prints number, working directory and comment; a run's job starts in the run's directory.
        mine = [line.split("|")[0] for line in jobs if line.split("|")[1] == str(path)]
        assert len(mine) <= 1, (path, mine)
        recorded = [item["id"] for item in with_jobs.get(path.name, [])]
        if path.name in submitted:
            assert (len(mine), recorded) == (1, mine)
        assert not list(path.glob(".jobs.json.*")), path
    assert len(jobs) >= len(submitted)
