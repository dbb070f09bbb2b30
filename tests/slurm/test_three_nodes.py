"""A rehearsal on all nodes of the test cluster, to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.test_submit import MILESTONES
from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(300)]


def test_a_rehearsal_on_three_nodes(user: User) -> None:
    submitted = user.submit(nodes=3)
    watched = user("watch", "--plain", submitted["run"])
    assert watched.returncode == 0, watched.stdout + watched.stderr
    state = user.state(submitted["run"])
    (job,) = submitted["jobs"]
    assert (state["state"], state["findings"]) == ("completed", [])
    assert {item["id"]: Path(item["log"]).name for item in state["milestones"]} == MILESTONES
    assert {Path(item["log"]).parent.name for item in state["milestones"]} == {f"{job['id']}-logs"}
    losses = state["metrics"]["loss"]
    assert len(losses) == 30
    assert sum(losses[-3:]) < sum(losses[:3]) / 2
    workers = {Path(log["name"]).name for log in state["logs"] if log["role"] == "worker"}
    assert workers == {"ray-worker-1.log", "ray-worker-2.log"}
    ((_, *told, gpus),) = user.accounted(job["id"], columns="ExitCode,NNodes,AllocTRES")
    assert told == ["COMPLETED", "0:0", "3"]
    assert "gres/gpu=12" in gpus
    assert ray_processes(user.cluster) == {}
