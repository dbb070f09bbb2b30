"""Rules on training backends: C49 to C52, C54, C67, C69. They predict failures of the set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Side


_POLICY = "models/policy/lm_policy.py"
_SETUP = "models/automodel/setup.py"
_YARN = (
    *("factor", "rope_theta", "original_max_position_embeddings", "truncate"),
    *("beta_fast", "beta_slow", "mscale", "mscale_all_dim"),
)
"""_YARN_REQUIRED_FIELDS of models/megatron/setup.py."""
_TYPES = ("float32", "bfloat16", "float16")
_OF_VLLM = ("auto", "half", "float16", "bfloat16", "float", "float32", "fp8")
_FORMATS = ("safetensors", "torch_save")
"""Members of Automodel's SerializationFormat."""


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
        elif side.backend == "megatron" and context.get(key) == "yarn":
            yield from _yarn_fields(context, side, key.rpartition(".")[0])


def _yarn_fields(context: Context, side: Side, key: str) -> Iterator[Finding]:
    """Find the fields that Megatron's YaRN lacks: it takes none from the model."""
    scaling = context.get(key)
    missing = [name for name in _YARN if name not in scaling] if isinstance(scaling, dict) else []
    if missing and context.has_feature("YaRN's fields"):
        yield fail(
            f"{side.name}: YaRN with Megatron needs {', '.join(missing)} as well",
            key,
            fixes=[context.removal(key)],
            foretells="rope_scaling.rope_type is 'yarn' but the following required fields are not set",
        )


def _precision(context: Context) -> Iterator[Finding]:
    """C51."""
    for side in context.sides:
        key = side.key("precision")
        value = context.get(key)
        if side.backend is None or not isinstance(value, str):
            continue
        if value not in _TYPES:
            text = f"KeyError: '{value}'" if side.backend == "megatron" else f"Unknown precision: {value}"
            yield fail(
                f"{key} is {value}, not float32, bfloat16 or float16",
                key,
                fixes=[context.fix(key, "bfloat16")],
                foretells=text,
            )
        elif side.backend == "megatron" and value == "float32" and context.has_feature("Megatron precision"):
            yield from _full_precision(context, side)
    yield from _other_precisions(context)


def _other_precisions(context: Context) -> Iterator[Finding]:
    """Names of types for pipeline stages, of which Megatron knows three, and for vLLM."""
    entries: list[tuple[str, tuple[str, ...], str]] = [
        (side.key("megatron_cfg.pipeline_dtype"), _TYPES, "KeyError: '{}'")
        for side in context.sides
        if side.backend == "megatron"
    ]
    if context.get("policy.generation.backend") == "vllm":
        entries.append(("policy.generation.vllm_cfg.precision", _OF_VLLM, "Unknown dtype: '{}'"))
    for key, names, text in entries:
        value = context.get(key)
        if isinstance(value, str) and value not in names:
            yield fail(
                f"{key} is {value}, not {', '.join(names[:-1])} or {names[-1]}",
                key,
                fixes=[context.fix(key, "bfloat16")],
                foretells=text.format(value),
            )


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
        elif replicas > 1 and side in context.placed and replicas >= side.dp:
            text = f"dp_replicate_size={replicas} must be less than dp_size={side.dp} since DDP usecase"
            yield fail(
                f"{side.name}: {replicas} replicas of {side.dp} data-parallel ranks leave nothing to shard",
                copies,
                fixes=[context.fix(copies, replicas // 2), context.fix(copies, 1)],
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
    """C67: for the teacher as well, which drafts nothing but is made by the same class."""
    for side in context.sides:
        key = side.key("draft.enabled")
        if context.get(key) is not True or side.backend is None:
            continue
        fixes = [context.fix(key, after=False)]
        if side.backend != "megatron":
            yield fail(f"{side.name}: a draft model needs the Megatron backend", key, fixes=fixes)
        elif side.packing:
            text = "policy.draft.enabled=true does not support sequence packing yet."
            yield fail(
                f"{side.name}: a draft model excludes sequence packing", key, fixes=fixes, foretells=text
            )


def _save_format(context: Context) -> Iterator[Finding]:
    """C69: NeMo-RL asks for `dtensor_cfg._v2` alone, also where Megatron trains."""
    side = context.setup.policy
    key = "checkpointing.model_save_format"
    value = context.get(key)
    if side.backend is None or context.get("checkpointing.enabled") is not True or value is None:
        return
    if not side.get("dtensor_cfg._v2"):
        fixes = [context.fix(key, None), context.fix("policy.dtensor_cfg._v2", after=True)]
        worker = "Megatron" if side.backend == "megatron" else "the first DTensor worker"
        yield fail(
            f"{key} is {shown(value)}, but without policy.dtensor_cfg._v2 {worker} has no such format",
            key,
            "policy.dtensor_cfg._v2",
            fixes=fixes,
        )
    elif side.backend == "dtensor" and value not in _FORMATS:
        yield fail(
            f"{key} is {shown(value)}, not {' or '.join(_FORMATS)}",
            key,
            fixes=[context.fix(key, name) for name in _FORMATS],
            foretells=f"Unsupported model save format: {shown(value)}",
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
    Rule(
        "C69",
        "Checkpoint format of the DTensor workers",
        _save_format,
        "model_save_format must be None or omitted if using DTensorPolicyWorker (_v2=False). "
        "(at the first save)",
        _POLICY,
    ),
)
