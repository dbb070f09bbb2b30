"""Rules on Megatron's settings: C55 to C57, C75. They predict failures of the set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, undecided
from recipes.models import ModelFacts, UnknownModel
from recipes.planning.setup import whole
from recipes.planning.sizes import divisors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Side

_MEGATRON = "models/megatron/setup.py"
_CORE = "Megatron-Core, transformer_config.py"


def _sides(context: Context) -> list[Side]:
    return [side for side in context.sides if side.backend == "megatron"]


def _chunks(context: Context) -> Iterator[Finding]:
    """C55."""
    for side in _sides(context):
        size = whole(side.get("logprob_chunk_size"))
        key = side.key("megatron_cfg.defer_fp32_logits")
        if size is not None and size > 0 and not context.get(key):
            fixes = [context.fix(key, after=True), context.fix(side.key("logprob_chunk_size"), None)]
            yield fail(
                f"{side.name}: logprob_chunk_size needs defer_fp32_logits",
                key,
                side.key("logprob_chunk_size"),
                fixes=fixes,
            )


def _optimizer_offload(context: Context) -> Iterator[Finding]:
    """C56: for the teacher as well, which has no optimizer but is checked all the same."""
    for side in _sides(context):
        base = side.key("megatron_cfg.optimizer")
        if context.get(f"{base}.optimizer_cpu_offload") is True:
            yield from _offloaded(context, base)
        elif context.get(f"{base}.overlap_cpu_optimizer_d2h_h2d") and context.has_feature(
            "optimizer offload overlap"
        ):
            key = f"{base}.overlap_cpu_optimizer_d2h_h2d"
            yield fail(
                f"{side.name}: overlapping the optimizer's copies needs optimizer_cpu_offload",
                key,
                fixes=[context.fix(key, after=False)],
                foretells="overlap_cpu_optimizer_d2h_h2d=True requires optimizer_cpu_offload=True",
            )


def _offloaded(context: Context, base: str) -> Iterator[Finding]:
    fraction = context.get(f"{base}.optimizer_offload_fraction")
    off = context.fix(f"{base}.optimizer_cpu_offload", after=False)
    number = fraction if isinstance(fraction, (int, float)) and not isinstance(fraction, bool) else None
    in_part = context.has_feature("optimizer offload in part")
    if number is None or not (0 < number <= 1 if in_part else number == 1):
        key = f"{base}.optimizer_offload_fraction"
        yield fail(
            f"{key} is {fraction}, {'not in (0, 1]' if in_part else 'it must be 1.0'}",
            key,
            fixes=[context.fix(key, 1.0), off],
            foretells=(
                "optimizer_cpu_offload=True requires 0 < optimizer_offload_fraction <= 1"
                if in_part
                else "Currently for optimizer offloading, only optimizer_offload_fraction=1.0 is supported"
            ),
        )
    if not in_part:
        return
    if not context.get(f"{base}.use_distributed_optimizer"):
        key = f"{base}.use_distributed_optimizer"
        yield fail(
            "offloading needs the distributed optimizer",
            key,
            fixes=[context.fix(key, after=True), off],
            foretells="optimizer_cpu_offload=True requires use_distributed_optimizer=True",
        )
    if context.get(f"{base}.optimizer") not in ("adam", "sgd"):
        key = f"{base}.optimizer"
        yield fail(
            "offloading needs adam or sgd",
            key,
            fixes=[context.fix(key, "adam"), off],
            foretells="optimizer_cpu_offload=True requires optimizer to be adam or sgd",
        )


def _optimizer_precision(context: Context) -> Iterator[Finding]:
    """C57."""
    for side in _sides(context):
        base = side.key("megatron_cfg.optimizer")
        name = {"bfloat16": "bf16", "float16": "fp16"}.get(str(side.get("precision")))
        if name is None or context.get(f"{base}.use_precision_aware_optimizer") is not True:
            continue
        key = f"{base}.{name}"
        if context.get(key) is not True:
            yield fail(
                f"{side.name}: its precision-aware optimizer with {side.get('precision')} needs {name}",
                key,
                fixes=[context.fix(key, after=True)],
                foretells=(
                    f"policy.megatron_cfg.optimizer.{name}=True must be set if "
                    f"policy.precision={side.get('precision')} when using use_precision_aware_optimizer=True"
                ),
            )


def _sizes(context: Context) -> Iterator[Finding]:
    """C75."""
    for side in _sides(context):
        if side.tp == side.pp == 1:
            continue
        facts = context.model(side)
        if isinstance(facts, UnknownModel):
            yield undecided(
                f"{side.name}'s heads and layers, {facts.reason}", facts.fix, side.key("model_name")
            )
        elif facts.regular:
            yield from _heads(context, side, facts)
            yield from _layers(context, side, facts)


def _heads(context: Context, side: Side, facts: ModelFacts) -> Iterator[Finding]:
    wrong = facts.heads % side.tp != 0
    groups = facts.kv_heads
    if not wrong and not (groups % side.tp and side.tp % groups):
        return
    name, count = ("num_attention_heads", facts.heads) if wrong else ("num_query_groups", groups)
    legal = [size for size in divisors(side.tp) if facts.heads % size == 0 and groups % size == 0]
    key = side.size_key("tp")
    yield fail(
        f"{side.name}: {facts.id} has {count} {'' if wrong else 'key-value '}heads, "
        f"no multiple of TP {side.tp}",
        key,
        side.key("model_name"),
        fixes=[context.fix(key, size) for size in reversed(legal)],
        foretells=f"{name} ({count}) must be a multiple of tensor_model_parallel_size ({side.tp}).",
    )


def _layers(context: Context, side: Side, facts: ModelFacts) -> Iterator[Finding]:
    if side.pp == 1 or side.get("megatron_cfg.pipeline_model_parallel_layout") is not None:
        return
    given = [whole(side.get(f"megatron_cfg.num_layers_in_{end}_pipeline_stage")) for end in ("first", "last")]
    set_ends = [count for count in given if count is not None]
    stages, layers = side.pp - len(set_ends), facts.layers - sum(set_ends)
    if layers >= 0 and ((stages == 0 and layers == 0) or (stages > 0 and layers % stages == 0)):
        return
    key = side.size_key("pp")
    legal = [size for size in divisors(facts.layers) if size < side.pp and side.gpus % size == 0]
    yield fail(
        f"{side.name}: {layers} layers of {facts.id} do not divide into {stages} pipeline stages",
        key,
        side.key("model_name"),
        fixes=[context.fix(key, size) for size in reversed(legal[-2:])] if not set_ends else [],
        foretells="number of layers must be divisible by the pipeline parallel size",
    )


RULES = (
    Rule(
        "C55",
        "Chunked logits in Megatron",
        _chunks,
        "defer_fp32_logits must be True if logprob_chunk_size is set",
        _MEGATRON,
    ),
    Rule(
        "C56",
        "Megatron's optimizer offload",
        _optimizer_offload,
        "optimizer_cpu_offload=True requires …",
        _MEGATRON,
    ),
    Rule(
        "C57",
        "Megatron's optimizer precision",
        _optimizer_precision,
        "policy.megatron_cfg.optimizer.bf16=True must be set if policy.precision=bfloat16",
        _MEGATRON,
    ),
    Rule(
        "C75",
        "Megatron's sizes fit the model",
        _sizes,
        "must be a multiple of tensor_model_parallel_size",
        _CORE,
    ),
)
