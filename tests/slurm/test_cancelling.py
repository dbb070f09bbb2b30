"""Cancelling on the test cluster: what is lost is said, and a checkpoint can be waited for."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.slurm.following import LONG
from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(300)]


def test_after_the_next_checkpoint(user: User) -> None:
    submitted = user.submit(*LONG, nodes=2)
    run = submitted["run"]
    user.wait(run, lambda state: any(m["id"] == "first-step" for m in state["milestones"]), 120)
    with subprocess.Popen(
        user.argv("cancel", run, "--after-checkpoint"), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline(), process.stderr.readline()]
        assert "is done" in said[0]
        assert "waiting for the checkpoint of step" in said[1]
        assert "ctrl-c stops waiting, not the run" in said[1]
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 1
    assert f"not cancelled: {run} is still running" in rest
    before = user.state(run)
    assert before["state"] == "running"
    done = user("cancel", run, "--after-checkpoint")
    assert done.returncode == 0, done.stderr
    state = user.state(run)
    assert (state["state"], state["reason"]) == ("cancelled", "cancelled by you")
    saved = {
        int(path.name.removeprefix("step_")) for path in (user.runs / run).rglob("step_*") if path.is_dir()
    }
    waited_for = max(state["metrics"]["checkpoints"])
    assert waited_for in saved, (saved, done.stderr)
    assert waited_for >= before["metrics"]["step"]
    assert f"the last checkpoint is of step {waited_for}" in done.stderr
    assert state["metrics"]["step"] - waited_for < 20
    assert ray_processes(user.cluster) == {}


def test_a_run_that_saves_nothing_is_not_waited_for(user: User) -> None:
    submitted = user.submit("checkpointing.enabled=false", "--sbatch-arg=--hold", nodes=1)
    done = user("cancel", submitted["run"], "--after-checkpoint")
    assert done.returncode == 2
    assert "saves no checkpoints" in done.stderr
    plain = user("cancel", submitted["run"])
    assert plain.returncode == 0
    assert "No training step is finished yet." in plain.stderr
    assert user.state(submitted["run"])["state"] == "cancelled"
