"""The test cluster itself."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.cluster.cluster import Cluster

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]


def test_it_is_up_a_second_up_changes_nothing_and_jobs_run_on_all_nodes(cluster: Cluster) -> None:
    begun = time.monotonic()
    before = cluster.login.pid
    cluster.up()
    assert time.monotonic() - begun < 10
    assert cluster.login.pid == before
    said = cluster.as_user("srun", "-A", "distill", "-N3", "--gres=gpu:4", "bash", "-c",
                           'echo "$(hostname -s) $CUDA_VISIBLE_DEVICES $(ls /tmp | wc -l)"')  # fmt: skip
    assert sorted(said.splitlines()) == [f"node0{number} 0,1,2,3 0" for number in (1, 2, 3)]


def test_up_after_everything_was_killed(cluster: Cluster) -> None:
    cluster.as_user("sbatch", "-A", "distill", "-N2", "--wrap", "sleep 500")
    for machine in (*cluster.nodes, cluster.login):
        assert machine.pid is not None
        os.kill(machine.pid, signal.SIGKILL)
    cluster.up()
    assert cluster.as_user("squeue", "-h") == ""
    assert "ok" in cluster.as_user("srun", "-A", "distill", "-p", "booster", "echo", "ok")
