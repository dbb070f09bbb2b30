"""A coarser account for the Megatron backend: no measurements stand behind it."""

from __future__ import annotations

from recipes.memory.activations import activations
from recipes.memory.rank_sizes import RankSizes
from recipes.memory.shapes import GIB, MemoryTerm, Moment, Work
from recipes.memory.states import WORKSPACE

_BF16, _FP32 = 2, 4
_DISTRIBUTED = 12
"""Bytes per parameter that the distributed optimizer divides: fp32 master copy and two moments."""


def student_moments(work: Work) -> tuple[Moment, ...]:
    """Return the peak of a training step: whole bf16 weights and gradients, a divided optimizer."""
    local = work.params / (work.tp * work.pp)
    ranks = max(work.gpus // (work.tp * work.pp), 1)
    in_flight = work.pp  # the first stage holds one micro batch per stage behind it
    kept = activations(RankSizes(work))
    terms = (
        MemoryTerm("weights", local * _BF16 / GIB, "2 P / (TP PP)"),
        MemoryTerm("gradients", local * _BF16 / GIB, "2 P / (TP PP)"),
        MemoryTerm("Adam", local * _DISTRIBUTED / ranks / GIB, "12 P/W"),
        MemoryTerm(
            "activations", kept.gib * in_flight, f"PP {kept.formula}" if in_flight > 1 else kept.formula
        ),
        MemoryTerm("logits", _logits(work, _FP32 + _FP32 + _BF16), "10 T"),
        WORKSPACE,
    )
    return (Moment("loss", "the loss is differentiated", terms, _logits(work, _BF16)),)


def teacher_moments(work: Work) -> tuple[Moment, ...]:
    """Return the peak of a forward pass; `defer_fp32_logits` casts chunk by chunk."""
    local = work.params / (work.tp * work.pp)
    logits, formula = _logits(work, _BF16 + _FP32), "6 T"
    if work.chunk and work.defer_fp32_logits:
        logits = _logits(work, _BF16) + work.chunk * work.facts.vocab / work.tp * _FP32 / GIB
        formula = "2 T + 4 chunk V/TP"
    terms = (
        MemoryTerm("weights", local * _BF16 / GIB, "2 P / (TP PP)"),
        MemoryTerm("logits", logits, formula),
        WORKSPACE,
    )
    return (Moment("logits", "logits are cast to fp32", terms, _logits(work, _BF16) / 4),)


def _logits(work: Work, bytes_each: int) -> float:
    return work.local_tokens * work.facts.vocab / work.tp * bytes_each / GIB
