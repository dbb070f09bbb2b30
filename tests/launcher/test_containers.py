"""NeMo-RL's own `ray.sub` as launcher: what is planned, and what its script does without Slurm and Pyxis."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.clusters.inventory import Gpus, Mix
from launcher.errors import InputError
from launcher.request import SubmitRequest
from launcher.runs import load
from launcher.sites import Profile
from launcher.submit.submit import SubmissionPlan, send
from tests.launcher.ordering import BOOSTER, DETECTION, SITE, Desk

IMAGE = "nvcr.io#nvidia/nemo-rl:v0.6"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "ray.sub").write_text('printf "%s" "$COMMAND" >"$BASE_LOG_DIR/command"\nbash -c "$COMMAND"\n')
    return Desk.at(tmp_path)


def plan_of(desk: Desk, **changes: object) -> SubmissionPlan:
    request = SubmitRequest(desk.recipe, 1, "2:00:00", launcher="ray.sub", container=IMAGE)
    return desk.plan_of(replace(request, **changes))  # type: ignore[arg-type]


def test_the_plan(desk: Desk) -> None:
    plan = plan_of(desk, mounts=("/data:/data:ro",))
    checkout, run = str(desk.world.root), str(Path(desk.store.root, plan.submission.spec.id))
    (launch_plan,) = plan.submission.plans
    assert launch_plan.cwd == checkout
    assert launch_plan.argv[-1] == f"{run}/job.sh"
    assert {f"--chdir={checkout}", "--nodes=1", "--gres=gpu:4", "--exclusive"} <= set(launch_plan.argv)
    expected = {
        "CONTAINER": IMAGE,
        "MOUNTS": f"{checkout}:{checkout},{run}:{run},/data:/data:ro",
        "GPUS_PER_NODE": "4",
        "BASE_LOG_DIR": f"{run}/logs",
        "RUN_DIR": run,
    }
    assert {name: launch_plan.environment[name] for name in expected} == expected
    assert not [name for name in launch_plan.environment if name.startswith("RAY_BARE_")]
    assert launch_plan.environment["COMMAND"].startswith(
        f"uv run python examples/run_distillation.py --config {run}/effective.yaml"
    )
    assert {"ray.sub", "job.sh", "chain.sh"} <= set(plan.submission.files)
    assert "ray_bare.sub" not in plan.submission.files
    assert load(desk.transport, send(plan, desk.store, desk.environment).directory).spec.launcher == "ray.sub"


def test_keys_are_read_in_the_container_from_the_mounted_run(desk: Desk) -> None:
    desk.environment["HF_TOKEN"] = "hf_canary"
    (plan,) = plan_of(desk).submission.plans
    assert "hf_canary" not in str(plan.as_json())
    run = Path(plan.argv[-1]).parent
    assert plan.environment["COMMAND"].startswith(f". {run}/secrets.env && exec uv run")


def test_the_image_is_the_flags_else_the_profiles_else_the_sites(desk: Desk) -> None:
    site = replace(SITE, container="site", mounts=("/s:/s",), profiles={"a": Profile(container="profile")})
    known = replace(desk, detection=replace(DETECTION, site=site))
    assert plan_of(known, profile="a").submission.plans[0].environment["CONTAINER"] == IMAGE
    environment = plan_of(known, profile="a", container=None).submission.plans[0].environment
    assert environment["CONTAINER"] == "profile"
    assert environment["MOUNTS"].endswith(",/s:/s")
    assert plan_of(known, container=None).submission.plans[0].environment["CONTAINER"] == "site"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"container": None}, "no container image"),
        ({"container": "a b"}, "has a blank"),
        ({"mounts": ("data",)}, "invalid mount"),
        ({"mounts": ("/a,b:/c",)}, "invalid mount"),
        ({"kind": "rehearsal"}, "without a container"),
    ],
)
def test_what_cannot_be(desk: Desk, changes: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        plan_of(desk, **changes)


def test_a_checkout_without_it_and_a_path_that_cannot_be_mounted(desk: Desk, tmp_path: Path) -> None:
    (desk.world.root / "ray.sub").unlink()
    with pytest.raises(InputError, match=r"no ray\.sub"):
        plan_of(desk)
    place = tmp_path / "a place"
    place.mkdir()
    (place / "ray.sub").write_text("")
    with pytest.raises(InputError, match="cannot mount"):
        plan_of(Desk.at(place))


def test_what_the_container_does_not_see_and_what_ray_sub_cannot_count_is_told(desk: Desk) -> None:
    notes = plan_of(desk, overrides=("checkpointing.checkpoint_dir=/elsewhere/c",)).notes
    assert any("/elsewhere/c is in no mount" in note for note in notes)
    assert any("all 4 GPUs" in note for note in plan_of(desk, gpus_per_node=2).notes)
    mixed = replace(BOOSTER, mix=(*BOOSTER.mix, Mix(Gpus(3, "a100"), 1)))
    odd = replace(desk, detection=replace(DETECTION, partitions=(mixed,)))
    assert any("different GPUs" in note for note in plan_of(odd).notes)


def test_the_time_left_is_found_out_where_there_is_a_squeue(desk: Desk) -> None:
    """The driver's command runs without one, as in a container."""
    run = send(plan_of(desk), desk.store, desk.environment)
    plan = plan_of(desk).submission.plans[0]
    tools = desk.world.root / "tools"
    tools.mkdir()
    for name, text in (("squeue", "echo 1:00:00"), ("uv", 'printf "%s\\n" "$@"')):
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    # Within the launcher there is no squeue any more.
    script = Path(run.directory, "ray.sub")
    script.write_text(f'rm "{tools}/squeue"\n{script.read_text()}')
    environment = {**plan.environment, "PATH": f"{tools}:/usr/bin:/bin", "SLURM_JOB_ID": "7"}
    environment |= {"RUN_DIR": run.directory, "BASE_LOG_DIR": run.logs}
    done = subprocess.run(
        ["bash", f"{run.directory}/job.sh"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    value = done.stdout.splitlines()[-1]
    detection = re.search(r"checkpointing\.checkpoint_must_save_by='00:00:(\d\d):(\d\d)'", value)
    assert detection is not None, value
    # The hour less what `chain.sh` keeps back for set-up, saving and a step, and the time it took itself.
    # Now is taken in whole seconds, twice.
    assert 33 * 60 < int(detection[1]) * 60 + int(detection[2]) <= 35 * 60 + 1, value
