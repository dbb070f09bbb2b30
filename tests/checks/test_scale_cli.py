"""`scale` as its users run it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import distill_tui
from launcher.overview.measured_memory import MeasuredEstimate
from launcher.runs import RecipeRef, Run, RunSpec, RunStore
from launcher.saved_summary import save_summary
from launcher.transports.local import LocalTransport
from recipes.inheritance import resolve
from tests.checks.world import World
from tui.cli import main

APART = "policy.generation.colocated"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HF_HOME", "/nonexistent")
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    monkeypatch.setenv("NEMO_RL_ROOT", str(tmp_path))
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return World.at(tmp_path)


def run(*arguments: str | Path) -> int:
    return main(distill_tui.__version__, [str(argument) for argument in arguments])


def apart(world: World) -> Path:
    """Make the recipe generate apart, on two of the node's four GPUs."""
    recipe = world.root / "recipe.yaml"
    values = (f"{APART}.enabled", "false", f"{APART}.resources.gpus_per_node", "2",
              "teacher.dtensor_cfg.tensor_parallel_size", "2")  # fmt: skip
    assert run("recipe", "set", recipe, *values) == 0
    return recipe


def test_generation_apart_on_one_node_is_restated_for_two(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = apart(world)
    assert run("check", recipe, "cluster.num_nodes=2") == 1
    before = recipe.read_text()
    capsys.readouterr()
    assert run("scale", recipe, "--nodes", "2", "--dry-run") == 0
    out, said = capsys.readouterr()
    assert recipe.read_text() == before
    assert "+cluster: {num_nodes: 2, gpus_per_node: 4" in out
    assert "1 x 4 -> 2 x 4 GPUs" in said
    assert "estimated: student-train needs" in said
    assert run("scale", recipe, "--nodes", "2") == 0
    effective = resolve(recipe, ())
    resources = effective.get(f"{APART}.resources")
    assert (resources["num_nodes"], resources["gpus_per_node"]) == (1, 4)
    assert effective.get("cluster.num_nodes") == 2
    assert run("check", recipe) == 0


def test_a_size_that_would_fail_changes_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = apart(world)
    before = recipe.read_text()
    assert run("scale", recipe, "--nodes", "1", "--gpus-per-node", "1") == 1
    assert "nothing was changed" in capsys.readouterr().err
    assert recipe.read_text() == before
    assert run("scale", recipe, "--nodes", "0") == 2
    assert run("scale", world.root / "none.yaml", "--nodes", "2") == 2


def test_prompts_per_step_as_asked(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = world.root / "recipe.yaml"
    assert run("scale", recipe, "--nodes", "2", "--prompts-per-step", "128", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert {edit["key"]: edit["to"] for edit in printed["edits"]} == {
        "cluster.num_nodes": 2,
        "distillation.num_prompts_per_step": 128,
    }
    assert resolve(recipe, ()).get("distillation.num_prompts_per_step") == 128


def smoke(world: World, kind: str = "smoke") -> Run:
    """Make a run that has measured 12 s a step and 30 GiB."""
    store = RunStore(LocalTransport(), str(world.root / "runs"))
    spec = RunSpec.model_validate(
        {
            "id": "a-smoke", "name": "a", "kind": kind, "created": datetime(2026, 1, 1, tzinfo=UTC),
            "user": "u", "host": "h", "recipe": RecipeRef(source="x"), "cluster": "slurm", "nodes": 1,
            "gpus_per_node": 4, "schema": 1,
        }
    )  # fmt: skip
    made = store.create(spec, {})
    metrics = {"step_time_s": [20.0, 12.0, 12.0], "step_time_recent_s": 12.0}
    save_summary(store.transport, made, {"schema": 1, "metrics": metrics})
    logs = Path(made.logs, "7-logs")
    logs.mkdir()
    (logs / "gpu-n1.csv").write_text(
        "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB]\n"
        "2026-01-01T00:00:00+0000,0,99,30720,40960\n2026-01-01T00:00:00+0000,1,99,[N/A],40960\n"
        "2026-01-01T00:00:15+0000,0,99,20480,40960\n2026-01-01T00:00:15+00"
    )
    return made


def test_what_a_smoke_run_measured_is_told(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    smoke(world)
    assert run("scale", world.root / "recipe.yaml", "--nodes", "4", "--run", "a-smoke", "--dry-run") == 0
    said = capsys.readouterr().err
    assert "a-smoke on 1 x 4 GPUs: at most 30.0 of 40.0 GiB in use" in said
    assert "12.0 s per step (3 steps); at this size 3.0 to 12.0 s" in said
    assert "100 steps: 5 min to 20 min" in said


def test_a_measured_peak_corrects_the_estimate() -> None:
    beside = MeasuredEstimate(estimated_gib=60.0, measured_gib=45.0)
    assert beside.share == 0.75
    assert beside.corrected_gib(40.0) == 30.0


def test_the_latest_run_of_the_recipe_corrects_estimates(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    made = smoke(world)
    spec = Path(made.directory, "run.json")
    spec.write_text(spec.read_text().replace('"source": "x"', f'"source": "{world.root}/recipe.yaml"'))
    spec.write_text(json.dumps(json.loads(spec.read_text()) | {"estimated_gib": 20.0}))
    gpu_memory = {"peak_gib": 30.0, "total_gib": 40.0}
    summary = {"schema": 1, "state": "completed", "metrics": {}, "gpu_memory": gpu_memory}
    save_summary(LocalTransport(), made, summary)
    recipe = world.root / "recipe.yaml"
    assert run("scale", recipe, "--nodes", "4", "--dry-run") == 0
    assert "a-smoke: 30.0 GiB where 20.0 GiB were estimated (150%)" in capsys.readouterr().err
    assert run("memory", recipe, "--gpu-memory", "1000", "--json", "--no-search") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["measured_beside_estimate"] == {
        "estimated_gib": 20.0, "measured_gib": 30.0, "run": "a-smoke",
    }  # fmt: skip
    (needed,) = (phase["needed_gib"] for phase in printed["phases"] if phase["id"] == "student-train")
    assert run("memory", recipe, "--gpu-memory", f"{needed * 1.2:.0f}", "--no-search") == 1
    said = capsys.readouterr().out
    assert "a-smoke: 30.0 GiB where 20.0 GiB were estimated" in said
    assert f"of {needed * 1.2:.0f} GiB: DOES NOT FIT" in said


def test_a_rehearsal_has_measured_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    smoke(world, "rehearsal")
    assert run("scale", world.root / "recipe.yaml", "--nodes", "4", "--run", "a-smoke", "--dry-run") == 2
    assert "stand-ins" in capsys.readouterr().err
