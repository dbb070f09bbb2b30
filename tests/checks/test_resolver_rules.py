"""Functions in interpolations: each release registers others, and a fork may have its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.checks.checkout import Checkout
from recipes.checks.core import Result
from recipes.checks.resolver_rules import called
from recipes.errors import RecipeError
from recipes.inheritance import Resolver
from tests.checks.releases import release
from tests.checks.world import World

FUNCTIONS = {
    "v0.4.0": {"mul"},
    "v0.5.0": {"mul"},
    "v0.6.0": {"div", "max", "mul"},
    "v0.7.0": {"div", "max", "mul"},
    "main-7ea279ab": {"add", "div", "max", "mul"},
}
KEY = "policy.train_global_batch_size"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_each_release(shared: Path, tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    checkout = Checkout.at(release(shared, tmp_path_factory, name))
    driver = next(script for script in checkout.scripts if "run_distillation" in script)
    assert checkout.functions(driver) == FUNCTIONS[name]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("${mul:2,4}", ["mul"]),
        ("${ add : 1, ${mul:${a.b},2}}", ["add", "mul"]),
        ("a ${max:1,2} b ${max:3,4}", ["max"]),
        ("${oc.env:HOME,${oc.select:a}}", []),
        ("${own.scale:2}", ["own.scale"]),
        (r"\${mul:2,4} \\${div:4,2}", ["div"]),
        ("${a.b} ${..c} mul:2", []),
    ],
)
def test_calls_in_a_text(text: str, names: list[str]) -> None:
    assert called(text) == names


def results(
    root: Path, text: str, *sources: tuple[str, str], overrides: tuple[str, ...] = ()
) -> list[Result]:
    """Check a recipe of a checkout that has some sources."""
    world = World.at(root)
    (root / "nemo_rl" / "algorithms").mkdir(parents=True)
    for name, source in sources:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    (root / "child.yaml").write_text(f"defaults: recipe.yaml\n{text}")
    report = world.check(overrides, recipe="child.yaml")
    return [result for result in report.results if result.id == "C88" and result.outcome != "pass"]


CONFIG = (
    "OmegaConf.register_new_resolver(\n    \"mul\", lambda a, b: a * b)\nregister_new_resolver(name='max')\n"
)
ADDED = "policy:\n  train_global_batch_size: ${add:32,32}\n"


def test_a_function_of_a_newer_release_is_named_with_its_value(tmp_path: Path) -> None:
    (result,) = results(tmp_path, ADDED, ("nemo_rl/utils/config.py", CONFIG))
    assert result.message == f"{KEY} calls add, which this NeMo-RL does not have (it has max, mul)"
    assert result.foretells.startswith("Unsupported interpolation type add")
    assert [fix.title for fix in result.fixes] == [f"{KEY}: ${{add:32,32}} -> 64"]
    assert result.where[0].line == 3


@pytest.mark.parametrize(
    "source",
    [
        ("nemo_rl/utils/config.py", CONFIG.replace("max", "add")),
        ("nemo_rl/extras.py", 'register_new_resolver("add", sum)'),
        ("examples/run_distillation.py", 'OmegaConf.register_new_resolver("add", lambda a, b: a + b)'),
        ("examples/helpers.py", 'OmegaConf.register_new_resolver("add", lambda a, b: a + b)'),
    ],
    ids=lambda source: source[0],
)
def test_a_function_that_a_fork_registers_anywhere_is_there(tmp_path: Path, source: tuple[str, str]) -> None:
    sources = [source] if source[0].endswith("config.py") else [("nemo_rl/utils/config.py", CONFIG), source]
    assert results(tmp_path, ADDED, *sources) == []


def test_an_override_replaces_the_call(tmp_path: Path) -> None:
    given = (f"{KEY}=64",)
    assert results(tmp_path, ADDED, ("nemo_rl/utils/config.py", CONFIG), overrides=given) == []


def test_without_sources_nothing_is_claimed(tmp_path: Path) -> None:
    assert results(tmp_path, ADDED) == []


def test_what_cannot_be_computed_here_is_not_said_to_be_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("a: 1\nb: ${ours:2}\n")
    with pytest.raises(RecipeError) as caught:
        Resolver().resolve(tmp_path / "recipe.yaml")
    text = str(caught.value)
    assert "cannot compute ours(…) (at b): NeMo-RL's functions are add, div, max, mul and oc.*" in text
    assert "recipe.yaml:2" in text
    assert "give the value: b=VALUE" in text
    assert Resolver().resolve(tmp_path / "recipe.yaml", ("b=7",)).values == {"a": 1, "b": 7}
