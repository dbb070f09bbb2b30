"""A coarser account for the Megatron backend: no measurements stand behind it."""

from __future__ import annotations

from recipes.memory.shapes import GIB, MemoryTerm, Peak, Work
from recipes.memory.training import WORKSPACE_GIB, activations

_BF16, _FP32 = 2, 4
_DISTRIBUTED = 12
"""Bytes per parameter that the distributed optimizer divides: fp32 master copy and two moments."""
UNCERTAINTY = 0.3


def student_peak(work: Work) -> Peak:
    """Return the peak of a training step: whole bf16 weights and gradients, a divided optimizer."""
    local = work.params / (work.tp * work.pp)
    ranks = max(work.gpus // (work.tp * work.pp), 1)
    in_flight = work.pp  # the first stage holds one micro batch per stage behind it
    terms = (
        MemoryTerm("weights", local * _BF16 / GIB),
        MemoryTerm("gradients", local * _BF16 / GIB),
        MemoryTerm("Adam", local * _DISTRIBUTED / ranks / GIB),
        MemoryTerm("activations", activations(work) * in_flight),
        MemoryTerm("logits", _logits(work, _FP32 + _FP32 + _BF16)),
        MemoryTerm("workspace", WORKSPACE_GIB),
    )
    return Peak("the loss is differentiated", terms)


def teacher_peak(work: Work) -> Peak:
    """Return the peak of a forward pass; `defer_fp32_logits` casts chunk by chunk."""
    local = work.params / (work.tp * work.pp)
    logits = _logits(work, _BF16 + _FP32)
    if work.chunk and work.defer_fp32_logits:
        logits = _logits(work, _BF16) + work.chunk * work.facts.vocab / work.tp * _FP32 / GIB
    terms = (
        MemoryTerm("weights", local * _BF16 / GIB),
        MemoryTerm("logits", logits),
        MemoryTerm("workspace", WORKSPACE_GIB),
    )
    return Peak("logits are cast to fp32", terms)


def _logits(work: Work, bytes_each: int) -> float:
    return work.local_tokens * work.facts.vocab / work.tp * bytes_each / GIB
