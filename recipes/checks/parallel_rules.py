"""Rules on parallel sizes and batching: C33 to C37, C43 to C48, C53. They predict failures of the set-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.models import ModelFacts, UnknownModel
from recipes.planning.setup import Side
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
    facts = context.model_facts(side)
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
                    f"Required minimum world size: PP({side.pp}) * CP({side.cp}) * TP({side.tp}) = "
                    f"{side.width}."
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
    for side in context.sides:
        logprob = side.get("logprob_batch_size")
        train = side.get("train_micro_batch_size")
        there = context.has(side.key("logprob_batch_size"))
        if side.backend is None or side.tp < 4 or not there or train == logprob:
            continue
        keys = side.key("logprob_batch_size"), side.key("train_micro_batch_size")
        message = (
            f"{side.name}: with TP {side.tp}, train and logprob micro batches must agree "
            f"({shown(train)}, {shown(logprob)})"
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
        if isinstance(facts, UnknownModel):
            yield undecided(
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
            tp = legal[-1] if legal else 1
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
    """C47: the second worker refuses by the model's type since v0.6, before by its class like the first."""
    for side in context.sides:
        if side.backend != "dtensor" or side.cp == 1:
            continue
        facts = context.model(side)
        if isinstance(facts, UnknownModel):
            yield undecided(
                f"whether {side.name} can run with CP {side.cp}, {facts.reason}",
                facts.fix,
                side.size_key("cp"),
            )
            continue
        text = _refused(context, side, facts)
        if text:
            yield fail(
                f"{side.name}: {facts.id} ({facts.model_type or facts.family}) with CP {side.cp}",
                side.size_key("cp"),
                side.key("model_name"),
                fixes=[context.fix(side.size_key("cp"), 1)],
                foretells=text,
            )


def _refused(context: Context, side: Side, facts: ModelFacts) -> str:
    """Return with which text a worker refuses context parallelism for a model, "" if it does not."""
    kind = facts.model_type or facts.family
    second = bool(side.get("dtensor_cfg._v2"))
    if second and context.has_feature("Gemma3 by model type"):
        if kind == "qwen3_5" and context.has_feature("Qwen3.5"):
            return "Context parallel is not supported for Qwen3.5 dense models"
        return "Context parallel is not supported for Gemma3ForCausalLM." if kind == "gemma3" else ""
    return "Context parallel is not supported for Gemma3" if kind.startswith("gemma3") else ""


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


def _megatron_context(context: Context) -> Iterator[Finding]:
    """C53."""
    for side in context.sides:
        if side.backend == "megatron" and side.cp > 1 and not side.packing:
            key = side.key("sequence_packing.enabled")
            fixes = [context.fix(key, after=True), context.fix(side.size_key("cp"), 1)]
            yield fail(
                f"{side.name}: CP {side.cp} without sequence packing", key, side.size_key("cp"), fixes=fixes
            )


RULES = (
    Rule(
        "C33",
        "One training backend",
        _one_backend,
        "Configure either Megatron (policy.megatron_cfg.enabled=true) or DTensor",
        _POLICY,
    ),
    Rule(
        "C34",
        "Enough GPUs for a copy of the model",
        _enough_gpus,
        "World size (…) is insufficient for the parallelism configuration.",
        _POLICY,
    ),
    Rule(
        "C35",
        "GPUs divide into copies of the model",
        _gpus_divide,
        "World size (…) must be divisible by PP * CP * TP (…).",
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
        "num_attention_heads (…) must be divisible by TP size (…)",
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
        "Context parallel is not supported for Gemma3ForCausalLM.",
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
        "C53",
        "Megatron's context parallelism packs",
        _megatron_context,
        "Sequence Packing must be enabled to use Context Parallelism with MCore.",
        _MEGATRON,
    ),
)
