"""`check`, `memory`, `models` as scripts use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import distill_tui
from tests.checks.world import World
from tui.cli import main


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HF_HOME", "/nonexistent")
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    monkeypatch.setenv("NEMO_RL_ROOT", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return World.at(tmp_path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any, str]:
    code = main(distill_tui.__version__, [str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out) if "--json" in arguments else out, err


def test_a_legal_recipe_exits_with_0(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = run(capsys, "check", world.root / "recipe.yaml", "--json")
    assert (code, found["ok"], found["schema"]) == (0, True, 1)
    assert {item["id"] for item in found["checks"]} == {f"C{number}" for number in range(1, 93)}


def test_a_failing_recipe_exits_with_1_and_names_lines_and_edits(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = world.root / "recipe.yaml"
    code, found, _ = run(capsys, "check", recipe, "--nodes", "1", "--gpus-per-node", "2", "--json")
    assert (code, found["ok"]) == (1, False)
    (item,) = [item for item in found["checks"] if item["outcome"] == "fail"]
    assert item["id"] == "C34"
    first = item["where"][0]
    line = recipe.read_text().splitlines()[first["line"] - 1]
    assert (first["file"], line.strip()) == (str(recipe), "tensor_parallel_size: 4")
    edit = item["fixes"][0]["edits"][0]
    assert edit == {"key": "teacher.dtensor_cfg.tensor_parallel_size", "from": 4, "to": 2}


def test_a_fix_changes_one_line_and_the_recipe_passes(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = world.root / "recipe.yaml"
    before = recipe.read_text()
    size = ("--nodes", "1", "--gpus-per-node", "2")
    code, _, err = run(capsys, "check", recipe, *size, "--fix", "C34", "--dry-run")
    assert (code, recipe.read_text()) == (0, before)
    assert "+    tensor_parallel_size: 2" in err
    code, out, _ = run(capsys, "check", recipe, *size, "--fix", "C34")
    assert code == 0, out
    changed = [
        pair
        for pair in zip(before.splitlines(), recipe.read_text().splitlines(), strict=True)
        if pair[0] != pair[1]
    ]
    assert changed == [("    tensor_parallel_size: 4", "    tensor_parallel_size: 2")]


def test_a_fix_that_an_override_undoes_is_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = world.root / "recipe.yaml"
    before = recipe.read_text()
    code, _, err = run(capsys, "check", recipe, "loss_fn.kl_type=revers", "--fix", "C16")
    assert (code, recipe.read_text()) == (2, before)
    assert "has the last word" in err


def test_a_removal_is_applied_through_the_document(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = world.root / "recipe.yaml"
    recipe.write_text(
        recipe.read_text().replace("  optimizer:\n    name", "  scheduler: null\n  optimizer:\n    name")
    )
    assert run(capsys, "check", recipe)[0] == 1
    assert run(capsys, "check", recipe, "--fix", "C68:1")[0] == 0
    assert "\n  scheduler:" not in recipe.read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", "absent.yaml"), 2),
        (("check", "{recipe}", "--fix", "C99"), 2),
        (("check", "{recipe}", "--fix", "C34"), 1),
        (("check", "{recipe}", "--nodes", "0"), 2),
        (("check", "{recipe}", "--time", "soon"), 2),
        (("check", "{recipe}", "--checkout", "/no/such"), 2),
        (("check", "{recipe}", "no.such=1"), 1),
        (("memory", "{recipe}", "no.such=1"), 2),
        (("memory", "absent.yaml"), 2),
        (("models", "nobody/nothing"), 1),
    ],
)
def test_refusals_are_explained(
    world: World, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int
) -> None:
    given = [argument.format(recipe=world.root / "recipe.yaml") for argument in arguments]
    got, out, err = run(capsys, *given)
    assert got == code
    assert "Traceback" not in out + err
    assert out + err


def test_memory_tells_phases_and_terms(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = world.root / "recipe.yaml"
    code, found, _ = run(capsys, "memory", recipe, "--gpu-memory", "40", "--json")
    assert (code, found["gpu_gib"]) == (0, 40.0)
    phases = {phase["id"]: phase for phase in found["phases"]}
    assert set(phases) == {"student-train", "teacher-score", "generation", "refit"}
    student = phases["student-train"]
    assert student["needed_gib"] > student["peak_allocated_gib"] > 0
    assert sum(term["gib"] for term in student["terms"]) == pytest.approx(student["needed_gib"], abs=0.02)
    code, found, _ = run(capsys, "memory", recipe, "--gpu-memory", "2", "--json")
    assert code == 1
    assert not all(phase["fits"] for phase in found["phases"])


def test_models_tells_where_its_facts_are_from(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, _ = run(capsys, "models", str(world.root / "models" / "student"), "--json")
    assert (code, found["source"], found["vocab"]) == (0, "config.json", 1000)
    code, found, _ = run(capsys, "models", "Qwen/Qwen3-8B", "--json")
    assert (code, found["source"], found["tied"]) == (0, "table", False)
