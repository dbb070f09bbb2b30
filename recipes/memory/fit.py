"""Changes of a recipe that make it fit on a GPU, cheapest first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recipes.memory.estimate import Demand, training_phase
from recipes.planning.edits import Fix, RecipeEdit
from recipes.planning.sizes import legal_parallel, nearest_multiple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.memory.shapes import Work
    from recipes.planning.setup import Side

_MORE_NODES = (1, 2, 4, 8)
_LENGTHS = (1.0, 0.5, 0.25)


@dataclass(frozen=True, slots=True)
class Option:
    """Change under which a phase fits, and the GiB that it then needs."""

    side: str
    fix: Fix
    needed: float
    nodes: int


def options(demand: Demand, gpu_gib: float, limit: int = 4) -> tuple[Option, ...]:
    """Return changes that make student and teacher fit; none for a side that fits or is unknown.

    Cheapest first: other parallel sizes, a smaller micro batch, more nodes, shorter sequences; within
    those the fewest GPUs per copy of the model.
    """
    fitting: list[Option] = []
    for side, work in zip(demand.setup.sides, (demand.student, demand.teacher), strict=True):
        teacher = side.name == "teacher"
        colocated = demand.setup.colocated
        if work is None or training_phase(teacher, work, gpu_gib, colocated=colocated).fits:
            continue
        chosen: list[Option] = []
        for candidate, nodes in _candidates(demand, side, work):
            phase = training_phase(teacher, candidate, gpu_gib, colocated=colocated)
            if phase.fits:
                fix = _fix(demand, side, work, candidate, nodes)
                chosen.append(Option(side.name, fix, phase.needed, nodes))
                if len(chosen) == limit:
                    break
        fitting.extend(chosen)
    return tuple(fitting)


def _candidates(demand: Demand, side: Side, work: Work) -> Iterator[tuple[Work, int]]:
    setup = demand.setup
    micro = side.count("train_micro_batch_size" if side.name == "policy" else "logprob_batch_size")
    single = max(work.tokens // micro, 1)
    batches = (work.tokens,) if single == work.tokens else (work.tokens, single)
    for share in _LENGTHS:
        for factor in _MORE_NODES:
            gpus = (
                setup.train_gpus * factor if setup.colocated else setup.train_gpus + setup.gpus * (factor - 1)
            )
            for tokens in batches:
                shorter = int(tokens * share)
                sizes = legal_parallel(
                    gpus, work.facts, node_gpus=setup.gpus_per_node, pipeline=work.megatron
                )
                for size in sorted(sizes, key=lambda size: (size.width, size.cp, size.pp)):
                    if size.tp >= 4 and side.get("train_micro_batch_size") != side.get("logprob_batch_size"):
                        continue
                    dp = gpus // size.width
                    shared = setup.global_batch if side.name == "policy" else setup.samples_per_step
                    if shared and shared % dp:
                        continue
                    yield (
                        replace(work, gpus=gpus, tp=size.tp, cp=size.cp, pp=size.pp, tokens=shorter),
                        setup.nodes * factor,
                    )


def _fix(demand: Demand, side: Side, work: Work, to: Work, nodes: int) -> Fix:
    setup = demand.setup
    edits: list[RecipeEdit] = []
    words: list[str] = []
    if nodes != setup.nodes:
        edits.append(RecipeEdit("cluster.num_nodes", setup.nodes, nodes))
        words.append(f"{nodes} nodes")
    for axis, before, after in (("tp", work.tp, to.tp), ("cp", work.cp, to.cp), ("pp", work.pp, to.pp)):
        if before != after:
            key = side.size_key(axis)  # type: ignore[arg-type]
            edits.append(RecipeEdit(key, side.recipe.get(key), after, absent=not side.recipe.has(key)))
            words.append(f"{axis.upper()} {after}")
    if to.tokens != work.tokens:
        words.extend(_shorter(side, work, to, edits))
    divisor = setup.policy.divisor
    if to.cp > 1 and divisor % (2 * to.cp):
        padded = nearest_multiple(divisor, 2 * to.cp)[-1]
        key = "policy.make_sequence_length_divisible_by"
        edits.append(RecipeEdit(key, side.recipe.get(key), padded, absent=not side.recipe.has(key)))
    return Fix(f"{side.name}: " + ", ".join(words), tuple(edits))


def _shorter(side: Side, work: Work, to: Work, edits: list[RecipeEdit]) -> list[str]:
    """Add the edits of a smaller micro batch and of shorter sequences; returns their words."""
    name = "train_micro_batch_size" if side.name == "policy" else "logprob_batch_size"
    micro = side.count(name)
    words: list[str] = []
    length = to.tokens
    if micro > 1 and to.tokens <= work.tokens // micro:
        edits.append(RecipeEdit(side.key(name), micro, 1))
        words.append("micro batch 1")
    else:
        length = to.tokens // micro
    present = work.tokens // micro
    if length < present:
        keys = ("policy.max_total_sequence_length", "teacher.max_total_sequence_length")
        edits.extend(RecipeEdit(key, side.recipe.get(key), length) for key in keys)
        words.append(f"sequences of {length} tokens")
    return words
