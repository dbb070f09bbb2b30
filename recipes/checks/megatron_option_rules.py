"""Rules on options of Megatron: C85 to C87. They predict failures of the set-up, of student and teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Side

_MEGATRON = "models/megatron/setup.py"
_BACKENDS = ("flash", "fused", "unfused", "local", "auto")
"""Members of Megatron-Core's AttnBackend."""
_OF_EXPERTS = ("expert_fc1", "moe_act", "fused_group_mlp")
"""Modules whose activations only a mixture of experts has."""


def _sides(context: Context) -> list[Side]:
    return [side for side in context.sides if side.backend == "megatron"]


def _attention_backend(context: Context) -> Iterator[Finding]:
    """C85."""
    for side in _sides(context):
        key = side.key("megatron_cfg.attention_backend")
        value = context.get(key)
        if value is not None and value not in _BACKENDS:
            yield fail(
                f"invalid {key}: '{shown(value)}' (expected {', '.join(_BACKENDS)})",
                key,
                fixes=[context.fix(key, "auto")],
                foretells=f"Invalid attention backend: {shown(value)}.",
            )


def _fused_loss(context: Context) -> Iterator[Finding]:
    """C86: the key has another name, and a second condition, since the main branch of August 2026."""
    newest = context.has_feature("fused log probabilities")
    name = "use_fused_linear_logprobs" if newest else "use_linear_ce_fusion_loss"
    for side in _sides(context):
        key = side.key(f"megatron_cfg.{name}")
        if not context.get(key):
            continue
        off = context.fix(key, after=False)
        if side.cp > 1:
            yield fail(
                f"{side.name}: {name} with CP {side.cp}",
                key,
                side.size_key("cp"),
                fixes=[off, context.fix(side.size_key("cp"), 1)],
            )
        overlap = side.key("megatron_cfg.distributed_data_parallel_config.overlap_param_gather")
        if newest and context.get(overlap):
            yield fail(
                f"{side.name}: {name} with overlap_param_gather",
                key,
                overlap,
                fixes=[context.fix(overlap, after=False), off],
                foretells=f"{name} is incompatible with overlap_param_gather",
            )


def _offloaded_activations(context: Context) -> Iterator[Finding]:
    """C87."""
    for side in _sides(context):
        key = side.key("megatron_cfg.fine_grained_activation_offloading")
        if not context.get(key):
            continue
        off = context.fix(key, after=False)
        names = side.key("megatron_cfg.offload_modules")
        modules = context.get(names)
        if not isinstance(modules, list) or not modules:
            yield fail(f"{side.name}: no modules to offload", key, names, fixes=[off])
            continue
        facts = context.model_facts(side)
        wrong = sorted({name for name in _OF_EXPERTS if name in modules})
        if wrong and facts is not None and not facts.experts:
            rest = [name for name in modules if name not in wrong]
            yield fail(
                f"{side.name}: only a mixture of experts has {', '.join(wrong)}, {facts.id} is none",
                names,
                side.key("model_name"),
                fixes=[context.fix(names, rest), off] if rest else [off],
                foretells=f"A MoE-only offload module requires a MoE model: {wrong}",
            )


RULES = (
    Rule(
        "C85",
        "Megatron's attention backend",
        _attention_backend,
        "Invalid attention backend: …",
        _MEGATRON,
    ),
    Rule(
        "C86",
        "Megatron's fused log probabilities",
        _fused_loss,
        "Context Parallelism is not supported with linear CE fusion loss",
        _MEGATRON,
    ),
    Rule(
        "C87",
        "Modules whose activations Megatron offloads",
        _offloaded_activations,
        "offload_modules must be a non-empty list when fine_grained_activation_offloading is True.",
        _MEGATRON,
    ),
)
