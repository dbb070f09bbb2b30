"""Activations that a forward pass leaves for the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.rank_sizes import RankSizes, gib
from recipes.memory.shapes import MemoryTerm

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "activations"


def activations(sizes: RankSizes) -> MemoryTerm:
    """Return what the forward pass leaves: of each layer, and of the last norm and the head.

    Parts checkpointed: the bf16 inputs of two norms, attention and MLP. Layers checkpointed: their fp32
    output where the checkpoint lies outside FSDP's casts, else a bf16 copy. The embedding and the last norm
    are not recomputed.
    """
    work, layers = sizes.work, sizes.work.facts.layers / sizes.work.pp
    hidden = sizes.hidden_bytes
    if not work.checkpointing:
        kept = layers * sizes.inner * sizes.tokens + _end(sizes) * hidden + _padding_copies(sizes)
        return MemoryTerm(_NAME, gib(kept), f"t (L I + {2 * _end(sizes)} H)")
    if work.unsharded or work.wrapping.checkpoints == "layers outside FSDP":
        end = 5 if work.unsharded else 4
        return MemoryTerm(_NAME, gib(hidden * (2 * layers + end)), f"t (4 H L + {2 * end} H)")
    if work.wrapping.checkpoints == "layers":
        return MemoryTerm(_NAME, gib(hidden * (layers + 5)), "t (2 H L + 10 H)")
    return MemoryTerm(_NAME, gib(hidden * (4 * layers + _end(sizes))), f"t (8 H L + {2 * _end(sizes)} H)")


def _end(sizes: RankSizes) -> int:
    """Return the last norm's input and output in fp32 and the head's bf16 input, in bf16 tensors of 2 t H."""
    return 4 if sizes.work.wrapping.logits_held else 5


def _padding_copies(sizes: RankSizes) -> float:
    """Return the bytes that attention keeps with padding: the mask in bf16, keys and values per head."""
    work = sizes.work
    if not work.padded or work.wrapping.checkpoints == "parts":
        return 0.0
    widened = 4 * sizes.tokens * (work.facts.attention_width - work.facts.kv_width) / work.tp
    return work.facts.layers * (2 * sizes.mask + widened)


def held_arguments(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield the layers' arguments that reentrant checkpoints hold while a micro batch's loss lives.

    Rotary tables (cosine and sine, bf16), and the causal mask if there is one. `automodel_forward_backward`
    keeps the losses of all micro batches to the end of the step (nemo_rl/models/automodel/train.py).
    """
    work = sizes.work
    if work.unsharded:
        yield from _masks(sizes, 1)
        return
    if not (work.checkpointing and work.wrapping.checkpoints == "layers outside FSDP"):
        if work.padded and work.wrapping.checkpoints != "parts":
            yield from _masks(sizes, 1)
        return
    count = max(work.micro_batches, 1) if work.wrapping.keeps_losses else 1
    tables = count * 4 * sizes.tokens * work.facts.head_dim
    yield MemoryTerm("rotary tables", gib(tables), "4 t D m" if count > 1 else "4 t D")
    yield from _masks(sizes, count)


def _masks(sizes: RankSizes, count: int) -> Iterator[MemoryTerm]:
    if sizes.mask:
        formula = "rows (length / CP)^2"
        yield MemoryTerm("attention masks", gib(count * sizes.mask), formula + (" m" if count > 1 else ""))
