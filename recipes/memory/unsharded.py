"""Moments of a training step on one GPU without FSDP, as DTensor v2 runs it.

Autocast keeps a bf16 copy of every linear layer's weight until its context closes, and the backward pass runs
within it (nemo_rl/models/automodel/train.py); nothing is gathered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.activations import activations, held_arguments
from recipes.memory.logits import loss_logits
from recipes.memory.rank_sizes import RankSizes, gib
from recipes.memory.shapes import MemoryTerm, Moment
from recipes.memory.states import WORKSPACE, gradients, optimizer_temporaries, states

if TYPE_CHECKING:
    from collections.abc import Iterator


def bf16_copies(sizes: RankSizes) -> MemoryTerm:
    """Return autocast's copies of the linear layers' weights."""
    return MemoryTerm("bf16 copies of weights", gib(2 * sizes.linear + sizes.linear_rounding), "2 M")


def unsharded_moments(sizes: RankSizes) -> Iterator[Moment]:
    """Yield the moments of a step."""
    copies, early = bf16_copies(sizes), gradients(sizes, early=True)
    kept = (activations(sizes), *held_arguments(sizes))
    yield Moment(
        "loss",
        "the loss is differentiated",
        (*states(sizes), early, copies, *kept, loss_logits(sizes), WORKSPACE),
        gib(2 * sizes.logits),
    )
    head = MemoryTerm("head's gradient", gib(0 if sizes.work.lora_rank else 4 * sizes.embedding), "4 E")
    inside = MemoryTerm("one layer's backward pass", gib(_layer(sizes)), "6 P1 + t I")
    yield Moment(
        "layer-first",
        "the backward pass begins",
        (*states(sizes), early, copies, head, inside, *kept, WORKSPACE),
        gib(4 * sizes.layer),
    )
    whole = (*_whole_gradients(sizes),)
    if not sizes.work.lora_rank:
        formula = "4 E" if sizes.two else "8 E"
        root = MemoryTerm("root's gradients", gib((4 if sizes.two else 8) * sizes.embedding), formula)
        terms = (*states(sizes), *whole, copies, root, WORKSPACE)
        yield Moment("root", "the embedding's gradient is added", terms, gib(4 * sizes.embedding))
    yield Moment(
        "optimizer",
        "the optimizer steps",
        (*states(sizes), *whole, optimizer_temporaries(sizes), WORKSPACE),
        gib(4 * sizes.largest),
    )


def _layer(sizes: RankSizes) -> float:
    return 6 * sizes.layer + sizes.tokens * sizes.inner


def _whole_gradients(sizes: RankSizes) -> Iterator[MemoryTerm]:
    """Yield the gradients at the end of a backward pass, and what the allocator rounds them up by."""
    size = 4 * sizes.graded / sizes.work.sharing_gpus
    yield MemoryTerm("gradients", gib(size), "4 G/W")
    yield MemoryTerm("segments of the gradients", gib(0 if sizes.work.lora_rank else sizes.rounding))
