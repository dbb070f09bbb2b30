"""Sizes of a model on one rank, in the symbols of docs/memory.md: what the formulas are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from recipes.memory.shapes import GIB, Work

SYMBOLS = {
    "W": "GPUs that share one copy of weights and optimizer states",
    "N": "W / TP: ranks over which FSDP divides",
    "P": "parameters that are stored, over all ranks",
    "G": "parameters that have a gradient: P, or P + V H where embedding and head are tied again with TP > 1",
    "P1": "parameters of one layer / TP",
    "E": "parameters of the embedding / TP: V H / TP",
    "R": "parameters of embedding and head that FSDP gathers: E, or 2 E where they are two (or TP > 1)",
    "M": "elements of the linear layers' weights with the head",
    "B": "elements of the largest weight matrix on a rank",
    "L": "layers",
    "H": "hidden size",
    "F": "width of the MLP",
    "V": "vocabulary",
    "D": "width of an attention head",
    "t": "tokens of a micro batch on a rank: rows x length / CP",
    "T": "elements of the logits on a rank: t V / TP",
    "I": "bytes a token that one layer keeps without checkpointing",
    "m": "micro batches of a step",
}
"""Symbols of the formulas, with what they stand for. Sizes are in elements, results in bytes."""

_SMALL = 10 * 2**20
_SEGMENT = 2**21


def block(size: float) -> float:
    """Return what torch's allocator counts for a tensor of `size` bytes.

    Above 10 MiB a block is a segment of whole 2 MiB, split only if more than 1 MiB would stay free
    (c10/cuda/CUDACachingAllocator.cpp: kMinLargeAlloc, kRoundLarge, should_split).
    """
    size = -(-size // 512) * 512
    rest = -size % _SEGMENT
    return size + rest if size >= _SMALL and rest <= 2**20 else size


@dataclass(frozen=True)
class RankSizes:
    """Sizes that follow from a model's work; elements unless a name says bytes."""

    work: Work

    @cached_property
    def split(self) -> int:
        """What divides a layer's matrices: the tensor parallel size."""
        return self.work.tp

    @cached_property
    def two(self) -> bool:
        """Return whether embedding and head are gathered as two matrices."""
        return self.work.untied or self.work.tp > 1

    @cached_property
    def embedding(self) -> float:
        """E."""
        return self.work.facts.embedding_params / self.split

    @cached_property
    def root(self) -> float:
        """R."""
        return self.embedding * (2 if self.two else 1)

    @cached_property
    def layer(self) -> float:
        """P1; experts are divided further by expert parallelism before they are gathered."""
        facts, parallel = self.work.facts, self.work.expert_parallel
        if parallel == 1:
            return facts.layer_params / self.split
        experts = 3 * facts.hidden * facts.ffn * facts.experts
        return (facts.layer_params - experts + experts / parallel) / self.split

    @cached_property
    def linear(self) -> float:
        """M."""
        facts = self.work.facts
        return facts.layers * sum(facts.layer_matrices) + facts.embedding_params

    @cached_property
    def graded(self) -> float:
        """G; with low-rank adapters, their parameters alone."""
        if self.work.lora_rank:
            return self.adapters
        again = self.work.facts.embedding_params if self.two and not self.work.untied else 0
        return self.work.params + again

    @cached_property
    def adapters(self) -> float:
        """Parameters of low-rank adapters on all linear layers but the head."""
        facts = self.work.facts
        hidden, attention, keys, ffn = facts.hidden, facts.attention_width, facts.kv_width, facts.ffn
        sides = 2 * (hidden + attention) + 2 * (hidden + keys) + 3 * (hidden + ffn) * max(facts.experts, 1)
        return float(facts.layers * self.work.lora_rank * sides)

    @cached_property
    def local_matrices(self) -> tuple[int, ...]:
        """Elements of a layer's matrices on a rank."""
        return tuple(size // self.split // self.work.shards for size in self.work.facts.layer_matrices)

    @cached_property
    def local_embedding(self) -> int:
        """Elements of an embedding matrix on a rank."""
        return self.work.facts.embedding_params // self.split // self.work.shards

    @cached_property
    def largest(self) -> float:
        """B."""
        if self.work.lora_rank:
            facts = self.work.facts
            return self.work.lora_rank * max(facts.ffn, facts.hidden) / self.split / self.work.shards
        return max(*self.local_matrices, self.local_embedding)

    @cached_property
    def rounding(self) -> float:
        """Bytes that the allocator adds to one fp32 copy of the parameters."""
        facts = self.work.facts
        layer = sum(block(4 * size) - 4 * size for size in self.local_matrices)
        matrices = facts.matrices(untied=self.work.untied)
        return facts.layers * layer + matrices * (block(4 * self.local_embedding) - 4 * self.local_embedding)

    @cached_property
    def linear_rounding(self) -> float:
        """Bytes that the allocator adds to the bf16 copies of the linear layers' weights."""
        facts = self.work.facts
        layer = sum(block(2 * size) - 2 * size for size in facts.layer_matrices)
        return facts.layers * layer + block(2 * facts.embedding_params) - 2 * facts.embedding_params

    @cached_property
    def gathered_layer(self) -> float:
        """Bytes of one layer's gathered bf16 weights, 2 P1 as the allocator counts them."""
        return block(2 * self.layer)

    @cached_property
    def tokens(self) -> float:
        """Tokens of a micro batch on a rank (t)."""
        return self.work.local_tokens

    @cached_property
    def logits(self) -> float:
        """T."""
        return self.tokens * self.work.facts.vocab / self.split

    @cached_property
    def inner(self) -> float:
        """Bytes a token that one layer keeps without checkpointing.

        Each norm's fp32 copy, what its weight multiplies, and its result; divided by TP: queries twice, keys
        and values twice, with query and key norms three times both, four tensors of the MLP's width. A frozen
        norm does not keep what its weight multiplies; an adapter keeps its narrow side. Experts keep copies
        and results of a token, and the router's probabilities. On one GPU without FSDP the norms return fp32,
        and queries, keys, values, gate and up each copy their input to bf16. Ring attention's result is
        copied once more.
        """
        work, facts = self.work, self.work.facts
        attention, keys = facts.attention_width, facts.kv_width
        frozen = 1 if work.lora_rank else 0
        divided = 2 * attention + 2 * keys + 4 * facts.ffn * facts.experts_per_token
        divided += (3 - frozen) * (attention + keys) if facts.qk_norm else 0
        divided += attention if work.cp > 1 else 0
        norms = ((13 if work.unsharded else 8) - 2 * frozen) * facts.hidden / self._sequence_split
        experts = 2 * facts.experts_per_token * facts.hidden + 4 * facts.experts if facts.experts else 0
        return 2 * (norms + divided / self.split + experts + 7 * work.lora_rank)

    @cached_property
    def _sequence_split(self) -> int:
        return self.work.tp if self.work.sequence_parallel else 1

    @cached_property
    def hidden_bytes(self) -> float:
        """Bytes of one bf16 activation of the hidden size, divided by sequence parallelism: 2 t H."""
        return 2 * self.tokens * self.work.facts.hidden / self._sequence_split

    @cached_property
    def mask(self) -> float:
        """Bytes of the causal mask that Transformers builds, one byte an element.

        It is needed with padding, and with context parallelism, where positions jump between a rank's chunks.
        """
        side = self.work.tokens / self.work.rows / self.work.cp
        return self.work.rows * side**2 if self.work.padded or self.work.cp > 1 else 0.0


def gib(size: float) -> float:
    """Return bytes as GiB."""
    return size / GIB
