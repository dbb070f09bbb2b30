"""Weights, gradients and optimizer states of a rank; and what FSDP gathers beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.rank_sizes import RankSizes, gib
from recipes.memory.shapes import MemoryTerm

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKSPACE = MemoryTerm("workspace", 0.0733)
"""cuBLAS workspaces, position tables, inputs: what does not depend on the model; fitted (docs/memory.md)."""


def weights(sizes: RankSizes) -> MemoryTerm:
    """Return the fp32 weights; with CPU offload they lie in host memory."""
    offload = sizes.work.cpu_offload
    size = 0.0 if offload else 4 * sizes.work.params / sizes.work.sharing_gpus
    return MemoryTerm("weights", gib(size), "0 (offload)" if offload else "4 P/W")


def states(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield weights, Adam's moments and what the allocator rounds them up by."""
    work = sizes.work
    yield weights(sizes)
    if work.cpu_offload:
        yield MemoryTerm("Adam", 0.0, "0 (offload)")
        return
    trained = sizes.graded if work.lora_rank else work.params
    yield MemoryTerm("Adam", gib(8 * trained / work.sharing_gpus), "8 G/W" if work.lora_rank else "8 P/W")
    copies = 1 if work.lora_rank else 3
    yield MemoryTerm("segments of the allocator", gib(copies * sizes.rounding))


def several(sizes: RankSizes) -> bool:
    """Return whether a step has several micro batches, so that gradients of earlier ones are there."""
    return sizes.work.micro_batches > 1


def gradients(
    sizes: RankSizes, *, early: bool = False, less: float = 0.0, formula: str = "4 G/W"
) -> MemoryTerm:
    """Return the divided fp32 gradients, `less` bytes of those that are still to come.

    `early`: while the loss is differentiated. NeMo-RL never defers the reduction, so earlier micro batches
    have left theirs.
    """
    work = sizes.work
    if work.cpu_offload or (early and not several(sizes)):
        return MemoryTerm("gradients", 0.0, "0")
    size = 4 * sizes.graded / work.sharing_gpus
    if several(sizes) or early or work.lora_rank:
        return MemoryTerm("gradients", gib(size), "4 G/W")
    return MemoryTerm("gradients", gib(max(size - less, 0.0)), formula)


def gathered_root(sizes: RankSizes) -> MemoryTerm:
    """Return embedding and head in bf16; the root unit is not resharded until the backward pass is over."""
    return MemoryTerm("gathered embedding and head", gib(2 * sizes.root), "2 R")


def held_layers(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield the layers that recomputation has gathered again by the end of the backward pass."""
    work = sizes.work
    if work.checkpointing and work.wrapping.holds_layers and work.shards > 1 and not _own_class(sizes):
        size = (work.facts.layers - 1) * sizes.gathered_layer
        yield MemoryTerm("layers gathered again and held", gib(size), "(L - 1) 2 P1")


def whole_layer_checkpoints(sizes: RankSizes) -> bool:
    """Return whether whole layers are recomputed; v2's own classes for experts are not covered by that."""
    return sizes.work.wrapping.checkpoints != "parts" and not _own_class(sizes)


def _own_class(sizes: RankSizes) -> bool:
    return sizes.work.facts.experts > 0


def held_logits(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield the logits where they live on after the loss; NeMo-RL drops them."""
    if sizes.work.wrapping.logits_held:
        yield MemoryTerm("logits", gib(4 * sizes.logits), "4 T")


def optimizer_temporaries(sizes: RankSizes) -> MemoryTerm:
    """Return Adam's two temporaries of the largest matrix; none on the GPU with offload."""
    size = 0.0 if sizes.work.cpu_offload else 8 * sizes.largest
    return MemoryTerm("optimizer temporaries", gib(size), "0 (offload)" if sizes.work.cpu_offload else "8 B")
