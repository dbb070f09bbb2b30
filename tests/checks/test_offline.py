"""What a node without internet needs, found or missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recipes.checks import ClusterRequest, Context, Inputs, skip_id
from recipes.checks.offline import needs, package_cache, worker_environments
from recipes.inheritance import resolve
from tests.checks.test_models import cache
from tests.checks.world import WORKERS, World

OVERRIDES = [
    "policy.model_name=Qwen/Qwen3-1.7B",
    "policy.tokenizer.name=Qwen/Qwen3-1.7B",
    "teacher.model_name=Qwen/Qwen3-4B",
    "teacher.tokenizer.name=Qwen/Qwen3-4B",
    "data.train.dataset_name=DeepScaler",
    "~data.train.data_path",
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.at(tmp_path)


def context(world: World, home: Path, overrides: list[str]) -> Context:
    inputs = Inputs.of(environment={"HF_HOME": str(home)}, checkout=world.root)
    return Context(resolve(world.root / "recipe.yaml", overrides), inputs)


def test_models_and_data_are_found_in_the_cache_or_fetched(world: World, tmp_path: Path) -> None:
    home = tmp_path / "hf"
    missing = {need.name: need for need in needs(context(world, home, OVERRIDES)) if not need.present}
    assert set(missing) == {"the model Qwen/Qwen3-1.7B", "the model Qwen/Qwen3-4B", "the data set DeepScaler"}
    assert missing["the model Qwen/Qwen3-4B"].command == "hf download Qwen/Qwen3-4B"
    data = "hf download --repo-type dataset agentica-org/DeepScaleR-Preview-Dataset"
    assert missing["the data set DeepScaler"].command == data
    for name in ("Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B"):
        cache(home, name, {"config.json": {}, "model.safetensors": "x", "tokenizer.json": {}})
    cache(home, "agentica-org/DeepScaleR-Preview-Dataset", {"x.parquet": "x"}, kind="datasets")
    assert all(need.present for need in needs(context(world, home, OVERRIDES)))


def test_weights_that_were_not_fetched_are_missing(world: World, tmp_path: Path) -> None:
    home = tmp_path / "hf"
    cache(home, "Qwen/Qwen3-1.7B", {"config.json": {}})
    found = {need.name: need.present for need in needs(context(world, home, OVERRIDES))}
    assert found["the model Qwen/Qwen3-1.7B"] is False


def test_missing_files_fail_only_without_internet(world: World) -> None:
    online = replace(world, environment={"HF_HOME": "/nonexistent"}, request=ClusterRequest())
    asked = online.check(OVERRIDES)
    assert asked.ok
    assert {result.outcome for result in asked.of("C66")} == {"warn"}
    offline = replace(online, request=ClusterRequest(offline=True)).check(OVERRIDES)
    assert {result.id for result in offline.failing} == {"C66"}


def test_worker_environments_are_found_missing_or_stuck(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "fresh"
    asked = context(world, tmp_path, [])
    missing = list(worker_environments(asked, folder))
    assert [need.present for need in missing] == [False, False]
    assert "prefetch_venvs dtensor" in missing[0].command
    stuck = folder / "nemo_rl.models.policy.workers.dtensor_policy_worker_v2.DTensorPolicyWorkerV2"
    stuck.mkdir(parents=True)
    (stuck / "STARTED_ENV_BUILDER").touch()
    (first, _) = worker_environments(asked, folder)
    assert "interrupted" in first.name
    assert first.command.startswith("rm ")
    (stuck / "bin").mkdir()
    (stuck / "bin" / "python").touch()
    (first, _) = worker_environments(asked, folder)
    assert first.present is True


def test_an_environment_whose_building_was_interrupted_fails(world: World) -> None:
    python = world.root / "venvs" / WORKERS[0] / "bin" / "python"
    python.unlink()
    assert {result.outcome for result in world.check().of("C66")} == {"warn"}
    (python.parents[1] / "STARTED_ENV_BUILDER").touch()
    report = world.check()
    assert [result.id for result in report.blocking()] == ["C66"]
    assert report.blocking({"C66"}) == ()


def test_what_is_missing_could_be_built_from_a_filled_cache(world: World, tmp_path: Path) -> None:
    asked = context(world, tmp_path, [])
    assert package_cache(asked, worker_environments(asked, world.root / "venvs")) is None
    fresh = tmp_path / "fresh"
    unknown = package_cache(asked, worker_environments(asked, fresh))
    assert unknown is not None
    assert unknown.present is None
    for variables, place in (
        ({"HOME": str(tmp_path)}, tmp_path / ".cache" / "uv"),
        ({"HOME": "/h", "XDG_CACHE_HOME": str(tmp_path / "xdg")}, tmp_path / "xdg" / "uv"),
        ({"HOME": "/h", "UV_CACHE_DIR": str(tmp_path / "uv")}, tmp_path / "uv"),
    ):
        inputs = replace(asked.inputs, environment=variables)
        one = Context(asked.recipe, inputs)
        empty = package_cache(one, worker_environments(one, fresh))
        assert empty is not None
        assert (empty.present, empty.path) == (False, str(place))
        assert "prefetch_venvs" in empty.command
        (place / "archive-v0" / "torch").mkdir(parents=True)
        filled = package_cache(one, worker_environments(one, fresh))
        assert filled is not None
        assert filled.present is True


def test_an_empty_cache_is_said_where_something_must_be_built(world: World) -> None:
    (world.root / "venvs" / WORKERS[0] / "bin" / "python").unlink()
    home = world.root / "home"
    said = replace(world, environment={**world.environment, "HOME": str(home)}).check().of("C66")
    assert [result.outcome for result in said] == ["warn", "warn"]
    assert "is empty" in said[1].message
    (home / ".cache" / "uv" / "archive-v0" / "torch").mkdir(parents=True)
    assert len(replace(world, environment={**world.environment, "HOME": str(home)}).check().of("C66")) == 1


OFFLINE = ClusterRequest(offline=True)


@pytest.mark.parametrize(
    ("request_", "variables", "environments", "packages", "outcome"),
    [
        (OFFLINE, {}, "missing", "empty", "fail"),
        (OFFLINE, {}, "missing", "no directory", "fail"),
        (ClusterRequest(), {"UV_OFFLINE": "1"}, "missing", "empty", "fail"),
        (OFFLINE, {}, "missing", "filled", "warn"),  # it may hold what is needed, or not
        (OFFLINE, {}, "complete", "empty", ""),
        (ClusterRequest(), {"HF_HUB_OFFLINE": ""}, "missing", "empty", ""),  # built from the internet
        (ClusterRequest(), {"HF_HUB_OFFLINE": "1"}, "missing", "empty", "warn"),  # says nothing of packages
        (OFFLINE, {"NEMO_RL_PY_EXECUTABLES_SYSTEM": "1"}, "missing", "empty", "fail"),  # of the student's
    ],
)
def test_missing_worker_environments_fail_where_they_can_never_be_built(
    world: World,
    tmp_path: Path,
    request_: ClusterRequest,
    variables: dict[str, str],
    environments: str,
    packages: str,
    outcome: str,
) -> None:
    cache_directory = tmp_path / "uv"
    if packages != "no directory":
        cache_directory.mkdir()
    if packages == "filled":
        (cache_directory / "archive-v0" / "torch").mkdir(parents=True)
    folder = world.root / "venvs" if environments == "complete" else tmp_path / "none"
    environment = {
        **world.environment,
        "UV_CACHE_DIR": str(cache_directory),
        "NEMO_RL_VENV_DIR": str(folder),
        **variables,
    }
    report = replace(world, environment=environment, request=request_).check()
    results = [result for result in report.of("C66") if result.outcome in ("fail", "warn")]
    assert {result.outcome for result in results} == ({outcome} if outcome else set())
    if outcome == "fail":
        assert all("prefetch_venvs" in result.message for result in results)
        assert "C66:policy.dtensor_cfg.enabled" in {skip_id(result) for result in results}
