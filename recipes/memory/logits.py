"""Logits, their gradient and their copies at the highest moment of the loss's backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.rank_sizes import RankSizes, gib
from recipes.memory.shapes import MemoryTerm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAME = "logits"


def loss_logits(sizes: RankSizes) -> MemoryTerm:
    """Return what lives of the logits while the loss is differentiated.

    fp32 logits, which the gathered top-k keeps, and their fp32 gradient; `del logits` has gone by
    (nemo_rl/models/automodel/train.py), so they go before the gradient's bf16 copy is made.
    """
    work, size = sizes.work, sizes.logits
    if work.zero_outside_topk:
        count = _zeroed(sizes)
        return MemoryTerm(_NAME, gib(count * size), f"{count} T")
    if len(work.packed) > 1:
        shares = [length / sum(work.packed) for length in work.packed]
        peak = max(
            _unsharded_packed(shares) if work.unsharded else _packed(shares, work.wrapping.logits_held)
        )
        return MemoryTerm(_NAME, gib(peak * size), f"{peak:.4g} T")
    if work.wrapping.logits_held:
        return MemoryTerm(_NAME, gib(10 * size), "10 T")
    return MemoryTerm(_NAME, gib(8 * size), "8 T")


def _zeroed(sizes: RankSizes) -> int:
    """Return the bytes per element with `loss_fn.zero_outside_topk` (nemo_rl/distributed/model_utils.py).

    Log-probabilities of all tokens and two gradients; the entropy adds their exponentials and its gradient.
    With TP or CP, chunks with a backward pass of their own keep the logits and a gradient each.
    """
    if sizes.work.tp == sizes.work.cp == 1:
        return 20 if sizes.work.entropy else 12
    return 12 if sizes.work.entropy else 8


def _packed(shares: Sequence[float], logits_held: bool) -> Iterator[float]:
    """Yield the bytes per element of the logits, sequence by sequence, the last first.

    The loss takes each sequence's part with `narrow`, whose backward pass makes zeros of the whole row (4)
    and adds them to the sum of those before (4); the logits (4) live until the first sequence is through.
    """
    for number in reversed(range(len(shares))):
        own = 4 * shares[number]
        summed = 4 if number < len(shares) - 1 else 0
        held = 4 if number > 0 or logits_held else 0
        yield 4 + summed + own
        yield held + summed + own + 4


def _unsharded_packed(shares: Sequence[float]) -> Iterator[float]:
    """Yield the same for one GPU without FSDP: bf16 logits, and an fp32 copy of each sequence's part."""
    for number in reversed(range(len(shares))):
        summed = 2 if number < len(shares) - 1 else 0
        yield 4 * sum(shares[: number + 1]) + summed + 4 * shares[number]
        yield 4 * sum(shares[:number]) + summed + 2 * shares[number] + 2
