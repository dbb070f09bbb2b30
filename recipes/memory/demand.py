"""The load that a recipe puts on its GPUs: the work of student and teacher."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recipes.memory.shapes import Work
from recipes.memory.worker_sources import wrapping_of
from recipes.memory.wrapping import V1, Wrapping
from recipes.models.facts import ModelFacts, UnknownModel
from recipes.planning.setup import Setup, Side, value_at, whole

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe
    from recipes.models.hub import Models

Batch = Literal["train", "logprob"]


@dataclass(frozen=True, slots=True)
class Demand:
    """Load of the GPUs: the work of both models, and the vLLM engine's.

    `notes` say what is unknown, `assumed` what was taken for given.
    """

    setup: Setup
    student: Work | None
    teacher: Work | None
    notes: tuple[str, ...]
    assumed: tuple[str, ...] = ()


def demand_of(recipe: EffectiveRecipe, models: Models, checkout: Path | None = None) -> Demand:
    """Read the load that a recipe puts on its GPUs, with a checkout's workers (default: the newest's)."""
    setup = Setup.of(recipe)
    notes: list[str] = []
    assumed: list[str] = []
    works: list[Work | None] = []
    if setup.off_policy:
        return Demand(setup, None, None, ("not an on-policy distillation recipe: no single teacher",))
    for side in setup.sides:
        facts = models.find(side.model)
        reason = _unknown(side, facts)
        if reason or not isinstance(facts, ModelFacts):
            notes.append(f"{side.name}'s memory is unknown: {reason}")
            works.append(None)
            continue
        wrapping = V1
        if side.backend == "dtensor":
            v2 = bool(side.get("dtensor_cfg._v2"))
            source = wrapping_of(checkout, v2=v2)
            wrapping = source.wrapping
            if v2 and side.name == "policy" and not source.certain:
                assumed.append(f"policy: no source of Automodel to read; taken for {wrapping.name}")
        works.append(_work(setup, side, facts, wrapping))
    return Demand(setup, works[0], works[1], tuple(notes), tuple(assumed))


def _unknown(side: Side, facts: ModelFacts | UnknownModel) -> str:
    """Return why a side's memory is unknown; "" where it is not."""
    if isinstance(facts, UnknownModel):
        return f"{facts.reason}. {facts.fix}"
    if facts.params is None:
        return f"the layers of {facts.id} are of different kinds"
    if not side.divides:
        return f"{side.gpus} GPUs do not hold whole copies of {side.width}"
    return ""


def _work(setup: Setup, side: Side, facts: ModelFacts, wrapping: Wrapping) -> Work:
    teacher = side.name == "teacher"
    kind: Batch = "logprob" if teacher else "train"
    tokens, length = _tokens(setup, side, kind)
    dtensor = side.backend == "dtensor"
    work = Work(
        facts=facts,
        gpus=side.gpus,
        tp=side.tp,
        cp=side.cp,
        pp=side.pp,
        tokens=tokens,
        rows=max(tokens // length, 1) if length else 1,
        micro_batches=1,
        checkpointing=side.get(f"{side.section}.activation_checkpointing") is True,
        cpu_offload=dtensor and side.get("dtensor_cfg.cpu_offload") is True,
        chunk=whole(side.get("logprob_chunk_size")) if teacher else None,
        megatron=side.backend == "megatron",
        sequence_parallel=side.sequence_parallel and side.tp > 1,
        defer_fp32_logits=side.get("megatron_cfg.defer_fp32_logits") is True,
        packed=_packed(side, tokens) if side.packing and not teacher else (),
        dynamic=side.dynamic,
        zero_outside_topk=not teacher and value_at(setup.recipe, "loss_fn.zero_outside_topk") is True,
        entropy=value_at(setup.recipe, "loss_fn.kl_type") != "forward",
        lora_rank=_lora_rank(side) if dtensor and not teacher else 0,
        expert_parallel=_divisor(side, "expert_parallel_size", side.gpus) if dtensor else 1,
        replicas=_divisor(side, "dp_replicate_size", side.dp) if dtensor else 1,
        wrapping=wrapping,
    )
    return work if teacher else replace(work, micro_batches=micro_batches(setup, side, work, side.dp))


def _divisor(side: Side, key: str, whole_size: int) -> int:
    """Return a size of DTensor's that divides a number of GPUs; 1 where it does not."""
    size = side.count(f"dtensor_cfg.{key}")
    return size if whole_size % size == 0 else 1


def _lora_rank(side: Side) -> int:
    if side.get("dtensor_cfg.lora_cfg.enabled") is not True:
        return 0
    return side.count("dtensor_cfg.lora_cfg.dim", 8)


def _tokens(setup: Setup, side: Side, kind: Batch) -> tuple[int, int]:
    """Return tokens of the fullest micro batch and of its longest row.

    Batching fills the micro batch; without, it is the longest samples. A packed micro batch is one row.
    """
    longest = setup.policy.length or side.length or 0
    for batching, on in (("dynamic_batching", side.dynamic), ("sequence_packing", side.packing)):
        filled = whole(side.get(f"{batching}.{kind}_mb_tokens")) if on else None
        if filled and filled > 0:
            return filled, filled if batching == "sequence_packing" else min(longest or filled, filled)
    size = side.count("train_micro_batch_size" if kind == "train" else "logprob_batch_size")
    return longest * size, longest


def micro_batches(setup: Setup, side: Side, work: Work, dp: int) -> int:
    """Return the micro batches of a step on one of `dp` ranks, at most: with samples of full length."""
    samples = max(setup.global_batch // dp, 1)
    if side.packing or side.dynamic:
        longest = setup.policy.length or work.tokens
        return max(-(-samples * longest // work.tokens), 1) if work.tokens else 1
    return max(samples // work.rows, 1)


def _packed(side: Side, tokens: int) -> tuple[int, ...]:
    """Return the lengths of sequences that take the most: those between the first and the last cost.

    Algorithms that pack the longest first leave at most half a row for the second; others up to all of it.
    """
    decreasing = "decreasing" in str(side.get("sequence_packing.algorithm")).lower()
    ends = (tokens // 2, 1) if decreasing else (1, 1)
    return ends[0], max(tokens - sum(ends), 1), ends[1]
