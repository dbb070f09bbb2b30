"""Scaling from N to M nodes: the values that must change with it, as edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.planning.edits import Fix, RecipeEdit
from recipes.planning.setup import Setup, Side
from recipes.planning.sizes import legal_global_batches, nearest_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recipes.inheritance import EffectiveRecipe
    from recipes.models import ModelFacts

_RESOURCES = "policy.generation.colocated.resources"


@dataclass(frozen=True, slots=True)
class Scaled:
    """The edits that carry a recipe to another size; `notes` say what they keep and what they cannot."""

    fix: Fix
    notes: tuple[str, ...]


def scale(
    recipe: EffectiveRecipe,
    nodes: int,
    gpus_per_node: int | None = None,
    *,
    again: Callable[[Sequence[RecipeEdit]], EffectiveRecipe],
    student: ModelFacts | None = None,
    teacher: ModelFacts | None = None,
    prompts: int | None = None,
) -> Scaled:
    """Return the edits for another number of nodes, and for other prompts per step where they are given.

    The generation split is restated first: on one node it counts GPUs, on several whole nodes, and a split
    made for one is refused on the other. Then parallel sizes that no longer divide the GPUs change as
    little as possible, then the batches that the ranks no longer share. `again` resolves it with edits.
    """
    edits: dict[str, RecipeEdit] = {}
    notes: list[str] = []

    def change(key: str, value: object, present: EffectiveRecipe) -> None:
        if present.get(key) != value:
            edits[key] = RecipeEdit(key, recipe.get(key), value, absent=not recipe.has(key))

    per_node = gpus_per_node or Setup.of(recipe).gpus_per_node
    change("cluster.num_nodes", nodes, recipe)
    change("cluster.gpus_per_node", per_node, recipe)
    if prompts is not None:
        change("distillation.num_prompts_per_step", prompts, recipe)
    for key, value in _split(Setup.of(recipe), nodes, per_node).items():
        change(key, value, recipe)
    present = again(list(edits.values()))
    setup = Setup.of(present)
    if not setup.split_is_legal:
        notes.append("separate generation needs at least two GPUs or two nodes: this size has no valid split")
    for side, facts in zip(setup.sides, (student, teacher), strict=True):
        for key, value in _sizes(setup, side, facts, notes).items():
            change(key, value, present)
    present = again(list(edits.values()))
    for key, value in _batches(Setup.of(present), notes).items():
        change(key, value, present)
    title = f"{Setup.of(recipe).nodes} x {Setup.of(recipe).gpus_per_node} -> {nodes} x {per_node} GPUs"
    return Scaled(Fix(title, tuple(edits.values())), tuple(notes))


def _split(setup: Setup, nodes: int, per_node: int) -> dict[str, object]:
    """Keep the share of GPUs that generate, in GPUs on one node or in whole nodes."""
    if setup.colocated:
        return {}
    share = setup.generation_gpus / setup.gpus if setup.gpus else 0.5
    if nodes == 1:
        gpus = min(max(round(share * per_node), 1), max(per_node - 1, 1))
        return {f"{_RESOURCES}.gpus_per_node": gpus, f"{_RESOURCES}.num_nodes": None}
    count = min(max(round(share * nodes), 1), nodes - 1)
    return {f"{_RESOURCES}.num_nodes": count, f"{_RESOURCES}.gpus_per_node": per_node}


def _sizes(setup: Setup, side: Side, facts: ModelFacts | None, notes: list[str]) -> dict[str, object]:
    if side.backend is None or side.divides or side.gpus == 0:
        return {}
    sizes = nearest_parallel(side, side.gpus, facts, setup.gpus_per_node)
    # A model that was spread so wide needs the memory: keep the copy as wide as the GPUs allow.
    wide = sorted(sizes, key=lambda size: -size.width)
    if not wide:
        notes.append(f"{side.name}: no valid parallel sizes for {side.gpus} GPUs")
        return {}
    size = next(candidate for candidate in sizes if candidate.width == wide[0].width)
    notes.append(
        f"{side.name}: a model copy took {side.width} GPUs, now {size.width}; check `distill-tui memory`"
    )
    values: dict[str, object] = {side.size_key("tp"): size.tp, side.size_key("cp"): size.cp}
    if side.backend == "megatron":
        values[side.size_key("pp")] = size.pp
    return values


def _batches(setup: Setup, notes: list[str]) -> dict[str, object]:
    """Change prompts and global batch only where the ranks do not share them."""
    student, teacher = setup.sides
    if not (student.divides and teacher.divides) or not setup.global_batch or not setup.samples_per_step:
        return {}
    micro = 1 if student.dynamic or student.packing else student.count("train_micro_batch_size")
    score = 1 if teacher.dynamic or teacher.packing else teacher.count("logprob_batch_size")
    each = setup.samples_per_step // max(setup.recipe.get("distillation.num_prompts_per_step") or 1, 1)
    samples = setup.samples_per_step
    legal = _legal(samples, setup, micro, score)
    step = each
    while not legal and samples < 4 * setup.samples_per_step:
        samples += step
        legal = _legal(samples, setup, micro, score)
    if not legal:
        notes.append("no batch size near the current one divides evenly among the ranks")
        return {}
    batch = min(legal, key=lambda size: (abs(size - setup.global_batch), -size))
    if samples != setup.samples_per_step:
        notes.append(f"samples per step: {setup.samples_per_step} -> {samples}")
    return {
        "distillation.num_prompts_per_step": samples // each,
        "policy.train_global_batch_size": batch,
    }


def _legal(samples: int, setup: Setup, micro: int, score: int) -> list[int]:
    if samples % (setup.teacher.dp * score):
        return []
    return legal_global_batches(samples, setup.policy.dp, micro)
