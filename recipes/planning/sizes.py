"""Legal sizes: parallel sizes for a model on so many GPUs, batches that divide, padding, time to save by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.models import ModelFacts
    from recipes.planning.setup import Side


_LARGEST_DIVIDED = 10**9
"""Sizes are not looked for past this: it takes 1 ms here, and no recipe comes near it."""


@dataclass(frozen=True, slots=True)
class Parallel:
    """Tensor, context and pipeline parallel sizes."""

    tp: int
    cp: int = 1
    pp: int = 1

    @property
    def width(self) -> int:
        """GPUs that hold one copy of the model."""
        return self.tp * self.cp * self.pp


def divisors(number: int) -> list[int]:
    """Return the divisors of a positive number, smallest first; none past `_LARGEST_DIVIDED`."""
    if not 0 < number <= _LARGEST_DIVIDED:
        return []
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    return sorted({*small, *(number // size for size in small)})


def heads_allow(facts: ModelFacts | None, tp: int) -> bool:
    """Return whether a model's attention heads divide by a tensor parallel size; unknown models allow all."""
    return facts is None or (facts.heads % tp == 0 and facts.kv_heads % tp == 0)


def legal_parallel(
    gpus: int, facts: ModelFacts | None, *, node_gpus: int | None = None, pipeline: bool = False
) -> Iterator[Parallel]:
    """Yield all sizes that a model can run with on so many GPUs; tensor parallelism stays within a node."""
    for tp in divisors(gpus):
        if not heads_allow(facts, tp) or (node_gpus is not None and tp > node_gpus):
            continue
        for cp in divisors(gpus // tp):
            stages = divisors(gpus // tp // cp) if pipeline else [1]
            for pp in stages:
                if facts is None or facts.layers % pp == 0:
                    yield Parallel(tp, cp, pp)


def nearest_parallel(side: Side, gpus: int, facts: ModelFacts | None, node_gpus: int) -> list[Parallel]:
    """Return legal sizes on so many GPUs, the fewest and smallest changes first."""
    present = Parallel(side.tp, side.cp, side.pp)
    legal_sizes = list(legal_parallel(gpus, facts, node_gpus=node_gpus, pipeline=side.backend == "megatron"))

    def distance(size: Parallel) -> tuple[int, float, int]:
        pairs = ((present.tp, size.tp), (present.cp, size.cp), (present.pp, size.pp))
        changed = sum(before != after for before, after in pairs)
        steps = sum(max(before, after) / min(before, after) for before, after in pairs)
        return changed, steps, -size.tp

    return sorted((size for size in legal_sizes if size != present), key=distance)


def legal_global_batches(samples: int, dp: int, micro: int) -> list[int]:
    """Return the global batches that divide a step's samples and that the ranks' micro batches divide."""
    return [size for size in divisors(samples) if size % (dp * micro) == 0] if samples > 0 else []


def nearest_multiple(value: int, step: int) -> tuple[int, ...]:
    """Return the positive multiples of a step next to a value: below and above."""
    below = value // step * step
    return tuple(number for number in (below, below + step) if number > 0)


def must_save_by(time_left_s: float, *, setup_s: float, save_s: float, step_s: float) -> str | None:
    """Return `checkpoint_must_save_by` (DD:HH:MM:SS) for the time left at the driver's start.

    NeMo-RL's clock starts after set-up and it stops before a step that would pass the limit; None if
    there is no time for a single step.
    """
    budget = int(time_left_s - setup_s - save_s - step_s)
    if budget < step_s:
        return None
    hours, minutes = budget // 3600 % 24, budget // 60 % 60
    return f"{budget // 86400:02d}:{hours:02d}:{minutes:02d}:{budget % 60:02d}"
