"""Changes of a recipe after which it fits on the GPUs of a place, each tried in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recipes.editing.analysis import Analysis, Placement
from recipes.editing.finding_fixes import try_fix
from recipes.editing.legal_values import new_failures
from recipes.editing.predictor import Predictor, check_cancelled
from recipes.keys import parse_key
from recipes.memory import demand_of, options
from recipes.models import ModelFacts
from recipes.planning import Fix, RecipeEdit, Setup
from recipes.planning.legal_keys import legal_sizes
from recipes.planning.setup import finite, value_at, whole
from recipes.planning.sizes import divisors, heads_allow

if TYPE_CHECKING:
    from recipes.editing.analysis import Prediction
    from recipes.inheritance import EffectiveRecipe
    from recipes.planning.setup import Side

_OFFERED = 4
_TRIED = 24
"""Changes that are tried at most: each takes some 20 ms."""
_VLLM = "policy.generation.vllm_cfg"
_SHARES = (0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_LENGTHS = ("max_total_sequence_length", "max_model_len", "max_new_tokens", "max_input_seq_length")
_SIZES = ("train_mb_tokens", "logprob_mb_tokens", "logprob_chunk_size", "num_prompts_per_step")
_SWITCHES = ("activation_checkpointing", "cpu_offload", "sequence_parallel", "enabled")


@dataclass(frozen=True, slots=True)
class FittingChange:
    """A change with what it leads to.

    `placement` is the place it needs, `needed` the GiB that each phase then takes, `overfull` are the phases
    that still do not fit.
    """

    fix: Fix
    placement: Placement
    needed: tuple[tuple[str, float], ...]
    overfull: tuple[str, ...] = ()


def fitting_changes(
    predictor: Predictor, analysis: Analysis, key: str, cancelled: Callable[[], bool]
) -> tuple[FittingChange, ...]:
    """Return changes after which all phases fit, or one of those that do not; () where all fit already.

    Without a key: other parallel sizes, smaller micro batches, more nodes, shorter sequences; with one,
    values of that key alone. Those after which everything fits come first.
    """
    memory, recipe = analysis.memory, analysis.report.recipe
    if memory is None or recipe is None or not analysis.prediction.overfull:
        return ()
    candidates = _of_key(predictor, recipe, key) if key else _of_recipe(predictor, recipe, memory.gpu_gib)
    changes: list[FittingChange] = []
    for number, (fix, nodes) in enumerate(candidates):
        if number == _TRIED:
            break
        check_cancelled(cancelled)
        change = _tried(predictor, analysis, fix, nodes, cancelled)
        if change is not None:
            changes.append(change)
            if sum(not one.overfull for one in changes) == _OFFERED:
                break
    return tuple(sorted(changes, key=lambda change: len(change.overfull))[:_OFFERED])


def _tried(
    predictor: Predictor, analysis: Analysis, fix: Fix, nodes: int | None, cancelled: Callable[[], bool]
) -> FittingChange | None:
    """Return a change that relieves at least one phase and brings no new failure; else None."""
    placement = analysis.placement
    if nodes is not None and placement.nodes is not None:
        placement = replace(placement, nodes=nodes)
    tried = try_fix(predictor, analysis, fix, placement, cancelled)
    if tried is None or tried.memory is None or new_failures(analysis.prediction, tried):
        return None
    before, after = set(analysis.prediction.overfull), set(tried.overfull)
    if after - before or not before - after or _hides_a_phase(analysis, tried):
        return None
    needed = tuple((phase.id, phase.needed) for phase in tried.memory.phases)
    return FittingChange(fix, placement, needed, tried.overfull)


def _hides_a_phase(analysis: Analysis, tried: Prediction) -> bool:
    """Return whether a phase is gone because its size is not known any more."""
    before = {phase.id for phase in analysis.memory.phases} if analysis.memory else set()
    after = {phase.id for phase in tried.memory.phases} if tried.memory else set()
    return not before <= after


def _of_recipe(
    predictor: Predictor, recipe: EffectiveRecipe, gpu_gib: float
) -> Iterator[tuple[Fix, int | None]]:
    """Yield changes of student and teacher, then of generation, with the nodes that they need."""
    models = predictor.inputs.models
    nodes = Setup.of(recipe).nodes
    by_side: dict[str, list[tuple[Fix, int | None]]] = {}
    for option in options(demand_of(recipe, models, predictor.inputs.checkout_path), gpu_gib):
        needed = option.nodes if option.nodes != nodes else None
        by_side.setdefault(option.side, []).append((option.fix, needed))
    student, teacher = by_side.get("policy", []), by_side.get("teacher", [])
    yield from _pairs(student, teacher)
    yield from student
    yield from teacher
    yield from ((fix, None) for fix in _of_generation(predictor, recipe))


def _pairs(
    student: list[tuple[Fix, int | None]], teacher: list[tuple[Fix, int | None]]
) -> Iterator[tuple[Fix, int | None]]:
    """Yield a change of both models for each pair that agrees about the nodes, the cheapest first."""
    indexes = [(i, j) for i in range(len(student)) for j in range(len(teacher))]
    for i, j in sorted(indexes, key=lambda pair: (sum(pair), pair)):
        (first, first_nodes), (second, second_nodes) = student[i], teacher[j]
        agree = first_nodes == second_nodes or None in (first_nodes, second_nodes)
        if agree and not _clash(first, second):
            yield _joined(first, second), first_nodes or second_nodes


def _clash(first: Fix, second: Fix) -> bool:
    values = {edit.key: edit.after for edit in first.edits}
    return any(edit.key in values and values[edit.key] != edit.after for edit in second.edits)


def _joined(first: Fix, second: Fix) -> Fix:
    edits = {edit.key: edit for edit in (*first.edits, *second.edits)}
    return Fix(f"{first.title}; {second.title}", tuple(edits.values()))


def _of_generation(predictor: Predictor, recipe: EffectiveRecipe) -> Iterator[Fix]:
    """Yield another share of the GPU for vLLM, then engines over more GPUs."""
    key = f"{_VLLM}.gpu_memory_utilization"
    present = value_at(recipe, key)
    for share in _SHARES:
        if share != present:
            yield _set(recipe, key, share)
    setup = Setup.of(recipe)
    facts = predictor.inputs.models.find(setup.policy.model)
    key = f"{_VLLM}.tensor_parallel_size"
    for size in divisors(setup.gpus_per_node):
        if size > setup.vllm_width and heads_allow(facts if isinstance(facts, ModelFacts) else None, size):
            yield _set(recipe, key, size)


def _of_key(predictor: Predictor, recipe: EffectiveRecipe, key: str) -> Iterator[tuple[Fix, int | None]]:
    """Yield other values of one key, the nearest first."""
    present = value_at(recipe, key)
    name = str(parse_key(key)[-1]) if parse_key(key) else ""
    if isinstance(present, bool) or (present is None and name in _SWITCHES):
        yield _set(recipe, key, not present), None
        return

    def facts_of(side: Side) -> ModelFacts | None:
        facts = predictor.inputs.models.find(side.model)
        return facts if isinstance(facts, ModelFacts) else None

    values: list[float] = list(legal_sizes(key, Setup.of(recipe), facts_of))
    size = whole(present)
    if name == "gpu_memory_utilization":
        values = list(_SHARES)
    elif not values and size is not None and size > 1 and name in (*_LENGTHS, *_SIZES):
        values = [size // factor for factor in (2, 4, 8, 16) if size // factor]
    number = finite(present)
    for value in sorted(values, key=lambda value: abs(value - (1 if number is None else number))):
        if value != present:
            yield _set(recipe, key, value), int(value) if key == "cluster.num_nodes" else None


def _set(recipe: EffectiveRecipe, key: str, value: object) -> Fix:
    before = value_at(recipe, key)
    absent = not recipe.has(key)
    title = f"{key}: {'(not set)' if absent else before} -> {value}"
    return Fix(title, (RecipeEdit(key, before, value, absent=absent),))
