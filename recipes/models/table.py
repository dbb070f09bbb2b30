"""Shapes of common models, for use where no `config.json` is at hand. Always marked as "table".

Transcribed from the models' published `config.json` files; parameter counts computed from them agree with
the published sizes (a test compares).
"""

from __future__ import annotations

from typing import NamedTuple

from recipes.models.facts import ModelFacts


class _Row(NamedTuple):
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    experts: int = 0
    experts_per_token: int = 1


_QWEN3 = {
    "0.6B": _Row(28, 1024, 16, 8, 128, 3072, 151936, True),
    "1.7B": _Row(28, 2048, 16, 8, 128, 6144, 151936, True),
    "4B": _Row(36, 2560, 32, 8, 128, 9728, 151936, True),
    "8B": _Row(36, 4096, 32, 8, 128, 12288, 151936, False),
    "14B": _Row(40, 5120, 40, 8, 128, 17408, 151936, False),
    "32B": _Row(64, 5120, 64, 8, 128, 25600, 151936, False),
    "30B-A3B": _Row(48, 2048, 32, 4, 128, 768, 151936, False, 128, 8),
}
_QWEN25 = {
    "0.5B": _Row(24, 896, 14, 2, 64, 4864, 151936, True),
    "1.5B": _Row(28, 1536, 12, 2, 128, 8960, 151936, True),
    "3B": _Row(36, 2048, 16, 2, 128, 11008, 151936, True),
    "7B": _Row(28, 3584, 28, 4, 128, 18944, 152064, False),
    "14B": _Row(48, 5120, 40, 8, 128, 13824, 152064, False),
    "32B": _Row(64, 5120, 40, 8, 128, 27648, 152064, False),
}
_LLAMA = {
    "3.2-1B": _Row(16, 2048, 32, 8, 64, 8192, 128256, True),
    "3.2-3B": _Row(28, 3072, 24, 8, 128, 8192, 128256, True),
    "3.1-8B": _Row(32, 4096, 32, 8, 128, 14336, 128256, False),
    "3.1-70B": _Row(80, 8192, 64, 8, 128, 28672, 128256, False),
}
_BASE_CONTEXT = 32768
_QWEN3_CONTEXT = 40960
_LLAMA_CONTEXT = 131072


def _facts(name: str, row: _Row, family: str, context: int | None) -> ModelFacts:
    return ModelFacts(
        id=name,
        source="table",
        layers=row.layers,
        hidden=row.hidden,
        heads=row.heads,
        kv_heads=row.kv_heads,
        head_dim=row.head_dim,
        ffn=row.ffn,
        vocab=row.vocab,
        tied=row.tied,
        context=context,
        family=family,
        qk_norm=family.startswith("qwen3"),
        qkv_bias=family == "qwen2",
        experts=row.experts,
        experts_per_token=row.experts_per_token,
    )


def _build() -> dict[str, ModelFacts]:
    rows: list[tuple[str, _Row, str, int | None]] = []
    for size, row in _QWEN3.items():
        family = "qwen3_moe" if row.experts else "qwen3"
        rows.append((f"Qwen/Qwen3-{size}", row, family, _QWEN3_CONTEXT))
        if size != "32B":
            rows.append((f"Qwen/Qwen3-{size}-Base", row, family, _BASE_CONTEXT))
    for size, row in _QWEN25.items():
        rows.extend((f"Qwen/Qwen2.5-{size}{kind}", row, "qwen2", None) for kind in ("", "-Instruct"))
    for size, row in _LLAMA.items():
        rows.extend(
            (f"meta-llama/Llama-{size}{kind}", row, "llama", _LLAMA_CONTEXT) for kind in ("", "-Instruct")
        )
    return {name: _facts(name, row, family, context) for name, row, family, context in rows}


TABLE = _build()
"""Facts by Hugging Face id."""
