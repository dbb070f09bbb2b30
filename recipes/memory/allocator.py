"""Memory beyond allocated tensors: room for the allocator, the CUDA context, NCCL's buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.memory.rank_sizes import RankSizes, gib
from recipes.memory.shapes import SLACK_GIB, MemoryTerm, Moment, Work

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONTEXT_GIB = 0.82
"""One process's CUDA context with cuBLAS, on H200 with CUDA 13."""
COMMUNICATOR_GIB = 0.75
"""NCCL's buffers of a first communicator, two ranks."""
FURTHER_COMMUNICATOR_GIB = 0.44
"""NCCL's buffers of each further communicator: two ranks with one of context parallelism took 1.19 GiB."""
WIDE_COMMUNICATOR_GIB = 2.0
"""NCCL's buffers with tensor parallelism over four GPUs or more, at least: 2 to 6 GiB were seen on H100."""
IDLE_PROCESSES_GIB = 2 * CONTEXT_GIB
"""Contexts of the two other worker groups that share a GPU when generation is colocated."""

_RESERVED = {False: (0.51, 2.32, 0.30), True: (0.33, 0.49, 0.0)}
"""Fitted on the measured points, by teacher: what a monitor shows beyond the peak, as shares of 4 T and 4 R,
and GiB. Median error 3.5 and 4.7 %, worst 16 and 14 %."""
_SHAPES = 1.7
"""What more stays reserved when micro batches have many shapes, as a share of 4 T; ten shapes measured."""


def limit(moments: Iterable[Moment]) -> float:
    """Return the least memory in GiB with which the allocator is sure to run, without context and NCCL."""
    return max(moment.gib + SLACK_GIB + moment.block for moment in moments)


def reserved(work: Work, peak_gib: float, *, teacher: bool) -> float:
    """Return the GiB of torch's memory that a monitor will show, if the card has them; given back at need."""
    sizes = RankSizes(work)
    logits, root, constant = _RESERVED[teacher]
    logits += _SHAPES if work.dynamic and not teacher else 0.0
    return peak_gib + logits * gib(4 * sizes.logits) + root * gib(4 * sizes.root) + constant


def beside(work: Work, *, colocated: bool) -> Iterator[MemoryTerm]:
    """Yield what lies on the card beside torch's own memory."""
    yield MemoryTerm("CUDA context", CONTEXT_GIB)
    if colocated:
        yield MemoryTerm("other processes", IDLE_PROCESSES_GIB, "2 contexts")
    communicators = sum((work.shards > 1, work.tp > 1, work.cp > 1, work.pp > 1, work.replicas > 1))
    if communicators:
        buffers = COMMUNICATOR_GIB + (communicators - 1) * FURTHER_COMMUNICATOR_GIB
        wide = WIDE_COMMUNICATOR_GIB if work.tp >= 4 else 0.0
        yield MemoryTerm("communication buffers", max(buffers, wide))
