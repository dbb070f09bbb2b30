"""The driver that a recipe is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recipes.checks import Checker, Inputs
from recipes.drivers import choose_driver, driver_scripts, recipe_kind
from recipes.inheritance import Resolver
from tests.checks.releases import RELEASES, release, stock_recipes

ON_POLICY: dict[str, Any] = {"policy": {}, "teacher": {}, "distillation": {}}
PLAIN, OLD = "examples/run_distillation.py", "examples/run_distillation_math.py"
GYM = "examples/nemo_gym/run_distillation_nemo_gym.py"
CROSS = "examples/run_xtoken_off_policy_distillation.py"
OWN = "examples/run_distillation_opsd.py"
ALL = (PLAIN, GYM, CROSS, "examples/run_grpo.py", "examples/run_eval.py")


@pytest.mark.parametrize(
    ("values", "scripts", "script", "kind"),
    [
        (ON_POLICY, ALL, PLAIN, "distillation"),
        (ON_POLICY, (OLD,), OLD, "distillation"),
        (ON_POLICY, (OWN, CROSS), OWN, "distillation"),
        ({**ON_POLICY, "env": {"should_use_nemo_gym": True}}, ALL, GYM, "nemo-gym"),
        ({**ON_POLICY, "env": {"should_use_nemo_gym": False}}, ALL, PLAIN, "distillation"),
        ({**ON_POLICY, "env": {"should_use_nemo_gym": True}}, (PLAIN,), None, "nemo-gym"),
        ({**ON_POLICY, "teachers": []}, ALL, CROSS, "cross-tokenizer"),
        ({**ON_POLICY, "loss_fn": {"gold_loss": False}}, ALL, CROSS, "cross-tokenizer"),
        ({**ON_POLICY, "teachers": []}, (PLAIN,), None, "cross-tokenizer"),
        ({**ON_POLICY, "distillation": {"off_policy": True}}, ALL, CROSS, "off-policy"),
        ({"off_policy_distillation": {}, "policy": {}}, ("examples/run_off_policy_distillation.py",),
         "examples/run_off_policy_distillation.py", "off-policy"),
        ({"grpo": {}, "policy": {}}, ALL, "examples/run_grpo.py", "other"),
        ({"grpo": {}}, ("examples/run_grpo_math.py",), "examples/run_grpo_math.py", "other"),
        ({"sft": {}}, ALL, None, "other"),
        ({}, ALL, None, "other"),
        ({"env": None, "loss_fn": [], "distillation": 1, "teacher": {}}, ALL, PLAIN, "distillation"),
    ],
)  # fmt: skip
def test_the_sections_decide(
    values: dict[str, Any], scripts: tuple[str, ...], script: str | None, kind: str
) -> None:
    driver = choose_driver(values, scripts)
    assert (driver.script, driver.kind) == (script, kind)
    assert driver.reason


@pytest.mark.parametrize("name", RELEASES)
def test_stock_recipes_have_their_driver(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    root = release(shared, tmp_path_factory, name)
    scripts = driver_scripts(root)
    resolver = Resolver()
    for path in stock_recipes(root):
        driver = choose_driver(resolver.resolve(path, []).values, scripts)
        expected = CROSS if "xtoken" in path.name else GYM if "nano3" in path.name else scripts_of(scripts)
        assert driver.script == expected, path


def scripts_of(scripts: tuple[str, ...]) -> str:
    return PLAIN if PLAIN in scripts else OLD


def test_nemo_gyms_own_recipe_has_nemo_gyms_driver(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = release(shared, tmp_path_factory, "main-7ea279ab")
    recipe = Resolver().resolve(root / "examples/nemo_gym/distillation_qwen3_0_6b.yaml", [])
    assert choose_driver(recipe.values, driver_scripts(root)).script == GYM


def test_a_recipe_of_another_kind_is_checked_by_what_holds_for_it(tmp_path: Path) -> None:
    recipe = tmp_path / "cross.yaml"
    recipe.write_text(
        "teachers: []\ndistillation: {max_num_steps: 0}\npolicy: {model_name: a}\n"
        "checkpointing: {checkpoint_must_save_by: soon}\n"
    )
    report = Checker(Inputs.of(environment={"HF_HOME": "/nonexistent"})).check(recipe)
    (driver,) = report.of("C70")
    assert driver.outcome == "unknown"
    assert "cross-tokenizer" in driver.message
    assert {result.id for result in report.failing} >= {"C18"}
    assert not report.of("C80")


def test_another_algorithms_recipe_is_told_its_driver(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "run_grpo.py").touch()
    recipe = tmp_path / "grpo.yaml"
    recipe.write_text("grpo: {x: 1}\npolicy: {model_name: a}\n")
    (result,) = Checker(Inputs.of(environment={}, checkout=tmp_path)).check(recipe).results
    assert (result.id, result.outcome) == ("C70", "unknown")
    assert "examples/run_grpo.py" in result.message


def test_the_kind_says_why() -> None:
    assert recipe_kind({"teachers": []}) == ("cross-tokenizer", "the recipe has a list of teachers")
