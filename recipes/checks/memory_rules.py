"""Rules on GPU memory that a setting costs without need: C81 to C84. They warn, from the account's terms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, warn
from recipes.memory.allocator import limit
from recipes.memory.estimate import moments_of
from recipes.memory.wrapping import V1, V1_UNTIED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.memory.shapes import Work
    from recipes.planning import Fix, Side

_FORMAT = "checkpointing.model_save_format"
WORTH_GIB = 1.0
"""Savings below this are not reported."""
_OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory, on a GPU that has less"


def _works(context: Context) -> Iterator[tuple[Side, Work]]:
    """Yield the sides that DTensor trains or scores with, and whose memory can be accounted for."""
    if not context.placed:
        return
    demand = context.demand
    for side, work in zip(context.sides, (demand.student, demand.teacher), strict=True):
        if work is not None and side.backend == "dtensor":
            yield side, work


def _needed(work: Work, side: Side) -> float:
    return limit(moments_of(work, teacher=side.name == "teacher"))


def _saved(side: Side, work: Work, other: Work) -> float:
    """Return the GiB that another way of working would save where memory is highest."""
    return _needed(work, side) - _needed(other, side)


def _first_worker(work: Work) -> Work:
    return replace(work, wrapping=V1 if work.wrapping.ties_again else V1_UNTIED)


def _first_worker_fix(context: Context, side: Side) -> Fix:
    """Return the fix that lets DTensor v1 work; it has no format of its own for checkpoints (C69)."""
    values: dict[str, object] = {side.key("dtensor_cfg._v2"): False}
    if side.name == "policy" and context.get(_FORMAT) is not None:
        values[_FORMAT] = None
    return context.fix_all(values)


def _held_layers(context: Context) -> Iterator[Finding]:
    """C81."""
    for side, work in _works(context):
        if side.name != "policy" or not (work.wrapping.holds_layers and work.checkpointing):
            continue
        other = replace(work, wrapping=replace(work.wrapping, explicit_prefetch=False))
        saved = _saved(side, work, other)
        if saved >= WORTH_GIB:
            yield warn(
                f"policy: activation checkpointing with DTensor v2 gathers {work.facts.layers - 1} layers "
                f"again and holds them: {saved:.1f} of {_needed(work, side):.1f} GiB per GPU. DTensor v1 "
                "(_v2: false) does not, nor does an Automodel with change #3411",
                side.key("dtensor_cfg._v2"),
                side.key("dtensor_cfg.activation_checkpointing"),
                fixes=[_first_worker_fix(context, side)],
            )


def _whole_vocabulary(context: Context) -> Iterator[Finding]:
    """C82."""
    for side, work in _works(context):
        if not work.zero_outside_topk:
            continue
        saved = _saved(side, work, replace(work, zero_outside_topk=False))
        if saved >= WORTH_GIB:
            key = "loss_fn.zero_outside_topk"
            yield warn(
                "policy: zero_outside_topk keeps probabilities of the whole vocabulary: "
                f"{saved:.1f} GiB per GPU of {_needed(work, side):.1f}",
                key,
                fixes=[
                    context.fix(key, after=False),
                    context.fix(side.size_key("tp"), 2 * work.tp),
                ],
            )


def _copies(context: Context) -> Iterator[Finding]:
    """C83."""
    for side, work in _works(context):
        if not work.unsharded:
            continue
        saved = _saved(side, work, _first_worker(work))
        if saved >= WORTH_GIB:
            yield warn(
                f"{side.name}: on one GPU DTensor v2 has no FSDP, and autocast keeps bf16 copies of the "
                f"weights: {saved:.1f} GiB more than DTensor v1, of {_needed(work, side):.1f}",
                side.key("dtensor_cfg._v2"),
                fixes=[_first_worker_fix(context, side)],
            )


def _masks(context: Context) -> Iterator[Finding]:
    """C84."""
    for side, work in _works(context):
        keeps = work.wrapping.keeps_losses and work.wrapping.checkpoints == "layers outside FSDP"
        if side.name != "policy" or work.cp == 1 or not keeps or not work.checkpointing:
            continue
        saved = _saved(side, work, replace(work, wrapping=replace(work.wrapping, keeps_losses=False)))
        if saved >= WORTH_GIB:
            side_tokens = work.tokens / work.rows / work.cp
            yield warn(
                f"policy: DTensor v2 keeps an attention mask of {side_tokens:.0f} tokens squared for "
                f"each of {work.micro_batches} micro batches: up to {saved:.1f} GiB per GPU of "
                f"{_needed(work, side):.1f}; fewer micro batches a step, or DTensor v1, avoid it",
                side.size_key("cp"),
                side.key("dtensor_cfg._v2"),
                fixes=[_first_worker_fix(context, side)],
            )


RULES = (
    Rule(
        "C81",
        "Layers that DTensor v2 gathers again and holds",
        _held_layers,
        _OUT_OF_MEMORY,
        "Automodel, distributed/parallelizer.py",
    ),
    Rule(
        "C82",
        "Probabilities of the whole vocabulary in the loss",
        _whole_vocabulary,
        _OUT_OF_MEMORY,
        "distributed/model_utils.py",
    ),
    Rule("C83", "One GPU without FSDP", _copies, _OUT_OF_MEMORY, "Automodel, distributed/fsdp2.py"),
    Rule(
        "C84",
        "Attention masks that context parallelism keeps",
        _masks,
        _OUT_OF_MEMORY,
        "models/automodel/train.py",
    ),
)
