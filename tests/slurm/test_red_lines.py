"""Submissions that would waste nodes, or could never work, on the test cluster."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.slurm.jsc_shell import RECIPE, JscShell
from tests.slurm.user import RECIPE as REHEARSAL
from tests.slurm.user import SHORT, User

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]
MIG = "a100_1g.5gb"


@pytest.mark.ray
def test_a_node_for_the_head_alone_is_no_node_that_works(user: User) -> None:
    submitted = user.submit(*SHORT, nodes=2, RAY_BARE_DEDICATED_HEAD="1")
    directory = user.runs / submitted["run"]
    assert yaml.safe_load((directory / "effective.yaml").read_text())["cluster"]["num_nodes"] == 1
    state = user.wait(submitted["run"], lambda state: state["state"] in ("completed", "failed"), 200)
    assert (state["state"], state["metrics"]["step"]) == ("completed", 6)
    launcher = (directory / "logs" / f"{submitted['jobs'][0]['id']}-logs" / "launcher.log").read_text()
    assert "Number of actors online: 4/4" in launcher  # those of the other node


def test_a_node_for_the_head_alone_and_none_to_work_is_refused(user: User) -> None:
    done = user(
        "submit", REHEARSAL, "--rehearse", "--nodes", "1", "--time", "10", "--account", "distill",
        RAY_BARE_DEDICATED_HEAD="1",
    )  # fmt: skip
    assert done.returncode == 2
    assert "keeps one node for Ray's head, and none is left to work" in done.stderr
    assert user.jobs() == []


def test_a_model_over_mig_slices_is_refused(shell: JscShell) -> None:
    """The cluster's GPUs are shown as slices by a command that stands before Slurm's own."""
    folder = shell.project / "bin"
    script = f'#!/bin/bash\n/usr/bin/sinfo "$@" | sed s/gpu:a100:/gpu:{MIG}:/g\n'
    shell("bash", "-c", f"mkdir {folder} && cat >{folder}/sinfo && chmod +x {folder}/sinfo", input_=script)
    submit = f"PATH={folder}:$PATH exec distill-tui submit {RECIPE} --time 30m --nodes 2 --dry-run --json"
    refused = shell("bash", "-c", submit, check=False)
    assert refused.returncode == 2
    assert f"MIG slices ({MIG})" in refused.stderr
    assert "one model per slice" in refused.stderr
    single = " ".join(
        f"++{key}=1"
        for key in (
            "policy.dtensor_cfg.tensor_parallel_size", "policy.dtensor_cfg.context_parallel_size",
            "teacher.dtensor_cfg.tensor_parallel_size", "policy.generation.vllm_cfg.tensor_parallel_size",
        )
    )  # fmt: skip
    allowed = shell("bash", "-c", f"{submit} {single} --gpu-memory 5", check=False)
    assert json.loads(allowed.stdout)["plan"]["argv"][0] == "sbatch"
