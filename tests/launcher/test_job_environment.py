"""What of the user's shell a submission gives to its job, and what it records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.request import SubmitRequest
from launcher.runs import load
from launcher.submit.submit import send
from tests.launcher.ordering import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path)


def request_for(desk: Desk, **changes: object) -> SubmitRequest:
    return replace(SubmitRequest(desk.recipe, 1, "2:00:00"), **changes)  # type: ignore[arg-type]


def with_shell(desk: Desk, **variables: str) -> Desk:
    return replace(desk, environment={**desk.environment, **variables})


def test_caches_of_the_shell_reach_the_job_and_what_does_not_is_said(desk: Desk) -> None:
    plan = with_shell(
        desk, HF_HOME="/p/hf", HF_DATASETS_CACHE="relative", NCCL_DEBUG="INFO", OPENAI_API_KEY="sk-1"
    ).plan_of(request_for(desk))
    environment = plan.submission.plans[0].environment
    assert (environment["HF_HOME"], environment["NCCL_DEBUG"]) == ("/p/hf", "INFO")
    assert "HF_DATASETS_CACHE" not in environment
    assert any("HF_DATASETS_CACHE" in note and "absolute" in note for note in plan.notes)
    assert any("OPENAI_API_KEY" in note and "--env" in note for note in plan.notes)
    assert "sk-1" not in json.dumps(plan.submission.plans[0].as_json())


def test_a_secret_by_name_goes_into_the_key_file_alone(desk: Desk) -> None:
    own = with_shell(desk, OPENAI_API_KEY="sk-12345678")
    plan = own.plan_of(request_for(own, env=("OPENAI_API_KEY",)))
    assert plan.options.keys["OPENAI_API_KEY"] == "sk-12345678"
    files = {name: data for name, data in plan.submission.files.items() if b"sk-12345678" in data}
    assert list(files) == ["secrets.env"]


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (("HF_TOKEN=hf_abc",), "must not be on a command line"),
        (("NOT_SET_ANYWHERE",), "no such variable"),
        (("A-B=1",), "invalid variable name"),
        (("=1",), "invalid variable name"),
        (("proxy=http://u:p@h/",), "must not be on a command line"),
    ],
)
def test_choices_that_are_refused(desk: Desk, env: tuple[str, ...], says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        desk.plan_of(request_for(desk, env=env))
    assert "hf_abc" not in str(caught.value)


def test_choices_are_remembered_for_the_site_and_can_be_taken_back(desk: Desk) -> None:
    first = request_for(desk, env=("MY_FLAG=7",), yes=True)
    send(desk.plan_of(first), desk.store, desk.environment)
    assert desk.plan_of(request_for(desk)).submission.plans[0].environment["MY_FLAG"] == "7"
    taken_back = desk.plan_of(request_for(desk, no_env=("MY_FLAG",)))
    assert "MY_FLAG" not in taken_back.submission.plans[0].environment


def test_the_record_of_a_run_makes_the_same_request_again(desk: Desk, tmp_path: Path) -> None:
    keys = tmp_path / "keys.env"
    keys.write_text("WANDB_API_KEY=abc\n")
    request = request_for(desk, env=("A=1",), env_file=keys, sbatch_args=("--switches=1",), yes=True)
    run = load(desk.store.transport, send(desk.plan_of(request), desk.store, desk.environment).directory)
    assert run.spec.request.env == ("A=1",)
    assert run.spec.request.env_file == str(keys)
    assert run.spec.request.sbatch_args == ("--switches=1",)
    assert "abc" not in Path(run.directory, "run.json").read_text()


def test_a_head_without_gpus_comes_on_top_of_the_recipes_nodes(desk: Desk) -> None:
    own = with_shell(desk, RAY_BARE_DEDICATED_HEAD="1")
    plan = own.plan_of(request_for(own, nodes=None, overrides=("cluster.num_nodes=2",)))
    assert (plan.options.nodes, plan.options.worker_nodes) == (3, 2)
    assert plan.submission.recipe.get("cluster.num_nodes") == 2
    two = own.plan_of(request_for(own, nodes=2))
    assert two.submission.recipe.get("cluster.num_nodes") == 1
    with pytest.raises(InputError, match="none is left to work"):
        own.plan_of(request_for(own, nodes=1))
