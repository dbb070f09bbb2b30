"""Facts about a model: its shape, and the sizes that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["config.json", "cache", "table"]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The shape of a decoder model, named as in its `config.json`.

    `source` says where it was read; "table" means the built-in list of common models, not the user's files.
    `qk_norm`: queries and keys pass through a norm per head; `qkv_bias`: their projections have a bias.
    `regular` is false where the layers are not all attention + gated MLP (experts, state-space layers):
    sizes that depend on a layer's structure are then unknown.
    """

    id: str
    source: Source
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    context: int | None = None
    family: str = ""
    qk_norm: bool = False
    qkv_bias: bool = False
    experts: int = 0
    experts_per_token: int = 1
    regular: bool = True
    yarn: bool = False
    path: str = ""
    model_type: str = ""
    """As Transformers' `AutoConfig` has it: of the whole model; `family` is that of its language part."""

    @property
    def attention_width(self) -> int:
        """Width of all queries together."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all keys (or all values) together."""
        return self.kv_heads * self.head_dim

    @property
    def layer_matrices(self) -> tuple[int, ...]:
        """Elements of each weight matrix of a layer: queries, keys, values, output, and the gated MLP's.

        Experts lie together: gate and up of all of them in one matrix, down in another (transformers 5).
        """
        attention, keys = self.hidden * self.attention_width, self.hidden * self.kv_width
        mlp = self.hidden * self.ffn
        experts = self.experts
        return (
            attention,
            keys,
            keys,
            attention,
            *((2 * mlp * experts, mlp * experts) if experts else (mlp,) * 3),
        )

    @property
    def layer_params(self) -> int:
        """Parameters of one layer."""
        attention = self.hidden * (2 * self.attention_width + 2 * self.kv_width)
        bias = self.attention_width + 2 * self.kv_width if self.qkv_bias else 0
        norms = 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)
        mlp = 3 * self.hidden * self.ffn * max(self.experts, 1)
        return attention + bias + norms + mlp + self.experts * self.hidden

    @property
    def embedding_params(self) -> int:
        """Parameters of one embedding matrix."""
        return self.vocab * self.hidden

    @property
    def params(self) -> int | None:
        """All parameters; None where the layers are of different kinds."""
        return self.params_as(untied=False)

    def params_as(self, *, untied: bool) -> int | None:
        """All parameters, counting the output head apart if it is, or must be, a matrix of its own."""
        if not self.regular:
            return None
        return (
            self.layers * self.layer_params
            + self.matrices(untied=untied) * self.embedding_params
            + self.hidden
        )

    def matrices(self, *, untied: bool = False) -> int:
        """Count the matrices of vocabulary times hidden size: the embedding, and the head if it is apart."""
        return 1 if self.tied and not untied else 2

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of the bf16 key-value cache per token over all layers."""
        return 2 * self.layers * self.kv_width * 2


@dataclass(frozen=True, slots=True)
class UnknownModel:
    """Missing fact about a model: the reason, and what to do to get it."""

    reason: str
    fix: str
