"""C4 against releases of NeMo-RL: their recipes pass, and overrides are judged as their classes judge."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.checks import Checker, Inputs
from recipes.errors import RecipeError
from recipes.inheritance import Resolver
from recipes.known_keys import known_keys
from recipes.lint import unknown_keys
from recipes.schema.algorithms import algorithm_of, driver_of_algorithm
from recipes.schema.checkout_schema import schema_of
from tests.checks.world import BASE, World

TREES = ("v0.4.0", "v0.5.0", "v0.6.0", "v0.7.0", "main-7ea279ab")
VALIDATING = ("v0.7.0", "main-7ea279ab")
ENTRY = {"C1", "C2", "C3", "C4"}
FAST = 18
"""Of the shared overrides, each so many-th is tried in the fast set."""


@pytest.fixture(scope="session")
def trees(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Unpack the releases."""
    root = tmp_path_factory.mktemp("releases")
    for name in TREES:
        with tarfile.open(shared / "nemo-versions" / f"{name}.tar.gz") as archive:
            archive.extractall(root, filter="data")
    return {name: root / name for name in TREES}


def overrides_of(shared: Path, name: str) -> list[tuple[str, str]]:
    data: dict[str, str] = json.loads((shared / "nemo-versions" / f"mutations-{name}.json").read_text())
    return list(data.items())


def compare(shared: Path, tree: Path, name: str, step: int) -> None:
    """Compare what checks say of overrides with what the release's own classes and loader said."""
    recipe = tree / "examples" / "configs" / "distillation_math.yaml"
    checker = Checker(Inputs.of(environment={}, checkout=tree))
    for override, answer in overrides_of(shared, name)[::step]:
        report = checker.check(recipe, [override] if override else [], verify_fixes=False)
        failing = {result.id for result in report.failing}
        if answer == "ok":
            assert "C4" not in failing, (override, [result.message for result in report.of("C4")])
        else:
            assert failing & ENTRY, (override, answer)


@pytest.mark.long
@pytest.mark.parametrize("name", VALIDATING)
def test_a_sample_of_overrides_is_judged_as_the_release_judges(
    shared: Path, trees: dict[str, Path], name: str
) -> None:
    compare(shared, trees[name], name, FAST)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", VALIDATING)
def test_all_overrides_are_judged_as_the_release_judges(
    shared: Path, trees: dict[str, Path], name: str
) -> None:
    compare(shared, trees[name], name, 1)


@pytest.mark.long
@pytest.mark.parametrize("name", TREES)
def test_stock_recipes_have_the_types_and_keys_of_their_release(trees: dict[str, Path], name: str) -> None:
    resolver = Resolver()
    paths = sorted((trees[name] / "examples" / "configs").rglob("distillation*.yaml"))
    assert len(paths) >= 8
    for path in paths:
        recipe = resolver.resolve(path)
        algorithm = algorithm_of(recipe.values)
        assert algorithm is not None
        schema = schema_of(driver_of_algorithm(algorithm), trees[name])
        assert schema is not None
        assert not schema.shipped
        assert schema.judge(recipe.values) == [], path
        assert unknown_keys(recipe, resolver.reader.source(path).values, trees[name]) == [], path


@pytest.mark.parametrize(("name", "validates"), [(name, name in VALIDATING) for name in TREES])
def test_a_wrong_type_fails_where_the_release_validates_and_is_doubtful_elsewhere(
    trees: dict[str, Path], name: str, validates: bool
) -> None:
    recipe = trees[name] / "examples" / "configs" / "distillation_math.yaml"
    checker = Checker(Inputs.of(environment={}, checkout=trees[name]))
    wrong = checker.check(recipe, ["policy.train_global_batch_size=many"], verify_fixes=False)
    (result,) = wrong.of("C4")
    assert result.outcome == ("fail" if validates else "warn")
    assert result.message.startswith("policy.train_global_batch_size is many, it must be a whole number")
    missing = checker.check(recipe, ["~distillation.max_num_epochs"], verify_fixes=False)
    assert [r.outcome for r in missing.of("C4")] == ["fail" if name == "v0.7.0" else "pass"]


@pytest.mark.parametrize("name", VALIDATING)
def test_second_roots_are_those_of_the_checkout(trees: dict[str, Path], name: str) -> None:
    recipe = trees[name] / "examples" / "configs" / "distillation_math.yaml"
    checker = Checker(Inputs.of(environment={}, checkout=trees[name]))
    overrides = ["++policy.generation.refit_cfg={nixl:{unheard_of:1}}"]
    assert checker.check(recipe, overrides, verify_fixes=False).of("C4")[0].outcome == "pass"
    with_transport = [*overrides, "++policy.generation.refit_transport=nixl"]
    (result,) = checker.check(recipe, with_transport, verify_fixes=False).of("C4")
    assert result.outcome == ("fail" if name == "main-7ea279ab" else "pass")


def test_a_finding_says_whose_classes_it_is_by(tmp_path: Path) -> None:
    world = World.at(tmp_path)
    (result,) = world.check(["policy.precision=3"]).of("C4")
    assert "by the classes of NeMo-RL 0.7.0, for want of a checkout's" in result.message


VALUES = (
    "null", "true", "3", "-1", "1.5", "1e400", "9" * 400, "''", "abc", "'2'", "[]", "[1]", "{}", "{a:1}",
    "{1:2}", ".nan", "{enabled:true}",
)  # fmt: skip


@pytest.mark.long
@given(data=st.data())
def test_no_value_in_any_key_breaks_the_judgement(
    data: st.DataObject, schema_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    resolver = Resolver()
    keys = list(resolver.resolve(BASE).leaf_keys())
    sections = sorted({key.rpartition(".")[0] for key in keys} - {""})
    key = data.draw(st.sampled_from([*keys, *sections]))
    override = f"{key}={data.draw(st.sampled_from(VALUES))}"
    try:
        recipe = resolver.resolve(BASE, [override])
    except RecipeError:
        return  # the loader refuses it: C3 says so
    schema = schema_of(driver_of_algorithm("distillation"), None, schema_cache)
    assert schema is not None
    for judgement in schema.judge(recipe.values):
        assert judgement.problem.path
    values: Any = resolver.reader.source(BASE).values
    assert isinstance(unknown_keys(recipe, values), list)
    assert known_keys("distillation") is not None
