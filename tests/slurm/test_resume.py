"""Going on with a run on the test cluster: two jobs, one run, one curve."""

from __future__ import annotations

import json

import pytest

from tests.slurm.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(600)]


def test_a_run_that_was_cancelled_goes_on_from_its_checkpoint(user: User) -> None:
    submitted = user.submit("distillation.max_num_steps=60", "checkpointing.save_period=5", nodes=1)
    run = submitted["run"]
    user.wait(run, lambda state: len(state["metrics"]["checkpoints"]) >= 2, 180)
    refused = user("resume", run)
    assert refused.returncode == 1
    assert "has not ended" in refused.stderr
    assert user("cancel", run).returncode == 0
    stopped = user.state(run)
    assert stopped["state"] == "cancelled"
    done = user("resume", run, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["resumes"]["step"] % 5 == 0
    assert printed["resumes"]["step"] <= stopped["metrics"]["step"]
    (job,) = printed["jobs"]
    assert job["link"] == 2
    state = user.wait(run, lambda state: state["state"] in ("completed", "failed"), 240)
    assert state["state"] == "completed", state["reason"]
    assert state["metrics"]["steps"] == list(range(1, 61))
    driver = (user.runs / run / "logs" / f"{job['id']}-logs" / "ray-driver.log").read_text()
    assert "Loading optimizer from" in driver
    (listed,) = json.loads(user("runs", "--json").stdout)["runs"]
    assert [item["id"] for item in listed["jobs"]] == [submitted["jobs"][0]["id"], job["id"]]
    finished = user("resume", run)
    assert finished.returncode == 1
    assert "all of its 60 steps" in finished.stderr
