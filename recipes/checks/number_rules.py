"""The rule on numbers that are too small for anything: C90. Other rules take such a size for 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown
from recipes.checks.data import datasets
from recipes.planning.setup import finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Side

OF_SIZES = frozenset(
    (
        *("C22", "C23", "C24", "C25", "C26", "C28", "C29", "C31", "C34", "C35", "C37", "C38", "C40"),
        *("C59", "C60", "C61", "C62", "C63", "C65", "C74", "C75", "C81", "C82", "C83", "C84", "C91"),
    )
)
"""Rules that compute with sizes, and would blame others where one is 0."""
_BY_ZERO = "ZeroDivisionError: integer modulo by zero"
_NO_GPUS = "num_gpus_per_node must be greater than 0 if using GPUs"
_GENERATION = "policy.generation"
_Least = tuple[str, int, object, str]
"""A key, its least value, a usual value, and the error of less."""


def _of_side(side: Side) -> Iterator[_Least]:
    for axis in ("tp", "cp", "pp") if side.backend == "megatron" else ("tp", "cp"):
        yield side.size_key(axis), 1, 1, _BY_ZERO
    if side.dynamic:
        yield side.key("dynamic_batching.sequence_length_round"), 1, 64, _BY_ZERO
    elif not side.packing:
        name = "train_micro_batch_size" if side.name == "policy" else "logprob_batch_size"
        yield side.key(name), 1, 1, _BY_ZERO
    if side.name == "policy" or side.packing:
        yield side.key("make_sequence_length_divisible_by"), 1, side.required_divisor, _BY_ZERO


def _least(context: Context) -> Iterator[_Least]:
    yield "cluster.num_nodes", 1, 1, "World size (0) is insufficient for the parallelism configuration."
    yield "cluster.gpus_per_node", 1, context.inputs.request.node_gpus or 8, _NO_GPUS
    yield "distillation.num_generations_per_prompt", 1, 1, "ValueError: an empty batch"
    yield "distillation.seed", 0, 42, "ValueError: Seed must be between 0 and 2**32 - 1"
    yield "policy.train_global_batch_size", 1, context.setup.samples_per_step or 1, _BY_ZERO
    yield "policy.max_total_sequence_length", 1, 8192, "ValueError: no room for a prompt"
    for side in context.sides:
        if side.backend is not None:
            yield from _of_side(side)
    if context.get(f"{_GENERATION}.backend") == "vllm":
        length = context.get("policy.max_total_sequence_length")
        for name in ("tensor_parallel_size", "pipeline_parallel_size"):
            yield f"{_GENERATION}.vllm_cfg.{name}", 1, 1, _BY_ZERO
        yield f"{_GENERATION}.vllm_cfg.max_model_len", 1, length, "ValueError: max_model_len"
        yield f"{_GENERATION}.max_new_tokens", 1, length, "max_tokens must be at least 1"
        yield f"{_GENERATION}.temperature", 0, 1.0, "temperature must be non-negative"
    for name in sorted({entry.env for entry in datasets(context.recipe) if entry.env}):
        yield f"env.{name}.num_workers", 1, 8, _BY_ZERO


def _numbers(context: Context) -> Iterator[Finding]:
    """C90: of numbers that follow from one another, the one that is written."""
    small = [
        entry
        for entry in _least(context)
        if (value := finite(context.get(entry[0]))) is not None and value < entry[1]
    ]
    written = [entry for entry in small if _is_written(context, entry[0])]
    for key, least, usual, text in written or small:
        yield fail(
            f"{key} is {shown(context.get(key))}, it must be at least {least}",
            key,
            fixes=[context.fix(key, usual), context.fix(key, max(least, 1))],
            foretells=text,
        )


def _is_written(context: Context, key: str) -> bool:
    origin = context.recipe.origin(key)
    return origin is None or origin.how != "interpolation"


RULES = (
    Rule("C90", "Numbers that are large enough", _numbers, _BY_ZERO, "distributed/batched_data_dict.py"),
)
