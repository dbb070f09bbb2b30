"""A chain of jobs on the test cluster: one run over several time limits, with nobody watching."""

from __future__ import annotations

import time

import pytest

from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(1500)]


def test_a_chain_finishes_what_one_job_cannot(user: User) -> None:
    submitted = user.submit(
        *("distillation.max_num_steps=600", "distillation.max_num_epochs=200"),
        *("distillation.val_period=100", "checkpointing.save_period=50", "--chain", "9"),
        nodes=1,
        time_="2",
    )
    ids = [job["id"] for job in submitted["jobs"]]
    assert [job["link"] for job in submitted["jobs"]] == list(range(1, 10))
    end = time.monotonic() + 1200
    while user.cluster.as_user("squeue", "-h"):
        assert time.monotonic() < end
        time.sleep(5)
    states = {identity: state.split()[0] for identity, state in user.accounted(*ids)}
    ran = [identity for identity in ids if states.get(identity) in ("COMPLETED", "TIMEOUT")]
    assert len(ran) >= 3  # 600 steps take 5 minutes on two quiet cores
    assert states[ran[-1]] == "COMPLETED"
    assert all(states.get(identity, "CANCELLED") == "CANCELLED" for identity in ids[len(ran) :])
    state = user.state(submitted["run"])
    assert state["state"] == "completed", state["reason"]
    assert state["metrics"]["steps"] == list(range(1, 601))
    assert ray_processes(user.cluster) == {}
