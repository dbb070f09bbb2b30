"""What the loaders of releases read otherwise: functions in interpolations, parents, markers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from recipes.checks.checkout import Checkout
from recipes.checks.core import Result
from recipes.checks.loader_rules import called
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
    root: Path,
    text: str,
    *sources: tuple[str, str],
    overrides: tuple[str, ...] = (),
    id_: str = "C88",
    submitting: bool = False,
) -> list[Result]:
    """Check a recipe of a checkout that has some sources."""
    world = World.at(root)
    world = replace(world, request=replace(world.request, submitting=submitting))
    (root / "nemo_rl" / "algorithms").mkdir(parents=True)
    for name, source in sources:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    (root / "child.yaml").write_text(
        text if text.startswith("defaults") else f"defaults: recipe.yaml\n{text}"
    )
    report = world.check(overrides, recipe="child.yaml")
    return [result for result in report.results if result.id == id_ and result.outcome != "pass"]


CONFIG = (
    "OmegaConf.register_new_resolver(\n    \"mul\", lambda a, b: a * b)\nregister_new_resolver(name='max')\n"
)
ADDED = "policy:\n  train_global_batch_size: ${add:32,32}\n"


def test_a_function_of_a_newer_release_is_named_with_its_value(tmp_path: Path) -> None:
    (result,) = results(tmp_path, ADDED, ("nemo_rl/utils/config.py", CONFIG))
    assert result.outcome == "warn"
    assert result.message == (
        f"{KEY} calls add, which this NeMo-RL does not have (it has max, mul); "
        "a run submitted here gets the effective values"
    )
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


def test_a_run_that_is_submitted_has_the_value(tmp_path: Path) -> None:
    assert results(tmp_path, ADDED, ("nemo_rl/utils/config.py", CONFIG), submitting=True) == []


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


EARLY = "def load_config_with_inheritance(p):\n    load_config_with_inheritance(parent_path, base_dir)\n"
"""The loader of v0.4 and v0.5: all parents beside the recipe, and no markers."""
MIDDLE = "def load_config_with_inheritance(p):\n    f(\n parent_path, parent_path.parent)\n    '_override_'\n"
"""The loader of v0.6 and v0.7: parents beside their child, markers, but no values to be given later."""
LATE = MIDDLE + "    OmegaConf.is_missing(a, b)\n"


def inheritance(root: Path, text: str, loader: str, *sources: tuple[str, str]) -> list[Result]:
    return results(root, text, ("nemo_rl/utils/config.py", loader), *sources, id_="C89")


@pytest.mark.parametrize("release_name", FUNCTIONS)
def test_the_loader_of_each_release(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, release_name: str
) -> None:
    checkout = Checkout.at(release(shared, tmp_path_factory, release_name))
    early, main = release_name in ("v0.4.0", "v0.5.0"), release_name.startswith("main")
    assert checkout.has("a parent's own directory") is not early
    assert checkout.has("override marker") is not early
    assert checkout.has("mandatory values while merging") is main


NESTED = ("deep/middle.yaml", "defaults: ../recipe.yaml\n"), ("deep/leaf.yaml", "defaults: middle.yaml\n")


def test_parents_of_parents_are_looked_for_beside_the_recipe(tmp_path: Path) -> None:
    found = inheritance(tmp_path, "defaults: deep/leaf.yaml\n", EARLY, *NESTED)
    assert [result.message.partition(",")[0] for result in found] == [
        "this NeMo-RL looks for ../recipe.yaml",
        "this NeMo-RL looks for middle.yaml",
    ]
    assert all("where there is none" in result.message for result in found)
    assert found[1].foretells.startswith(f"FileNotFoundError: {tmp_path}/middle.yaml")


def test_another_file_of_that_name_is_said_to_be_taken(tmp_path: Path) -> None:
    other = ("middle.yaml", "defaults: recipe.yaml\n")
    found = inheritance(tmp_path, "defaults: deep/leaf.yaml\n", EARLY, *NESTED, other)
    assert "where another file is" in found[1].message


@pytest.mark.parametrize("loader", [MIDDLE, LATE])
def test_later_loaders_look_beside_each_file(tmp_path: Path, loader: str) -> None:
    assert inheritance(tmp_path, "defaults: deep/leaf.yaml\n", loader, *NESTED) == []


def test_parents_in_one_directory_are_the_same_everywhere(tmp_path: Path) -> None:
    assert (
        inheritance(tmp_path, "defaults: middle.yaml\n", EARLY, ("middle.yaml", "defaults: recipe.yaml\n"))
        == []
    )


@pytest.mark.parametrize(("loader", "count"), [(EARLY, 1), (MIDDLE, 0), (LATE, 0)])
def test_a_marker_that_the_loader_does_not_know(tmp_path: Path, loader: str, count: int) -> None:
    text = "logger:\n  _override_: true\n  log_dir: logs\n"
    found = inheritance(tmp_path, text, loader)
    assert len(found) == count
    assert all("logger._override_ has no effect" in result.message for result in found)


@pytest.mark.parametrize(("loader", "count"), [(EARLY, 0), (MIDDLE, 1), (LATE, 0)])
def test_a_value_that_is_still_to_be_given(tmp_path: Path, loader: str, count: int) -> None:
    found = inheritance(tmp_path, "seed: ???\n", loader)
    assert len(found) == count
    assert all(result.foretells.startswith("Missing mandatory value: seed") for result in found)
