"""No value of any type in any key ends in a traceback, nor keeps a check from ending."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recipes.checks import Inputs
from recipes.checks.engine import Checker, apply
from recipes.document import Document
from recipes.errors import RecipeError
from recipes.inheritance import Resolver
from recipes.keys import KeyPath
from recipes.memory.estimate import estimate
from recipes.planning.setup import finite

from .world import BASE, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.inheritance import EffectiveRecipe

LIBRARY = Path(__file__).parents[2] / "recipes" / "library"
RECIPES = [BASE, *sorted(LIBRARY.glob("*.yaml"))]
NUMBERS: list[Any] = [
    0,
    1,
    3,
    -1,
    -7,
    10**18,
    10**400,
    0.5,
    -2.5,
    2.0,
    1e-9,
    1e308,
    math.nan,
    math.inf,
    -math.inf,
]
TEXTS: list[Any] = [
    "",
    "x",
    "2",
    "-3",
    "²",
    "9" * 5000,
    "00:00:10",
    "~nobody/x",
    "a/../..",
    "a.b",
    "/",
    "n" * 300,
]
COLLECTIONS: list[Any] = [[], [1], ["a", {}], [None], {}, {"a": 1}, {"enabled": True}, {1: 2}]
VALUES: list[Any] = [None, True, False, *NUMBERS, *TEXTS, *COLLECTIONS]


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every section and every value, of lists the first two items."""
    if path:
        yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for step, item in children:
        yield from paths(item, (*path, step))


def changed(recipe: EffectiveRecipe, path: KeyPath, value: Any) -> EffectiveRecipe:
    values = copy.deepcopy(recipe.values)
    holder: Any = values
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return replace(recipe, values=values)


def look(recipe: EffectiveRecipe, inputs: Inputs) -> None:
    """All that is computed from a recipe's values: checks with their fixes, memory."""
    for result in apply(recipe, inputs):
        assert all(isinstance(fix.overrides(), tuple) for fix in result.fixes)
    assert estimate(recipe, inputs.models, 40.0).gpu_gib == 40.0


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    world = World.at(tmp_path_factory.mktemp("world"))
    return Inputs.of(environment=world.environment, checkout=world.root, request=world.request)


KEYS = [(file, path) for file in RECIPES for path in paths(Resolver().resolve(file).values)]


@pytest.mark.long
@given(st.sampled_from(KEYS), st.sampled_from(VALUES))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_value_written_into_a_recipe(inputs: Inputs, key: tuple[Path, KeyPath], value: Any) -> None:
    """From the text on: what the value makes of interpolations too."""
    file, path = key
    document = Document.open(file)
    try:
        document.set(path, value, copy=True)
    except (RecipeError, ValueError):
        return
    report = Checker(inputs).check(file, revision=document.revision, verify_fixes=False)
    assert report.results
    if report.recipe is not None:
        look(report.recipe, inputs)


@pytest.mark.parametrize(
    "override",
    [
        "policy.train_micro_batch_size='2'",
        "policy.max_total_sequence_length='8192'",
        "policy.train_micro_batch_size=1000000000000000",
        "++policy.generation.vllm_cfg.tensor_parallel_size=1000000000000",
        "distillation.num_prompts_per_step=-7",
        "distillation.num_prompts_per_step=1000000007",
        "policy.model_name='~nobody/model'",
        "policy={}",
        "++policy.generation.vllm_cfg.gpu_memory_utilization=nan",
        "++data.train.split_validation_size=-inf",
    ],
)
def test_overrides_of_any_type(inputs: Inputs, override: str) -> None:
    for file in RECIPES[:3]:
        report = Checker(inputs).check(file, [override])
        assert report.results
        if report.recipe is not None:
            look(report.recipe, inputs)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.5, 0.5),
        (2, 2.0),
        (True, None),
        ("1", None),
        (None, None),
        (math.nan, None),
        (-math.inf, -1e15),
        (10**400, 1e15),
    ],
)
def test_a_number_is_finite(value: object, number: float | None) -> None:
    assert finite(value) == number


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_value_in_every_key(inputs: Inputs) -> None:
    for file in RECIPES:
        recipe = Resolver().resolve(file)
        for path in paths(recipe.values):
            for value in VALUES:
                look(changed(recipe, path, value), inputs)
