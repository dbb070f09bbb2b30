"""A cluster that the shell names, and what it answers sbatch with, on a real Slurm."""

from __future__ import annotations

import json

import pytest

from tests.cluster.cluster import Cluster
from tests.slurm.user import RECIPE, User

pytestmark = pytest.mark.slurm


def test_a_named_cluster_and_the_shells_answers(cluster: Cluster) -> None:
    user = User.of(cluster, "named")
    name = cluster.settings.name
    shell = {
        "SLURM_CLUSTERS": name,
        "SBATCH_ACCOUNT": "distill",
        "SBATCH_PARTITION": "low",
        "SBATCH_TIMELIMIT": "10",
        "SQUEUE_FORMAT": "%P",
    }
    try:
        done = user("submit", RECIPE, "--rehearse", "--nodes", "1", "--profile", "light", "--json", **shell)
        assert done.returncode == 0, done.stderr
        printed = json.loads(done.stdout)
        argv = printed["plan"]["argv"]
        assert {f"--clusters={name}", "--account=distill", "--partition=low", "--time=00:10:00"} <= set(argv)
        run = printed["run"]
        # From a shell that names no cluster, the run is followed all the same.
        state = user.wait(run, lambda state: state["state"] in ("completed", "failed"), 120)
        assert state["state"] == "completed", state
        (job,) = printed["jobs"]
        assert user.accounted(job["id"], columns="Partition,Account")[0][2:] == ["low", "distill"]
    finally:
        user.clean_up()
