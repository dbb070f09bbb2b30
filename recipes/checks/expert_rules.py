"""Rules on experts: C40 of vLLM's engines, C91 of training. They predict failures of the set-up."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, undecided
from recipes.models import ModelFacts, UnknownModel
from recipes.planning.setup import whole
from recipes.planning.sizes import divisors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Fix, Side

_VLLM = "policy.generation.vllm_cfg"
_CORE = "Megatron-Core, parallel_state.py and transformer_config.py; Automodel, mesh_utils.py"


def _engines(context: Context) -> Iterator[Finding]:
    """C40."""
    key, engine = f"{_VLLM}.expert_parallel_size", f"{_VLLM}.async_engine"
    expert, tensor, stages = (
        whole(context.get(f"{_VLLM}.{name}_parallel_size")) or 1 for name in ("expert", "tensor", "pipeline")
    )
    if context.get("policy.generation.backend") != "vllm" or expert <= 1:
        return
    fixes = [context.fix(key, tensor), context.fix(key, 1)]
    if expert % tensor:
        text = "When EP > 1, EP must be a multiple of TP since vLLM's EP = DP * TP."
        yield fail(f"EP {expert} is no multiple of TP {tensor}", key, fixes=fixes, foretells=text)
        return
    facts = context.model(context.setup.policy)
    if isinstance(facts, ModelFacts) and not facts.experts:
        text = "Number of experts in the model must be greater than 0 when expert parallelism is enabled."
        message = f"EP {expert}, but {facts.id} has no experts"
        yield fail(message, key, "policy.model_name", fixes=fixes[1:], foretells=text)
    elif expert != tensor and (context.get(engine) is True or context.gym):
        if not context.gym:  # NeMo-Gym needs the asynchronous engine
            fixes.insert(0, context.fix(engine, after=False))
        text = "vLLM async_engine has some issues when using DP inside vLLM."
        message = f"an asynchronous engine with EP {expert} and TP {tensor}"
        yield fail(message, key, engine, fixes=fixes, foretells=text)
    elif context.setup.split_is_legal and context.setup.generation_gpus % (expert * max(stages, 1)):
        gpus = context.setup.generation_gpus
        yield fail(
            f"{gpus} generating GPUs do not divide into groups of EP {expert}",
            key,
            fixes=[*_sizes(context, key, expert, gpus, tensor), *fixes],
            foretells="nothing: engines wait for those that their group lacks",
        )


def _sizes(context: Context, key: str, present: int, gpus: int, step: int = 1) -> list[Fix]:
    """Return fixes to smaller sizes that divide a number, as of GPUs."""
    legal = [size for size in divisors(gpus) if size < present and size % step == 0]
    return [context.fix(key, size) for size in reversed(legal[-2:])]


def _training(context: Context) -> Iterator[Finding]:
    """C91: Megatron's ranks divide by ETP x EP x PP for any model, Automodel's by EP."""
    for side in context.sides:
        if side.backend == "megatron":
            yield from _megatron(context, side)
        elif side.backend and side.get("dtensor_cfg._v2") and context.has_feature("experts in DTensor"):
            yield from _automodel(context, side)


def _megatron(context: Context, side: Side) -> Iterator[Finding]:
    key, tensor_key = (side.key(f"megatron_cfg.expert_{name}_parallel_size") for name in ("model", "tensor"))
    expert, tensor = side.count("megatron_cfg.expert_model_parallel_size"), whole(context.get(tensor_key))
    tensor = max(tensor, 1) if tensor is not None else side.tp
    block = tensor * expert * side.pp
    if side in context.placed and side.gpus % block:
        text = f"is not divisible by expert_tensor_model_pipeline_parallel size ({block})"
        one = {name: 1 for name in (key, tensor_key) if context.get(name) != 1}
        yield fail(
            f"{side.name}: {side.gpus} GPUs do not divide by expert TP {tensor} x EP {expert} x PP {side.pp}",
            key,
            tensor_key,
            fixes=[*_sizes(context, key, expert, side.gpus // side.pp), context.fix_all(one)],
            foretells=f"RuntimeError: decoder world_size ({side.gpus}) {text}",
        )
    facts = _facts_of_experts(context, side, key, expert)
    if isinstance(facts, Finding):
        yield facts
    sequence = side.key("megatron_cfg.sequence_parallel")
    experts = isinstance(facts, ModelFacts) and facts.experts
    if side.name == "policy" and experts and side.tp > 1 and not context.get(sequence):
        yield fail(
            f"{side.name}: experts with TP {side.tp} are not trained without sequence parallelism",
            sequence,
            side.size_key("tp"),
            fixes=[context.fix(sequence, after=True), context.fix(side.size_key("tp"), 1)],
            foretells="During training, performance may degrade if MoE and tensor parallelism",
        )


def _facts_of_experts(
    context: Context, side: Side, key: str, expert: int, *, dense: bool = True
) -> ModelFacts | UnknownModel | Finding:
    """Return what is known of a side's model, or the finding that its experts do not divide."""
    facts = context.model(side)
    if expert == 1:
        return facts
    if isinstance(facts, UnknownModel):
        return undecided(f"{side.name}'s experts, {facts.reason}", facts.fix, key)
    fixes = [context.fix(key, 1)]
    if not facts.experts and dense:
        text = "num_moe_experts must be non None to use expert-parallel."
        message = f"{side.name}: EP {expert}, but {facts.id} has no experts"
        return fail(message, key, side.key("model_name"), fixes=fixes, foretells=text)
    if facts.experts % expert:
        message = f"{side.name}: {facts.id} has {facts.experts} experts, no multiple of EP {expert}"
        fixes = _sizes(context, key, expert, gcd(facts.experts, side.gpus))
        text = "AssertionError: num_moe_experts % expert_model_parallel_size"
        return fail(message, key, side.key("model_name"), fixes=fixes, foretells=text)
    return facts


def _automodel(context: Context, side: Side) -> Iterator[Finding]:
    key = side.key("dtensor_cfg.expert_parallel_size")
    expert = side.count("dtensor_cfg.expert_parallel_size")
    if expert > 1 and side in context.placed and side.gpus % expert:
        yield fail(
            f"{side.name}: {side.gpus} GPUs do not divide by EP {expert}",
            key,
            fixes=[*_sizes(context, key, expert, side.gpus), context.fix(key, 1)],
            foretells=f"AssertionError: {side.gpus} must be a multiple of ep_size={expert}",
        )
    facts = _facts_of_experts(context, side, key, expert, dense=False)
    if isinstance(facts, Finding):
        yield facts


RULES = (
    Rule(
        "C40",
        "Expert parallelism of engines",
        _engines,
        "When EP > 1, EP must be a multiple of TP",
        "models/generation/vllm/vllm_generation.py",
    ),
    Rule("C91", "Experts that share the GPUs", _training, "RuntimeError: decoder world_size", _CORE),
)
