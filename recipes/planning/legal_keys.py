"""Sizes that a key of a recipe may have while all others stay as they are, by arithmetic alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from recipes.planning.setup import Setup, Side
from recipes.planning.sizes import divisors, heads_allow, legal_global_batches, legal_parallel

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.models import ModelFacts

_AXES: dict[str, Literal["tp", "cp", "pp"]] = {
    "tensor_parallel_size": "tp",
    "tensor_model_parallel_size": "tp",
    "context_parallel_size": "cp",
    "pipeline_model_parallel_size": "pp",
}
_PARALLEL = re.compile(r"(policy|teacher)\.(?:dtensor_cfg|megatron_cfg)\.(\w+)")
_MICRO = re.compile(r"(policy|teacher)\.(train_micro_batch_size|logprob_batch_size)")
_DIVISOR = re.compile(r"(policy|teacher)\.make_sequence_length_divisible_by")
_LARGEST_MICRO = 64
_NODES = (1, 2, 4, 8, 16, 32)
_MULTIPLES = (1, 2, 4, 8, 16)


def legal_sizes(key: str, setup: Setup, facts_of: Callable[[Side], ModelFacts | None]) -> tuple[int, ...]:
    """Return the sizes that a key may have, smallest first; () for a key that is no size.

    `facts_of` returns the facts of a side's model, None where they are unknown: then all heads divide.
    """
    if match := _PARALLEL.fullmatch(key):
        axis = _AXES.get(match[2])
        return _parallel(_side(setup, match[1]), axis, setup, facts_of) if axis else ()
    if key == "policy.generation.vllm_cfg.tensor_parallel_size":
        facts = facts_of(setup.policy)
        return tuple(size for size in divisors(setup.gpus_per_node) if heads_allow(facts, size))
    if key == "policy.train_global_batch_size":
        return _global_batches(setup)
    if key == "distillation.num_prompts_per_step":
        return _prompts(setup)
    if match := _MICRO.fullmatch(key):
        # A log-probability pass scores all samples of a step, a training step a global batch of them.
        trains = match[2] == "train_micro_batch_size"
        return _micro_batches(
            _side(setup, match[1]), setup.global_batch if trains else setup.samples_per_step
        )
    if match := _DIVISOR.fullmatch(key):
        return tuple(_side(setup, match[1]).required_divisor * factor for factor in _MULTIPLES)
    if key == "cluster.num_nodes":
        return _NODES
    if key == "cluster.gpus_per_node":
        return _NODES[:4]
    return ()


def _side(setup: Setup, name: str) -> Side:
    return setup.policy if name == "policy" else setup.teacher


def _parallel(
    side: Side,
    axis: Literal["tp", "cp", "pp"],
    setup: Setup,
    facts_of: Callable[[Side], ModelFacts | None],
) -> tuple[int, ...]:
    if not side.gpus:
        return ()
    present = {"tp": side.tp, "cp": side.cp, "pp": side.pp}
    others = [name for name in present if name != axis]
    legal = legal_parallel(
        side.gpus, facts_of(side), node_gpus=setup.gpus_per_node, pipeline=side.backend == "megatron"
    )
    sizes = {
        getattr(size, axis) for size in legal if all(getattr(size, name) == present[name] for name in others)
    }
    return tuple(sorted(sizes))


def _global_batches(setup: Setup) -> tuple[int, ...]:
    side = setup.policy
    if not side.divides:
        return ()
    micro = 1 if side.dynamic or side.packing else side.count("train_micro_batch_size")
    return tuple(legal_global_batches(setup.samples_per_step, side.dp, micro))


def _prompts(setup: Setup) -> tuple[int, ...]:
    """Return numbers of prompts whose samples the global batch and the ranks divide."""
    batch, each = setup.global_batch, setup.samples_per_step
    prompts = setup.recipe.get("distillation.num_prompts_per_step")
    if not batch or not each or not isinstance(prompts, int) or prompts <= 0:
        return ()
    per_prompt = each // prompts
    return tuple(
        count
        for count in (prompts // 4, prompts // 2, prompts, prompts * 2, prompts * 4)
        if count > 0 and count * per_prompt % batch == 0
    )


def _micro_batches(side: Side, samples: int) -> tuple[int, ...]:
    if not samples or not side.divides or samples % side.dp:
        return ()
    return tuple(size for size in divisors(samples // side.dp) if size <= _LARGEST_MICRO)
