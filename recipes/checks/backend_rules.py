"""Rules on training backends: C49 to C52, C54, C67 to C69. They predict failures of the set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Side


_POLICY = "models/policy/lm_policy.py"
_SETUP = "models/automodel/setup.py"
_ADAM = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused"
_OPTIMIZERS = {
    "torch.optim.AdamW": _ADAM,
    "torch.optim.Adam": _ADAM + " decoupled_weight_decay",
    "torch.optim.SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
}


def _attention(context: Context) -> Iterator[Finding]:
    """C49."""
    for side in context.sides:
        key = side.key("dtensor_cfg.automodel_kwargs.attn_implementation")
        value = context.get(key)
        second = side.backend == "dtensor" and bool(side.get("dtensor_cfg._v2"))
        if second and side.packing and value not in (None, "flash_attention_2"):
            yield fail(
                f"{side.name}: sequence packing with attention '{value}'",
                key,
                side.key("sequence_packing.enabled"),
                fixes=[
                    context.fix(key, "flash_attention_2"),
                    context.fix(side.key("sequence_packing.enabled"), after=False),
                ],
            )


def _yarn(context: Context) -> Iterator[Finding]:
    """C50."""
    for side in context.sides:
        key = side.key("hf_config_overrides.rope_scaling.rope_type")
        second = side.backend == "dtensor" and bool(side.get("dtensor_cfg._v2"))
        if second and context.get(key) == "yarn":
            yield fail(
                f"{side.name}: YaRN needs the Megatron backend",
                key,
                fixes=[context.removal(key.rpartition(".")[0])],
            )


def _precision(context: Context) -> Iterator[Finding]:
    """C51."""
    for side in context.sides:
        key = side.key("precision")
        value = context.get(key)
        if side.backend is None or not isinstance(value, str):
            continue
        if value not in ("float32", "bfloat16", "float16"):
            text = f"KeyError: '{value}'" if side.backend == "megatron" else f"Unknown precision: {value}"
            yield fail(
                f"{key} is {value}, not float32, bfloat16 or float16",
                key,
                fixes=[context.fix(key, "bfloat16")],
                foretells=text,
            )
        elif side.backend == "megatron" and value == "float32" and context.has_feature("Megatron precision"):
            yield from _full_precision(context, side)


def _full_precision(context: Context, side: Side) -> Iterator[Finding]:
    """Megatron with float32 needs an optimizer that is not told another precision."""
    base = side.key("megatron_cfg.optimizer")
    wrong = [f"{base}.{name}" for name in ("bf16", "fp16") if context.get(f"{base}.{name}") is True]
    if wrong:
        yield fail(
            f"{side.name}: with precision float32, {' and '.join(wrong)} must be false",
            *wrong,
            side.key("precision"),
            fixes=[
                context.fix_all(dict.fromkeys(wrong, False)),
                context.fix(side.key("precision"), "bfloat16"),
            ],
            foretells=(
                "policy.megatron_cfg.optimizer.bf16=False and policy.megatron_cfg.optimizer.fp16=False "
                "must be set if policy.precision=float32"
            ),
        )


def _dtensor_options(context: Context) -> Iterator[Finding]:
    """C52."""
    for side in context.sides:
        if side.backend != "dtensor":
            continue
        second = bool(side.get("dtensor_cfg._v2"))
        replicas = side.count("dtensor_cfg.dp_replicate_size") if context.has_feature("replicas") else 1
        ranks = max(side.dp // side.count("dtensor_cfg.expert_parallel_size"), 1)
        v2, copies = side.key("dtensor_cfg._v2"), side.key("dtensor_cfg.dp_replicate_size")
        if replicas > 1 and not second:
            text = "dp_replicate_size > 1 requires policy.dtensor_cfg._v2: true"
            yield fail(
                f"{side.name}: replicas need the second DTensor worker",
                copies,
                v2,
                fixes=[context.fix(v2, after=True), context.fix(copies, 1)],
                foretells=text,
            )
        elif replicas > 1 and side in context.placed and ranks % replicas:
            text = f"Data parallel size ({ranks}) must be divisible by dp_replicate_size ({replicas})."
            yield fail(
                f"{side.name}: {replicas} replicas do not divide {ranks} data-parallel ranks",
                copies,
                fixes=[context.fix(copies, 1)],
                foretells=text,
            )
        lora = side.key("dtensor_cfg.lora_cfg.enabled")
        if context.get(lora) is True and not second:
            text = "LoRA is not supported for DTensorPolicyWorker V1"
            yield fail(
                f"{side.name}: LoRA needs the second DTensor worker",
                lora,
                v2,
                fixes=[context.fix(v2, after=True), context.fix(lora, after=False)],
                foretells=text,
            )
        offload = side.key("dtensor_cfg.cpu_offload")
        if context.get(offload) is True and second and side.gpus == 1 and context.has_feature("CPU offload"):
            text = "CPUOffload doesn't work on single GPU for AutoModel."
            yield fail(
                f"{side.name}: CPU offload on a single GPU",
                offload,
                fixes=[context.fix(offload, after=False)],
                foretells=text,
            )


def _arch_list(context: Context) -> Iterator[Finding]:
    """C54."""
    side = next((side for side in context.sides if side.backend == "megatron"), None)
    if side is None:
        return
    key = side.key("megatron_cfg.enabled")
    if context.variable("TORCH_CUDA_ARCH_LIST"):
        return
    if context.inputs.request.submitting:
        yield fail("TORCH_CUDA_ARCH_LIST is not set in the driver's environment (A100: 8.0, H100: 9.0)", key)
    else:
        need = "It needs TORCH_CUDA_ARCH_LIST (A100: 8.0, H100: 9.0), which is not set here."
        yield undecided("the driver's environment", need, key)


def _draft(context: Context) -> Iterator[Finding]:
    """C67."""
    side = context.setup.policy
    if side.get("draft.enabled") is not True or side.backend is None:
        return
    fixes = [context.fix("policy.draft.enabled", after=False)]
    if side.backend != "megatron":
        yield fail("a draft model needs the Megatron backend", "policy.draft.enabled", fixes=fixes)
    elif side.packing:
        text = "policy.draft.enabled=true does not support sequence packing yet."
        yield fail(
            "a draft model excludes sequence packing", "policy.draft.enabled", fixes=fixes, foretells=text
        )


def _optimizer(context: Context) -> Iterator[Finding]:
    """C68."""
    side = context.setup.policy
    if side.backend != "dtensor":
        return
    yield from _optimizer_itself(context)
    key = "policy.scheduler"
    if not context.has(key):
        return
    value = context.get(key)
    if value is None:
        yield fail(
            "policy.scheduler is null; without the key the rate is constant",
            key,
            fixes=[context.removal(key)],
            foretells="TypeError: 'NoneType' object is not iterable",
        )
    elif isinstance(value, dict):
        if "name" not in value or "kwargs" not in value:
            yield fail(
                "policy.scheduler needs name and kwargs",
                key,
                fixes=[context.removal(key)],
                foretells="KeyError: 'name'",
            )
    elif isinstance(value, list):
        yield from _scheduler_list(context, value)


def _optimizer_itself(context: Context) -> Iterator[Finding]:
    name, kwargs = context.get("policy.optimizer.name"), context.get("policy.optimizer.kwargs")
    key = "policy.optimizer.name"
    if not isinstance(name, str) or "." not in name or not isinstance(kwargs, dict):
        fixes = (
            [context.fix(key, f"torch.optim.{name}")]
            if isinstance(name, str) and f"torch.optim.{name}" in _OPTIMIZERS
            else []
        )
        yield fail(
            "policy.optimizer needs an importable name and kwargs",
            key,
            fixes=fixes,
            foretells="KeyError or ValueError when the optimizer is made",
        )
        return
    if name in _OPTIMIZERS:
        for wrong in sorted(set(kwargs) - set(_OPTIMIZERS[name].split())):
            entry = f"policy.optimizer.kwargs.{wrong}"
            text = f"TypeError: __init__() got an unexpected keyword argument '{wrong}'"
            yield fail(f"{name} takes no '{wrong}'", entry, fixes=[context.removal(entry)], foretells=text)
        return
    module = name.rpartition(".")[0]
    if module == "torch.optim":
        return
    yield undecided(
        f"whether {name} can be imported where the job runs",
        f"Try `python -c 'import {module}'` in the worker's environment.",
        key,
    )


def _scheduler_list(context: Context, entries: list[object]) -> Iterator[Finding]:
    key = "policy.scheduler"
    named = [entry for entry in entries if isinstance(entry, dict) and "name" in entry]
    marks = [entry["milestones"] for entry in entries if isinstance(entry, dict) and "milestones" in entry]
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not ({"name", "milestones"} & set(entry)):
            yield fail(
                f"{key}.{number} has neither name nor milestones",
                f"{key}.{number}",
                foretells="unknown scheduler config",
            )
            return
    last = marks[-1] if marks else None
    if not isinstance(last, list) or len(last) != len(named) - 1:
        have = len(last) if isinstance(last, list) else 0
        yield fail(
            f"{len(named)} schedulers in turn need {max(len(named) - 1, 0)} milestones, there are {have}",
            key,
            fixes=[context.removal(key)],
            foretells="Sequential Schedulers expects one more scheduler than milestone points",
        )


def _save_format(context: Context) -> Iterator[Finding]:
    """C69: NeMo-RL asks for `dtensor_cfg._v2` alone, also where Megatron trains."""
    side = context.setup.policy
    key = "checkpointing.model_save_format"
    first = side.backend is not None and not side.get("dtensor_cfg._v2")
    if first and context.get("checkpointing.enabled") is True and context.get(key) is not None:
        fixes = [context.fix(key, None), context.fix("policy.dtensor_cfg._v2", after=True)]
        worker = "Megatron" if side.backend == "megatron" else "the first DTensor worker"
        yield fail(
            f"{key} is {context.get(key)}, but without policy.dtensor_cfg._v2 {worker} has no such format",
            key,
            "policy.dtensor_cfg._v2",
            fixes=fixes,
        )


RULES = (
    Rule(
        "C49",
        "Attention that can pack",
        _attention,
        "sequence_packing requires attn_implementation='flash_attention_2'",
        _SETUP,
    ),
    Rule(
        "C50",
        "YaRN",
        _yarn,
        "YaRN RoPE scaling is not supported with the automodel (DTensor) backend.",
        _SETUP,
    ),
    Rule("C51", "Known precision", _precision, "Unknown precision", _SETUP),
    Rule(
        "C52",
        "Replicas, LoRA, CPU offload",
        _dtensor_options,
        "LoRA is not supported for DTensorPolicyWorker V1",
        f"{_POLICY}, {_SETUP}",
    ),
    Rule(
        "C54",
        "GPU architecture for Megatron",
        _arch_list,
        "TORCH_CUDA_ARCH_LIST is not set. This is required in Megatron backend.",
        _POLICY,
    ),
    Rule(
        "C67",
        "Draft models",
        _draft,
        "policy.draft.enabled=true is only supported with the Megatron backend.",
        _POLICY,
    ),
    Rule("C68", "Optimizer and scheduler", _optimizer, "unknown scheduler config: …", _SETUP),
    Rule(
        "C69",
        "Checkpoint format of the first DTensor worker",
        _save_format,
        "model_save_format must be None or omitted if using DTensorPolicyWorker (_v2=False). "
        "(at the first save)",
        _POLICY,
    ),
)
