"""Rules on parallel sizes and training backends: C33 to C57, C67 to C69. They foretell the set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, cannot_tell, fail, warn
from recipes.models import Unknown
from recipes.planning.setup import Side, whole
from recipes.planning.sizes import divisors, nearest_parallel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Fix

_POLICY = "models/policy/lm_policy.py"
_SETUP = "models/automodel/setup.py"
_MEGATRON = "models/megatron/setup.py"


def _one_backend(context: Context) -> Iterator[Finding]:
    """C33."""
    for side in context.sides:
        if side.backend is not None or not isinstance(context.get(side.name), dict):
            continue
        both = side.get("megatron_cfg.enabled") is True
        keys = side.key("dtensor_cfg.enabled"), side.key("megatron_cfg.enabled")
        dtensor = {keys[0]: True, keys[1]: False}
        text = (
            "Configure either Megatron (policy.megatron_cfg.enabled=true) or DTensor "
            "(policy.dtensor_cfg.enabled=true), not both."
            if both
            else "Please either set policy.megatron_cfg.enabled=true to use Megatron training backend or set "
            "policy.dtensor_cfg.enabled=true to use DTensor training backend."
        )
        wanted = [dtensor] if both else [{keys[0]: True}]
        fixes = [context.fix_all(values) for values in wanted]
        fixes.append(context.fix_all({keys[0]: False, keys[1]: True} if both else {keys[1]: True}))
        message = f"{side.name}: {'both backends are' if both else 'no backend is'} enabled"
        yield fail(message, *keys, fixes=fixes, foretells=text)


def _size_fixes(context: Context, side: Side) -> list[Fix]:
    """Legal parallel sizes near the present ones, then more nodes."""
    facts = context.known(side)
    fixes = []
    for size in nearest_parallel(side, side.gpus, facts, context.setup.gpus_per_node)[:6]:
        pairs = [("tp", side.tp, size.tp), ("cp", side.cp, size.cp)]
        if side.backend == "megatron":
            pairs.append(("pp", side.pp, size.pp))
        fixes.append(
            context.fix_all({side.size_key(axis): after for axis, before, after in pairs if before != after})  # type: ignore[arg-type]
        )
    if context.setup.colocated:
        per_node = context.setup.gpus_per_node
        nodes = next(
            (n for n in range(context.setup.nodes + 1, 65) if (n * per_node) % side.width == 0), None
        )
        if nodes is not None:
            fixes.append(context.fix("cluster.num_nodes", nodes))
    return fixes


def _world(side: Side) -> str:
    return f"TP {side.tp} x CP {side.cp}" + (f" x PP {side.pp}" if side.backend == "megatron" else "")


def _world_keys(side: Side) -> list[str]:
    axes = ("tp", "cp", "pp") if side.backend == "megatron" else ("tp", "cp")
    return [side.size_key(axis) for axis in axes]  # type: ignore[arg-type]


def _enough_gpus(context: Context) -> Iterator[Finding]:
    """C34."""
    if not context.setup.split_is_legal:
        return
    for side in context.sides:
        if side.backend and side.gpus < side.width:
            yield fail(
                f"{side.name}: {_world(side)} needs {side.width} GPUs, there are {side.gpus}",
                *_world_keys(side),
                "cluster.num_nodes",
                "cluster.gpus_per_node",
                fixes=_size_fixes(context, side),
                foretells=(
                    f"World size ({side.gpus}) is insufficient for the parallelism configuration. "
                    f"Required minimum: PP({side.pp}) * CP({side.cp}) * TP({side.tp}) = {side.width}."
                ),
            )


def _gpus_divide(context: Context) -> Iterator[Finding]:
    """C35."""
    if not context.setup.split_is_legal:
        return
    for side in context.sides:
        if side.backend and side.gpus >= side.width and side.gpus % side.width:
            yield fail(
                f"{side.name}: {side.gpus} GPUs do not divide into copies of {_world(side)} = {side.width}",
                *_world_keys(side),
                "cluster.num_nodes",
                "cluster.gpus_per_node",
                fixes=_size_fixes(context, side),
                foretells=(f"World size ({side.gpus}) must be divisible by PP * CP * TP ({side.width})."),
            )


def _tp_accuracy(context: Context) -> Iterator[Finding]:
    """C36."""
    if context.checkout is not None and not context.checkout.tp_accuracy_check:
        return
    for side in context.sides:
        logprob = side.get("logprob_batch_size")
        train = side.get("train_micro_batch_size")
        if side.backend is None or side.tp < 4 or logprob is None or train == logprob:
            continue
        keys = side.key("logprob_batch_size"), side.key("train_micro_batch_size")
        message = (
            f"{side.name}: with TP {side.tp}, train and logprob micro batches must agree ({train}, {logprob})"
        )
        if context.variable("NRL_IGNORE_TP_ACCURACY_CHECK"):
            yield warn(f"{message}; NRL_IGNORE_TP_ACCURACY_CHECK lets it pass", *keys)
            continue
        fixes = [
            context.fix(keys[0], train),
            context.fix(keys[1], logprob),
            context.fix(side.size_key("tp"), 2),
        ]
        yield fail(message, *keys, side.size_key("tp"), fixes=fixes)


def _heads(context: Context) -> Iterator[Finding]:
    """C37."""
    for side in context.sides:
        if side.backend != "dtensor" or side.tp == 1:
            continue
        facts = context.model(side)
        if isinstance(facts, Unknown):
            yield cannot_tell(
                f"{side.name}'s attention heads, {facts.reason}", facts.fix, side.key("model_name")
            )
            continue
        heads = (("num_key_value_heads", facts.kv_heads), ("num_attention_heads", facts.heads))
        for name, count in heads:
            if count % side.tp == 0:
                continue
            legal = [
                size for size in divisors(side.tp) if facts.heads % size == 0 and facts.kv_heads % size == 0
            ]
            key = side.size_key("tp")
            tp = legal[-1]
            swap = {key: tp, side.size_key("cp"): side.cp * side.tp // tp}
            yield fail(
                f"{side.name}: {facts.id} has {count} {'key-value ' if 'key' in name else ''}heads, "
                f"no multiple of TP {side.tp}",
                key,
                side.key("model_name"),
                fixes=[context.fix(key, size) for size in reversed(legal)] + [context.fix_all(swap)],
                foretells=f"{name} ({count}) must be divisible by TP size ({side.tp})",
            )
            break


def _not_both_batchings(context: Context) -> Iterator[Finding]:
    """C43."""
    for side in context.sides:
        if side.dynamic and side.packing:
            keys = side.key("dynamic_batching.enabled"), side.key("sequence_packing.enabled")
            yield fail(
                f"{side.name}: dynamic batching and sequence packing exclude each other",
                *keys,
                fixes=[context.fix(keys[1], after=False), context.fix(keys[0], after=False)],
            )


def _dynamic_stages(context: Context) -> Iterator[Finding]:
    """C44."""
    for side in context.sides:
        if side.dynamic and side.pp > 1:
            key = side.key("dynamic_batching.enabled")
            packed = {key: False, side.key("sequence_packing.enabled"): True}
            fixes = [
                context.fix(key, after=False),
                context.fix_all(packed),
                context.fix(side.size_key("pp"), 1),
            ]
            yield fail(
                f"{side.name}: dynamic batching with PP {side.pp}", key, side.size_key("pp"), fixes=fixes
            )


def _packing_context(context: Context) -> Iterator[Finding]:
    """C45."""
    for side in context.sides:
        if side.backend == "dtensor" and side.cp > 1 and side.packing:
            key = side.key("sequence_packing.enabled")
            fixes = [context.fix(key, after=False), context.fix(side.size_key("cp"), 1)]
            yield fail(
                f"{side.name}: sequence packing with CP {side.cp}", key, side.size_key("cp"), fixes=fixes
            )


def _sequence_context(context: Context) -> Iterator[Finding]:
    """C46."""
    for side in context.sides:
        if side.backend == "dtensor" and side.cp > 1 and side.tp > 1 and side.sequence_parallel:
            key = side.key("dtensor_cfg.sequence_parallel")
            yield fail(
                f"{side.name}: sequence parallelism with TP {side.tp} and CP {side.cp}",
                key,
                side.size_key("cp"),
                fixes=[context.fix(key, after=False), context.fix(side.size_key("cp"), 1)],
            )


def _context_models(context: Context) -> Iterator[Finding]:
    """C47."""
    for side in context.sides:
        if side.backend != "dtensor" or side.cp == 1:
            continue
        facts = context.model(side)
        if isinstance(facts, Unknown):
            need = f"{facts.fix}"
            yield cannot_tell(
                f"whether {side.name} can run with CP {side.cp}, {facts.reason}", need, side.size_key("cp")
            )
        elif facts.family.startswith(("gemma3", "qwen3_5")) or side.get("is_vlm") is True:
            kind = "a vision-language model" if side.get("is_vlm") is True else facts.family
            yield fail(
                f"{side.name}: {facts.id} ({kind}) with CP {side.cp}",
                side.size_key("cp"),
                side.key("model_name"),
                fixes=[context.fix(side.size_key("cp"), 1)],
            )


def _sequence_alone(context: Context) -> Iterator[Finding]:
    """C48."""
    for side in context.sides:
        if side.backend == "dtensor" and side.sequence_parallel and side.tp == 1:
            key = side.key("dtensor_cfg.sequence_parallel")
            yield warn(
                f"{side.name}: sequence parallelism without tensor parallelism has no effect",
                key,
                fixes=[context.fix(key, after=False)],
            )


def _attention(context: Context) -> Iterator[Finding]:
    """C49."""
    for side in context.sides:
        key = side.key("dtensor_cfg.automodel_kwargs.attn_implementation")
        value = context.get(key)
        if side.backend == "dtensor" and side.packing and value not in (None, "flash_attention_2"):
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
        if side.backend == "dtensor" and context.get(key) == "yarn":
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
        if (
            side.backend == "dtensor"
            and isinstance(value, str)
            and value not in ("float32", "bfloat16", "float16")
        ):
            yield fail(
                f"{key} is {value}, not float32, bfloat16 or float16",
                key,
                fixes=[context.fix(key, "bfloat16")],
                foretells=f"Unknown precision: {value}",
            )


def _dtensor_options(context: Context) -> Iterator[Finding]:
    """C52."""
    for side in context.sides:
        if side.backend != "dtensor":
            continue
        second = side.get("dtensor_cfg._v2") is True
        replicas = side.count("dtensor_cfg.dp_replicate_size")
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
        elif replicas > 1 and side in context.placed and side.dp % replicas:
            text = f"Data parallel size ({side.dp}) must be divisible by dp_replicate_size ({replicas})."
            yield fail(
                f"{side.name}: {replicas} replicas do not divide {side.dp} data-parallel ranks",
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
        if context.get(offload) is True and second and side.gpus == 1:
            text = "CPUOffload doesn't work on single GPU for AutoModel."
            yield fail(
                f"{side.name}: CPU offload on a single GPU",
                offload,
                fixes=[context.fix(offload, after=False)],
                foretells=text,
            )


def _megatron_context(context: Context) -> Iterator[Finding]:
    """C53."""
    for side in context.sides:
        if side.backend == "megatron" and side.cp > 1 and not side.packing:
            key = side.key("sequence_packing.enabled")
            fixes = [context.fix(key, after=True), context.fix(side.size_key("cp"), 1)]
            yield fail(
                f"{side.name}: CP {side.cp} without sequence packing", key, side.size_key("cp"), fixes=fixes
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
        yield cannot_tell("the driver's environment", need, key)


def _chunks(context: Context) -> Iterator[Finding]:
    """C55."""
    for side in context.sides:
        size = whole(side.get("logprob_chunk_size"))
        key = side.key("megatron_cfg.defer_fp32_logits")
        if side.backend == "megatron" and size is not None and size > 0 and context.get(key) is not True:
            fixes = [context.fix(key, after=True), context.fix(side.key("logprob_chunk_size"), None)]
            yield fail(
                f"{side.name}: logprob_chunk_size needs defer_fp32_logits",
                key,
                side.key("logprob_chunk_size"),
                fixes=fixes,
            )


def _optimizer_offload(context: Context) -> Iterator[Finding]:
    """C56."""
    side = context.setup.policy
    base = "policy.megatron_cfg.optimizer"
    if side.backend != "megatron" or context.get(f"{base}.optimizer_cpu_offload") is not True:
        return
    fraction = context.get(f"{base}.optimizer_offload_fraction")
    off = context.fix(f"{base}.optimizer_cpu_offload", after=False)
    if not isinstance(fraction, (int, float)) or not 0 < fraction <= 1:
        key = f"{base}.optimizer_offload_fraction"
        yield fail(
            f"{key} is {fraction}, not in (0, 1]",
            key,
            fixes=[context.fix(key, 1.0), off],
            foretells="optimizer_cpu_offload=True requires 0 < optimizer_offload_fraction <= 1",
        )
    if context.get(f"{base}.use_distributed_optimizer") is not True:
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
    base = "policy.megatron_cfg.optimizer"
    aware = context.get(f"{base}.use_precision_aware_optimizer") is True
    key = f"{base}.bf16"
    if (
        context.setup.policy.backend == "megatron"
        and aware
        and context.get("policy.precision") == "bfloat16"
        and context.get(key) is not True
    ):
        yield fail(
            "a precision-aware optimizer with bfloat16 needs optimizer.bf16",
            key,
            fixes=[context.fix(key, after=True)],
        )


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


_ADAM = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused"
_OPTIMIZERS = {
    "torch.optim.AdamW": _ADAM,
    "torch.optim.Adam": _ADAM + " decoupled_weight_decay",
    "torch.optim.SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
}


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
    yield cannot_tell(
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
    """C69."""
    side = context.setup.policy
    key = "checkpointing.model_save_format"
    first = side.backend == "dtensor" and side.get("dtensor_cfg._v2") is not True
    if first and context.get("checkpointing.enabled") is True and context.get(key) is not None:
        fixes = [context.fix(key, None), context.fix("policy.dtensor_cfg._v2", after=True)]
        yield fail(
            f"{key} is {context.get(key)}, but the first DTensor worker writes no such format",
            key,
            "policy.dtensor_cfg._v2",
            fixes=fixes,
        )


RULES = (
    Rule("C33", "One training backend", _one_backend, "Configure either Megatron or DTensor", _POLICY),
    Rule("C34", "Enough GPUs for a copy of the model", _enough_gpus, "World size is insufficient", _POLICY),
    Rule(
        "C35",
        "GPUs divide into copies of the model",
        _gpus_divide,
        "World size must be divisible by PP * CP * TP",
        _POLICY,
    ),
    Rule(
        "C36",
        "Equal micro batches with TP >= 4",
        _tp_accuracy,
        "There is a known batch-variant accuracy issue with TP>=4 for both DTensor and Megatron backend.",
        _POLICY,
    ),
    Rule(
        "C37",
        "Heads divide by TP",
        _heads,
        "num_attention_heads must be divisible by TP size",
        "Automodel, parallelizer.py",
    ),
    Rule(
        "C43",
        "Dynamic batching or packing",
        _not_both_batchings,
        "Dynamic Batching is exclusive of Sequence Packing.",
        _POLICY,
    ),
    Rule(
        "C44",
        "Dynamic batching without stages",
        _dynamic_stages,
        "Dynamic batching is only supported for single pipeline parallel stage",
        _POLICY,
    ),
    Rule(
        "C45",
        "Packing without context parallelism",
        _packing_context,
        "Context parallel is not supported for sequence packing.",
        _SETUP,
    ),
    Rule(
        "C46",
        "Context or sequence parallelism",
        _sequence_context,
        "It's a known issue that context parallel can't be used together with sequence parallel",
        _SETUP,
    ),
    Rule(
        "C47",
        "Models that allow context parallelism",
        _context_models,
        "Context parallel is not supported for this model",
        _SETUP,
    ),
    Rule(
        "C48",
        "Sequence parallelism that has an effect",
        _sequence_alone,
        "[WARNING]: sequence_parallel=True, but tp_size=1 which has no effect.",
        _SETUP,
    ),
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
        "the DTensor worker refuses",
        f"{_POLICY}, {_SETUP}",
    ),
    Rule(
        "C53",
        "Megatron's context parallelism packs",
        _megatron_context,
        "Sequence Packing must be enabled to use Context Parallelism with MCore.",
        _MEGATRON,
    ),
    Rule(
        "C54",
        "GPU architecture for Megatron",
        _arch_list,
        "TORCH_CUDA_ARCH_LIST is not set. This is required in Megatron backend.",
        _POLICY,
    ),
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
        "C67",
        "Draft models",
        _draft,
        "policy.draft.enabled=true is only supported with the Megatron backend.",
        _POLICY,
    ),
    Rule("C68", "Optimizer and scheduler", _optimizer, "the optimizer or scheduler cannot be made", _SETUP),
    Rule(
        "C69",
        "Checkpoint format of the first DTensor worker",
        _save_format,
        "ValueError: model_save_format must be None or omitted, at the first save",
        _POLICY,
    ),
)
