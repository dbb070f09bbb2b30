"""Rules on what generates, and how weights reach it: C71 to C74, C78."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided
from recipes.models import UnknownModel
from recipes.planning.setup import whole
from recipes.planning.sizes import divisors

if TYPE_CHECKING:
    from collections.abc import Iterator

_BACKEND = "policy.generation.backend"
_BASE = "policy.generation.vllm_cfg"
_TRANSPORTS = ("nccl_reshard", "vllm_s3_sparse", "vllm_zmq_sparse", "nixl")
_SETUP = "models/automodel/setup.py"


def _backend(context: Context) -> Iterator[Finding]:
    """C71: other backends of NeMo-RL are for GRPO; distillation makes no generation object for them."""
    value = context.get(_BACKEND)
    if isinstance(value, str) and value not in ("vllm", "megatron"):
        yield fail(
            f"{_BACKEND} is {value}, distillation generates with vllm or megatron",
            _BACKEND,
            fixes=[context.fix(_BACKEND, "vllm")],
            foretells="UnboundLocalError: cannot access local variable 'student_generation'",
        )


def _lora_kernel(context: Context) -> Iterator[Finding]:
    """C72."""
    for side in context.sides:
        base = side.key("dtensor_cfg.lora_cfg")
        key = f"{base}.use_triton"
        second = side.backend == "dtensor" and bool(side.get("dtensor_cfg._v2"))
        if second and side.tp > 1 and context.get(f"{base}.enabled") is True and context.get(key):
            yield fail(
                f"{side.name}: LoRA's Triton kernel with TP {side.tp}",
                key,
                side.size_key("tp"),
                fixes=[context.fix(key, after=False), context.fix(side.size_key("tp"), 1)],
            )


def _transport(context: Context) -> Iterator[Finding]:
    """C73."""
    if context.get(_BACKEND) != "vllm":
        return
    old = "policy.generation.checkpoint_engine"
    if context.get(old) is not None:
        yield fail(
            f"{old} has been replaced by refit_transport and refit_cfg",
            old,
            fixes=[context.removal(old)],
            foretells="policy.generation.checkpoint_engine was replaced by",
        )
    key = "policy.generation.refit_transport"
    value = context.get(key)
    if value is None:
        return
    if not isinstance(value, str) or (value not in _TRANSPORTS and ":" not in value):
        yield fail(
            f"{key} is {shown(value)}, not null, {', '.join(_TRANSPORTS)} or a 'module:ClassName'",
            key,
            fixes=[context.removal(key)],
            foretells=f"Unknown vLLM refit transport {value!r}",
        )
        return
    scope = context.get("policy.generation.refit_cfg")
    if ":" in value and not (isinstance(scope, dict) and scope.get(value) is not None):
        yield fail(
            f"{key} is {value}, for which policy.generation.refit_cfg has no entry",
            key,
            fixes=[context.removal(key)],
            foretells=f"Custom checkpoint-engine transport {value!r} requires ",
        )
    elif (value == "nixl" or ":" in value) and context.setup.colocated:
        yield fail(
            f"{key} is {value}, but generation shares the GPUs with training",
            key,
            "policy.generation.colocated.enabled",
            fixes=[context.removal(key)],
            foretells="checkpoint-engine refit is only supported for non-colocated ",
        )


def _heads(context: Context) -> Iterator[Finding]:
    """C74: vLLM shares out whole heads."""
    key = f"{_BASE}.tensor_parallel_size"
    size = whole(context.get(key)) or 1
    side = context.setup.policy
    if context.get(_BACKEND) != "vllm" or size <= 1 or not side.model:
        return
    facts = context.model(side)
    if isinstance(facts, UnknownModel):
        yield undecided(f"whether vLLM can share {side.model} by TP {size}, {facts.reason}", facts.fix, key)
    elif facts.heads % size:
        gpus = max(context.setup.generation_gpus, 1)
        pipeline = max(context.setup.vllm_width // size, 1)
        legal = [tp for tp in divisors(facts.heads) if tp < size and gpus % (tp * pipeline) == 0]
        yield fail(
            f"{facts.id} has {facts.heads} attention heads, no multiple of vLLM's TP {size}",
            key,
            side.key("model_name"),
            fixes=[context.fix(key, tp) for tp in reversed(legal[-3:])],
            foretells=(
                f"Total number of attention heads ({facts.heads}) must be divisible by "
                f"tensor parallel size ({size})."
            ),
        )
    elif facts.kv_heads % size and size % facts.kv_heads:
        legal = [
            tp
            for tp in divisors(facts.heads)
            if tp < size and not (facts.kv_heads % tp and tp % facts.kv_heads)
        ]
        yield fail(
            f"{facts.id} has {facts.kv_heads} key-value heads, which TP {size} neither shares nor repeats",
            key,
            side.key("model_name"),
            fixes=[context.fix(key, tp) for tp in reversed(legal[-3:])],
            foretells="AssertionError: assert tp_size % self.total_num_kv_heads == 0",
        )


def _memory(context: Context) -> Iterator[Finding]:
    """C78."""
    key = f"{_BASE}.gpu_memory_utilization"
    value = context.get(key)
    if context.get(_BACKEND) != "vllm" or not isinstance(value, (int, float)) or isinstance(value, bool):
        return
    if not 0 < value <= 1:
        yield fail(
            f"{key} is {value}, not in (0, 1]",
            key,
            fixes=[context.fix(key, 0.6)],
            foretells="GPU memory utilization must be in (0, 1]",
        )


RULES = (
    Rule(
        "C71",
        "A backend that distillation generates with",
        _backend,
        "UnboundLocalError: cannot access local variable 'student_generation'",
        "algorithms/distillation.py",
    ),
    Rule(
        "C72",
        "LoRA's kernel without tensor parallelism",
        _lora_kernel,
        "Triton is not supported when tensor_parallel_size > 1",
        _SETUP,
    ),
    Rule(
        "C73",
        "Ways for weights to reach vLLM",
        _transport,
        "Unknown vLLM refit transport",
        "models/generation/vllm/config.py, weight_sync/factory.py",
    ),
    Rule(
        "C74",
        "vLLM's tensor parallelism fits the heads",
        _heads,
        "Total number of attention heads must be divisible by tensor parallel size",
        "vLLM, config/model.py",
    ),
    Rule(
        "C78",
        "vLLM's share of the GPU memory",
        _memory,
        "GPU memory utilization must be in (0, 1]",
        "vLLM, config/cache.py",
    ),
)
