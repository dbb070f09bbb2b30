"""No false alarm: stock recipes at their sizes, and legal settings built from first principles."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.checks import Checker, ClusterRequest, Inputs, apply
from recipes.checks.core import shown
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.memory import demand_of, estimate, options
from recipes.planning import Fix, RecipeEdit
from recipes.planning.scale import scale
from tests.checks.world import BASE, REQUEST, World

STOCK = (
    "configs/distillation_math.yaml",
    "configs/distillation_math_megatron.yaml",
    "modelopt/qa_distillation_math_megatron.yaml",
    "modelopt/qa_distillation_nano3_megatron.yaml",
    "nemo_gym/distillation_qwen3_0_6b.yaml",
    "configs/recipes/llm/distillation-*.yaml",
)
NO_CACHE = {"HF_HOME": "/nonexistent"}


def stock(shared: Path) -> list[Path]:
    examples = shared / "corpus" / "nemo-rl" / "examples"
    return sorted(path for pattern in STOCK for path in examples.glob(pattern))


def test_no_stock_recipe_fails_at_its_own_size(shared: Path) -> None:
    recipes = stock(shared)
    assert len(recipes) >= 16
    checker = Checker(Inputs.of(environment=NO_CACHE))
    wrong = {
        path.name: [(result.id, result.message) for result in report.failing]
        for path in recipes
        if not (report := checker.check(path, verify_fixes=False)).ok
    }
    assert wrong == {}


def test_no_library_recipe_fails() -> None:
    library = Path(__file__).parents[2] / "recipes" / "library"
    checker = Checker(Inputs.of(environment=NO_CACHE))
    for path in sorted(library.glob("*.yaml")):
        report = checker.check(path, verify_fixes=False)
        assert report.ok, [(result.id, result.message) for result in report.failing]


def test_the_base_recipe_on_four_gpus_has_one_reason_and_a_fix(shared: Path) -> None:
    base = shared / "corpus" / "nemo-rl" / "examples" / STOCK[0]
    inputs = Inputs.of(environment=NO_CACHE, request=ClusterRequest(nodes=1, gpus_per_node=4))
    checker = Checker(inputs)
    (result,) = checker.check(base).failing
    assert result.id == "C34"
    assert result.message == "teacher: TP 4 x CP 2 needs 8 GPUs, there are 4"
    assert [where.line for where in result.where[:2]] == [259, 258]
    assert result.fixes
    for fix in result.fixes:
        assert checker.check(base, fix.overrides()).ok


def test_vocabularies_of_different_sizes_fail_without_any_cache(shared: Path) -> None:
    base = shared / "corpus" / "nemo-rl" / "examples" / STOCK[0]
    models = ["policy.model_name=Qwen/Qwen2.5-1.5B", "teacher.model_name=Qwen/Qwen2.5-7B"]
    sizes = [f"{side}.dtensor_cfg.tensor_parallel_size=2" for side in ("policy", "teacher")]
    checker = Checker(Inputs.of(environment=NO_CACHE))
    (result,) = checker.check(base, [*models, *sizes]).failing
    assert result.id == "C64"
    assert "151936" in result.message
    assert "152064" in result.message
    assert result.fixes
    skipping = {**NO_CACHE, "NRL_SKIP_DISTILLATION_TOKENIZER_CHECK": "false"}
    assert Checker(Inputs.of(environment=skipping)).check(base, [*models, *sizes]).ok


def test_facts_that_are_missing_are_never_a_silent_pass(shared: Path) -> None:
    base = shared / "corpus" / "nemo-rl" / "examples" / STOCK[0]
    report = Checker(Inputs.of(environment=NO_CACHE)).check(base, ["teacher.model_name=some/model"])
    assert report.ok
    told = {result.id: result for result in report.results if result.outcome == "unknown"}
    assert {"C37", "C47", "C64"} <= set(told)
    assert all("hf download" in told[id_].message for id_ in ("C37", "C64"))


def test_recipes_of_other_algorithms_cannot_be_told(tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text("grpo: {x: 1}\npolicy: {model_name: a}\n")
    report = Checker(Inputs.of(environment=NO_CACHE)).check(tmp_path / "grpo.yaml")
    assert [result.outcome for result in report.results] == ["unknown"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.at(tmp_path_factory.mktemp("legal"))


def a_size(draw: st.DrawFn, gpus: int) -> int:
    return draw(st.sampled_from([size for size in (1, 2, 4) if gpus % size == 0]))


def dtensor(draw: st.DrawFn, given: dict[str, object], side: str, gpus: int) -> tuple[int, int]:
    """Settings of one side with DTensor; returns a copy's GPUs and what lengths must be multiples of."""
    tp = a_size(draw, gpus)
    cp = a_size(draw, gpus // tp)
    given[f"{side}.dtensor_cfg.tensor_parallel_size"] = tp
    given[f"{side}.dtensor_cfg.context_parallel_size"] = cp
    batching = draw(st.sampled_from(["none", "dynamic", "packing"] if cp == 1 else ["none", "dynamic"]))
    given[f"{side}.dynamic_batching.enabled"] = batching == "dynamic"
    given[f"{side}.sequence_packing.enabled"] = batching == "packing"
    sequence = cp == 1 and batching != "packing" and tp > 1 and draw(st.booleans())
    given[f"{side}.dtensor_cfg.sequence_parallel"] = sequence
    return tp * cp, (2 * cp if cp > 1 else 1) * (tp if sequence else 1)


def megatron(draw: st.DrawFn, given: dict[str, object], side: str, gpus: int) -> tuple[int, int]:
    """The same with Megatron."""
    tp = a_size(draw, gpus)
    cp = a_size(draw, gpus // tp)
    pp = a_size(draw, gpus // tp // cp)
    base = f"{side}.megatron_cfg"
    given[f"{side}.dtensor_cfg.enabled"], given[f"{base}.enabled"] = False, True
    given[f"{base}.tensor_model_parallel_size"] = tp
    given[f"{base}.context_parallel_size"] = cp
    given[f"{base}.pipeline_model_parallel_size"] = pp
    batching = "packing" if cp > 1 else draw(st.sampled_from(["none", "packing"] + ["dynamic"] * (pp == 1)))
    given[f"{side}.dynamic_batching.enabled"] = batching == "dynamic"
    given[f"{side}.sequence_packing.enabled"] = batching == "packing"
    sequence = tp > 1 and draw(st.booleans())
    given[f"{base}.sequence_parallel"] = sequence
    return tp * cp * pp, (2 * cp if cp > 1 else 1) * (tp if sequence else 1)


@st.composite
def legal_settings(draw: st.DrawFn) -> tuple[list[str], ClusterRequest]:
    """Settings that are legal by construction: sizes first, batches as their multiples."""
    nodes = draw(st.sampled_from([1, 2, 3, 4]))
    per_node = 4
    apart = draw(st.booleans())
    given: dict[str, object] = {"cluster.num_nodes": nodes}
    training = nodes * per_node
    if apart:
        taken = draw(st.integers(1, per_node - 1)) if nodes == 1 else draw(st.integers(1, nodes - 1))
        base = "policy.generation.colocated"
        given[f"{base}.enabled"] = False
        given[f"{base}.resources.gpus_per_node"] = taken if nodes == 1 else per_node
        given[f"{base}.resources.num_nodes"] = None if nodes == 1 else taken
        training -= taken if nodes == 1 else taken * per_node
    padding, ranks = 1, {}
    for side in ("policy", "teacher"):
        if draw(st.booleans()):
            size, needed = megatron(draw, given, side, training)
        else:
            size, needed = dtensor(draw, given, side, training)
        padding = math.lcm(padding, needed)
        micro = draw(st.integers(1, 3))
        given[f"{side}.train_micro_batch_size"] = given[f"{side}.logprob_batch_size"] = micro
        ranks[side] = training // size * micro
    batch = ranks["policy"] * draw(st.integers(1, 4))
    given["policy.train_global_batch_size"] = batch
    given["distillation.num_prompts_per_step"] = batch * ranks["teacher"] * draw(st.integers(1, 2))
    divisor = padding * draw(st.integers(1, 2))
    for side in ("policy", "teacher"):
        given[f"{side}.make_sequence_length_divisible_by"] = divisor
    length = 64 * draw(st.integers(2, 16)) * divisor
    for side in ("policy", "teacher"):
        given[f"{side}.max_total_sequence_length"] = length
        for kind in ("train", "logprob"):
            given[f"{side}.dynamic_batching.{kind}_mb_tokens"] = 2 * length
            given[f"{side}.sequence_packing.{kind}_mb_tokens"] = length
    given["policy.generation.vllm_cfg.max_model_len"] = min(length, 16384)
    given["distillation.topk_logits_k"] = draw(st.integers(1, 512))
    overrides = [f"{key}={shown(value)}" for key, value in given.items()]
    return overrides, replace(REQUEST, available_nodes=nodes)


@pytest.mark.long
@given(legal_settings())
def test_legal_settings_raise_no_alarm(world: World, settings: tuple[list[str], ClusterRequest]) -> None:
    overrides, request = settings
    data = world.root / "data" / "train.jsonl"
    prompts = next(int(text.partition("=")[2]) for text in overrides if "num_prompts" in text)
    if prompts > 4096 and data.stat().st_size < 9 * prompts:
        data.write_text('{"x": 1}\n' * 2 * prompts)
    report = replace(world, request=request).check(overrides, verify=False)
    assert report.ok, [(result.id, result.message) for result in report.failing]


APART = (
    "policy.generation.colocated.enabled=false",
    "policy.generation.colocated.resources.gpus_per_node=2",
    "teacher.dtensor_cfg.tensor_parallel_size=2",
)


def test_the_trap_of_generation_apart_on_one_node_then_two(world: World) -> None:
    assert world.check(APART).ok
    carried = world.check((*APART, "cluster.num_nodes=2"))
    assert {result.id for result in carried.failing} == {"C60"}
    resolver = Resolver()
    path = world.root / "recipe.yaml"

    def again(edits: Sequence[RecipeEdit]) -> EffectiveRecipe:
        return resolver.resolve(path, [*APART, *Fix("", tuple(edits)).overrides()])

    scaled = scale(resolver.resolve(path, APART), 2, again=again)
    changed = {edit.key.rpartition(".")[2]: edit.after for edit in scaled.fix.edits}
    assert changed["gpus_per_node"] == 4
    assert (changed["num_nodes"], {edit.key for edit in scaled.fix.edits} >= {"cluster.num_nodes"}) == (
        1,
        True,
    )
    assert world.check((*APART, *scaled.fix.overrides())).ok


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 6, 8])
def test_every_size_is_reached_by_legal_edits(world: World, nodes: int, apart: bool) -> None:
    start = APART if apart else ()
    resolver = Resolver()

    def again(edits: Sequence[RecipeEdit]) -> EffectiveRecipe:
        return resolver.resolve(BASE, [*start, *Fix("", tuple(edits)).overrides()])

    scaled = scale(resolver.resolve(BASE, start), nodes, again=again)
    report = world.check((*start, *scaled.fix.overrides()), verify=False)
    assert report.ok, ([(r.id, r.message) for r in report.failing], scaled)
    if nodes == 1:
        assert scaled.fix.edits == ()


WRONG: tuple[object, ...] = (None, "x", -1, 0, 1.5, [], {}, True, [None], {"a": 1})


def every_key(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from every_key(value, (*path, name))


def broken(recipe: EffectiveRecipe, path: tuple[str, ...], value: object) -> EffectiveRecipe:
    values = copy.deepcopy(recipe.values)
    inner = values
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return replace(recipe, values=values)


@pytest.mark.long
@pytest.mark.parametrize("share", [15, pytest.param(1, marks=pytest.mark.slow)])
def test_values_of_any_type_anywhere_are_survived(world: World, share: int) -> None:
    recipe = Resolver().resolve(BASE)
    inputs = Inputs.of(environment=NO_CACHE, checkout=world.root)
    cases = list(itertools.product(every_key(recipe.values), WRONG))[::share]
    assert len(cases) >= 100
    for path, value in cases:
        damaged = broken(recipe, path, value)
        assert apply(damaged, inputs)
        estimate(damaged, inputs.models)
        options(demand_of(damaged, inputs.models), 40.0)
