"""How far the account of a work was from measured points, and what was not measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.memory.shapes import Work

COARSE = 0.3
"""Relative, for what is arithmetic alone."""
MEASURED: dict[str, float] = {
    "one rank": 0.005,
    "FSDP": 0.01,
    "TP": 0.01,
    "CP": 0.01,
    "packing": 0.005,
    "offload": 0.005,
    "experts": 0.01,
    "TP and CP": 0.025,
}
"""Worst relative error of the peak of allocated memory, rounded up, by group of measured points."""


def groups_of(work: Work) -> tuple[str, ...]:
    """Return the groups of measured points that a work belongs to; TP with CP is a group of its own."""
    both = work.tp > 1 and work.cp > 1
    belongs = {
        "one rank": work.gpus == 1,
        "FSDP": work.shards > 1 and not both,
        "TP": work.tp > 1 and not both,
        "CP": work.cp > 1 and not both,
        "packing": len(work.packed) > 1,
        "offload": work.cpu_offload,
        "experts": work.facts.experts > 0,
        "TP and CP": both,
    }
    return tuple(name for name, member in belongs.items() if member)


def unmeasured(work: Work) -> Iterator[str]:
    """Yield what of a work stands on arithmetic alone."""
    v2 = work.wrapping.last_layer_kept
    if work.megatron:
        yield "Megatron"
        return
    if work.lora_rank and v2:
        yield "LoRA with DTensor v2"
    if work.expert_parallel > 1:
        yield "expert parallelism"
    if work.replicas > 1:
        yield "replicas"
    if work.facts.experts and v2:
        yield "experts with DTensor v2"
    if v2 and work.wrapping.checkpoints == "parts":
        yield "DTensor v2 of before v0.6"
    if work.zero_outside_topk and (work.tp > 1 or work.cp > 1 or not work.entropy):
        yield "zero_outside_topk with TP or CP, or with the forward KL"
    if work.sequence_parallel and (v2 or not work.checkpointing):
        yield "sequence parallelism with DTensor v2, or without checkpointing"
    if len(work.packed) > 1 and (work.tp > 1 or v2):
        yield "packing with TP, or with flash-attention"


def uncertainty_of(work: Work) -> float:
    """Return the relative error to expect of a work's peak."""
    if any(unmeasured(work)):
        return COARSE
    return max((MEASURED[name] for name in groups_of(work)), default=max(MEASURED.values()))
