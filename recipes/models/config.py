"""Model facts from a `config.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recipes.limits import JSON_BYTES
from recipes.models.facts import ModelFacts, Source, UnknownModel
from recipes.models.json_file import read_json

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
_EXPERT_KEYS = ("num_experts", "num_local_experts", "n_routed_experts")
_MIXED_KEYS = ("hybrid_override_pattern", "mamba_num_heads", "kv_lora_rank", "layers_block_type")
_FORGET = "Fetch it again, for instance with `hf download {name}` on a node with internet."


def read_config(path: Path, name: str, source: Source) -> ModelFacts | UnknownModel:
    """Read a `config.json`; never raises: what cannot be read is `UnknownModel` with the reason."""
    try:
        data = read_json(path, JSON_BYTES)
    except FileNotFoundError:
        return UnknownModel(f"{path} does not exist", _FORGET.format(name=name))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        return UnknownModel(
            f"{path} cannot be read: {reason}", "Check its permissions, or fetch the model again."
        )
    except ValueError as error:
        return UnknownModel(f"{path} is damaged: {error}", _FORGET.format(name=name))
    if not isinstance(data, dict):
        return UnknownModel(f"{path} holds no mapping", _FORGET.format(name=name))
    return facts_of(data, name, source, str(path))


def facts_of(data: dict[str, Any], name: str, source: Source, path: str = "") -> ModelFacts | UnknownModel:
    """Return the facts that a `config.json`'s content gives."""
    nested = data.get("text_config")
    text = {**data, **nested} if isinstance(nested, dict) else data
    missing = [key for key in _NEEDED if not _is_count(text.get(key))]
    if missing:
        return UnknownModel(
            f"the config.json of {name} lacks {', '.join(missing)}",
            "Is it a decoder language model? Its facts are not available from this file.",
        )
    heads, hidden = text["num_attention_heads"], text["hidden_size"]
    experts = next((text[key] for key in _EXPERT_KEYS if _is_count(text.get(key))), 0)
    ffn = text.get("moe_intermediate_size") if experts else text.get("intermediate_size")
    family = str(text.get("model_type") or data.get("model_type") or "")
    shared = bool(text.get("n_shared_experts") or text.get("shared_expert_intermediate_size"))
    mixed = any(text.get(key) for key in _MIXED_KEYS) or shared or bool(text.get("first_k_dense_replace"))
    return ModelFacts(
        id=name,
        source=source,
        layers=text["num_hidden_layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=_count(text.get("num_key_value_heads"), heads),
        head_dim=_count(text.get("head_dim"), hidden // heads),
        ffn=_count(ffn, _count(text.get("intermediate_size"), 0)),
        vocab=text["vocab_size"],
        tied=bool(text.get("tie_word_embeddings", True)),
        context=text["max_position_embeddings"] if _is_count(text.get("max_position_embeddings")) else None,
        family=family,
        qk_norm=family.startswith("qwen3"),
        qkv_bias=bool(text.get("attention_bias", family == "qwen2")),
        experts=experts,
        experts_per_token=_count(text.get("num_experts_per_tok"), 1) if experts else 1,
        regular=not mixed and _is_count(_count(ffn, _count(text.get("intermediate_size"), 0))),
        yarn=_is_yarn(text),
        path=path,
        model_type=str(data.get("model_type") or ""),
    )


def _is_yarn(text: dict[str, Any]) -> bool:
    scaling = text.get("rope_scaling")
    return isinstance(scaling, dict) and "yarn" in (scaling.get("rope_type"), scaling.get("type"))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
