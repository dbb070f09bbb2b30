"""How runs ended, on the test cluster: saved in time, resumed, cancelled; and jobs of no run."""

from __future__ import annotations

import json
import time

import pytest

from tests.driver_text import DriverText
from tests.slurm.following import LONG
from tests.slurm.test_foreign import look, submit
from tests.slurm.tmux import Tmux
from tests.slurm.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(420)]


@pytest.mark.ray
def test_a_run_that_saved_and_stopped_is_resumed_and_then_cancelled(user: User) -> None:
    submitted = user.submit(*LONG, "checkpointing.checkpoint_must_save_by=00:00:00:08", nodes=1)
    run, (first,) = submitted["run"], submitted["jobs"]
    state = user.wait(run, lambda state: state["state"] in ("stopped", "completed", "failed"), 180)
    step = state["metrics"]["step"]
    assert state["state"] == "stopped", state["reason"]
    assert state["reason"].startswith(f"stopped at step {step} of 100000 to save before its time limit")
    assert f"`distill-tui resume {run}`" in state["reason"]
    assert state["findings"] == []
    assert f"{run:44} stopped" in user("runs").stdout
    assert f"# {run}: stopped" in user("report", run).stdout

    done = user("resume", run, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["state"], printed["resumes"]["step"]) == ("stopped", step)
    (second,) = printed["jobs"]
    user.wait(run, lambda state: f"{second['id']}-logs" in str(state["milestones"]), 120)
    user.cluster.as_user("scancel", second["id"])
    state = user.wait(run, lambda state: state["state"] in ("cancelled", "failed", "stopped"), 120)
    assert state["state"] == "cancelled", state["reason"]
    assert [(one["job"], one["state"]) for one in state["attempts"]] == [
        (first["id"], "stopped"), (second["id"], "cancelled"),
    ]  # fmt: skip
    assert state["attempts"][0]["step"] == step
    told = user("watch", "--once", run).stdout
    assert f"job {first['id']}: stopped at step {step}" in told
    assert f"job {second['id']}" in told
    by_number = user("report", "--json", second["id"])
    assert json.loads(by_number.stdout)["run"] == run


def test_a_plain_job_is_watched_by_its_number_and_opened_in_the_app(user: User, tmux: Tmux) -> None:
    """Everything is in Slurm's output file, as sbatch writes it where nothing else is said."""
    text = DriverText([0.9, 0.7, 0.5], 10, save_at=(2,), end="").text()
    (user.place / "driver.txt").write_text(f"[INFO] [2/60] worker_units: 4/8\n{text}")
    job = submit(user, f"echo modules are loaded; cat {user.place}/driver.txt; sleep 300")
    name = f"slurm-{job}.out"
    end = time.monotonic() + 60
    while (state := look(user, job))["metrics"]["step"] != 3:
        assert time.monotonic() < end, state
        time.sleep(0.5)
    assert (state["run"], state["state"], state["metrics"]["max_steps"]) == (f"job {job}", "running", 10)
    assert [(log["name"], log["role"]) for log in state["logs"]] == [(name, "driver")]
    assert {item["log"] for item in state["milestones"]} == {name}
    assert state["metrics"]["loss"] == [0.9, 0.7, 0.5]
    refused = user("cancel", job)
    assert refused.returncode == 2
    assert f"`scancel {job}`" in refused.stderr
    tmux.start(user.argv("watch", "--no-mouse", job))
    tmux.see(f"job {job}", "running", "3/10", "0.5000", limit_s=60)
    user.cluster.as_user("scancel", job)
    tmux.see("cancelled", limit_s=90)


def test_a_job_that_only_its_exit_code_tells_of(user: User) -> None:
    """Exit code 0 is not the whole truth: the log shows fewer steps than it began with."""
    (user.place / "driver.txt").write_text(DriverText([0.9, 0.7], 30, end="").text())
    job = submit(user, f"cat {user.place}/driver.txt")
    end = time.monotonic() + 90
    while (state := look(user, job))["state"] in ("queued", "starting", "running"):
        assert time.monotonic() < end, state
        time.sleep(1)
    assert (state["job"]["word"], state["state"]) == ("COMPLETED", "failed")
    assert "at step 2 of 30" in state["reason"]
