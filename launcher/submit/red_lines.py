"""Requests that can never work, whatever the user confirms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from launcher.errors import InputError
from launcher.submit.submission import Submission
from recipes.planning import Setup

if TYPE_CHECKING:
    from launcher.clusters.inventory import Partition

_MIG = re.compile(r"(?:^|[_+.-])\d+g\.\d+gb", re.IGNORECASE)
"""A MIG profile in a GRES type (`a100_1g.5gb`, `nvidia_h100_80gb_hbm3_3g.40gb`)."""


def require_whole_gpus(submission: Submission, partition: Partition | None) -> None:
    """Refuse a model that spans several MIG slices: neither NCCL nor CUDA connects them.

    NVIDIA MIG user guide, "CUDA device enumeration": a process sees one slice; there is no peer access.

    Raises:
        InputError: a parallel size is above 1 where the partition's GPUs are slices.
    """
    options = submission.layout.options
    kinds = [mix.gpus.type for mix in partition.mix] if partition is not None else []
    slices = next((kind for kind in kinds if _MIG.search(kind)), "")
    if not slices or partition is None or options.kind == "rehearsal":
        return
    sizes = _parallel_sizes(submission)
    if sizes:
        raise InputError(
            f"{partition.name} has MIG slices ({slices}): a model cannot span them ({', '.join(sizes)})",
            where=options.request.recipe,
            fix="Set these sizes to 1 (one model per slice), or take a partition with whole GPUs.",
        )


def _parallel_sizes(submission: Submission) -> list[str]:
    """Return the parallel sizes above 1, as `KEY=SIZE`."""
    setup = Setup.of(submission.recipe)
    sizes = [
        (f"{side.name} {name.upper()}", getattr(side, name))
        for side in setup.sides
        for name in ("tp", "cp", "pp")
    ]
    engine = submission.recipe.get("policy.generation.vllm_cfg.tensor_parallel_size", 1)
    sizes.append(("generation TP", engine))
    return [f"{name} {size}" for name, size in sizes if isinstance(size, int) and size > 1]
