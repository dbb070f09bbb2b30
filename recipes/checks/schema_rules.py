"""The rule on keys and types: C4. It predicts failures in the driver's first seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown
from recipes.planning.setup import whole

if TYPE_CHECKING:
    from collections.abc import Iterator


_POLICY = "models/policy/__init__.py"
_SECTIONS = (
    "policy",
    "teacher",
    "loss_fn",
    "env",
    "data",
    "distillation",
    "logger",
    "cluster",
    "checkpointing",
)
_SIDE_TYPES = {
    "model_name": "str",
    "tokenizer": "dict",
    "train_global_batch_size": "int",
    "train_micro_batch_size": "int",
    "logprob_batch_size": "int?",
    "logprob_chunk_size": "int?null",
    "precision": "str",
    "dtensor_cfg": "dict",
    "dtensor_cfg.enabled": "bool",
    "dynamic_batching": "dict",
    "dynamic_batching.enabled": "bool",
    "sequence_packing.enabled": "bool?",
    "make_sequence_length_divisible_by": "int",
    "max_total_sequence_length": "int",
    "max_grad_norm": "float?null",
}
_DTENSOR_TYPES = {
    "dtensor_cfg.tensor_parallel_size": "int",
    "dtensor_cfg.context_parallel_size": "int",
    "dtensor_cfg.sequence_parallel": "bool",
    "dtensor_cfg.activation_checkpointing": "bool",
    "dtensor_cfg.cpu_offload": "bool",
}
_MEGATRON_TYPES = {
    "megatron_cfg.tensor_model_parallel_size": "int",
    "megatron_cfg.pipeline_model_parallel_size": "int",
    "megatron_cfg.context_parallel_size": "int",
    "megatron_cfg.sequence_parallel": "bool",
}
_GENERATION_TYPES = {
    "backend": "str",
    "max_new_tokens": "int",
    "temperature": "float",
    "top_p": "float",
    "top_k": "intnull",
    "val_temperature": "float",
    "val_top_p": "float",
    "val_top_k": "intnull",
    "stop_token_ids": "list?null",
    "stop_strings": "list?null",
}
_OTHER_TYPES = {
    "distillation.num_prompts_per_step": "int?",
    "distillation.num_generations_per_prompt": "int?",
    "distillation.max_num_steps": "int?",
    "distillation.max_num_epochs": "int?",
    "distillation.val_batch_size": "int?",
    "distillation.val_period": "int?",
    "distillation.topk_logits_k": "int?",
    "distillation.seed": "int?",
    "loss_fn.mixed_kl_weight": "float?",
    "data.max_input_seq_length": "intnull",
    "data.shuffle": "bool",
    "cluster.num_nodes": "int",
    "cluster.gpus_per_node": "int",
    "checkpointing.enabled": "bool",
    "checkpointing.checkpoint_dir": "str",
    "checkpointing.metric_name": "strnull",
    "checkpointing.higher_is_better": "bool",
    "checkpointing.save_period": "int",
    "checkpointing.keep_top_k": "int?",
    "logger.log_dir": "str",
    "logger.wandb_enabled": "bool",
    "logger.tensorboard_enabled": "bool",
    "logger.swanlab_enabled": "bool",
    "logger.mlflow_enabled": "bool",
    "logger.monitor_gpus": "bool",
    "logger.wandb": "dict",
    "logger.gpu_monitoring": "dict",
}


def _types(context: Context) -> Iterator[Finding]:
    """C4: required keys and types, where the driver validates them."""
    if context.checkout is not None and not context.checkout.validates:
        return
    for section in _SECTIONS:
        if not isinstance(context.get(section), dict):
            yield fail(
                f"the section {section} is missing", section, foretells=_pydantic(section, "Field required")
            )
    table = dict(_OTHER_TYPES)
    for side in context.sides:
        if not isinstance(context.get(side.name), dict):
            continue
        types = dict(_SIDE_TYPES)
        types.update(_DTENSOR_TYPES if side.get("dtensor_cfg.enabled") is True else {})
        types.update(_MEGATRON_TYPES if side.get("megatron_cfg.enabled") is True else {})
        if isinstance(side.get("generation"), dict):
            types.update({f"generation.{key}": kind for key, kind in _GENERATION_TYPES.items()})
        table.update({side.key(key): kind for key, kind in types.items()})
    for key, kind in table.items():
        section = key.partition(".")[0]
        if isinstance(context.get(section), dict):
            yield from _typed(context, key, kind)


def _typed(context: Context, key: str, kind: str) -> Iterator[Finding]:
    if not context.has(key):
        inside = context.get(key.rpartition(".")[0])
        if "?" not in kind and isinstance(inside, dict):
            default = context.get(key.replace(".val_", ".")) if ".val_" in key else None
            fixes = [context.fix(key, default)] if default is not None else []
            yield fail(f"{key} is missing", key, fixes=fixes, foretells=_pydantic(key, "Field required"))
        return
    value = context.get(key)
    if value is None and "null" in kind:
        return
    plain = kind.replace("?", "").replace("null", "")
    if not _is(value, plain):
        words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
        wanted = words.get(plain, {"dict": "a section", "list": "a list"}.get(plain, plain))
        message = f"{key} is {shown(value)}, it must be {wanted}"
        yield fail(message, key, foretells=_pydantic(key, f"Input should be {wanted}"))


def _is(value: object, kind: str) -> bool:
    if kind == "int":
        return whole(value) is not None
    if kind == "float":
        if isinstance(value, str):
            return re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", value) is not None
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "bool":
        return isinstance(value, bool)
    return isinstance(value, {"str": str, "dict": dict, "list": list}[kind])


def _pydantic(key: str, what: str) -> str:
    return f"validation error for MasterConfig: {key}: {what}"


RULES = (Rule("C4", "Required keys and their types", _types, "validation error for MasterConfig", _POLICY),)
