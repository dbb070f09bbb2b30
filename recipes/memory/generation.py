"""Memory of vLLM and of the weights' way to it: vLLM's own arithmetic, not measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recipes.memory.allocator import CONTEXT_GIB, IDLE_PROCESSES_GIB
from recipes.memory.shapes import GIB, MemoryTerm, Work
from recipes.planning.setup import Setup, finite, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_TOKENS = 16
"""Tokens of a block of the key-value cache (vLLM, config/cache.py)."""
GRAPHS_GIB = 1.0
"""CUDA graphs, captured beside the budget unless `enforce_eager`: 0.5 to 1.5 GiB."""
REFIT_BUFFER = 0.3
"""Share of the free memory that a refit takes as buffer (NRL_REFIT_BUFFER_MEMORY_RATIO)."""
_SHARE = 0.9
"""vLLM's default for gpu_memory_utilization."""
_LARGE_CARD_GIB = 70
_BATCHED_TOKENS = {False: 8192, True: 16384}
_SEQUENCES = {False: 256, True: 1024}
"""vLLM's defaults for `max_num_batched_tokens` and `max_num_seqs`, by whether the card is large."""


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Parts of a vLLM engine's memory on one GPU, in GiB; `blocks` of the cache, `length` in tokens."""

    budget: float
    weights: float
    activations: float
    graphs: float
    cache: float
    blocks: int
    sequence_blocks: int

    @property
    def least(self) -> float:
        """The budget with which one sequence of full length is generated."""
        per_block = self.cache / self.blocks if self.blocks else 0.0
        return self.weights + self.activations + self.sequence_blocks * per_block

    @property
    def sequences(self) -> float:
        """Sequences of full length that the cache holds."""
        return self.blocks / self.sequence_blocks if self.sequence_blocks else 0.0

    def terms(self) -> Iterator[MemoryTerm]:
        """Yield the parts."""
        yield MemoryTerm("weights", self.weights, "2 P / engine's GPUs")
        yield MemoryTerm("activations of the profiling run", self.activations)
        yield MemoryTerm("key-value cache", self.cache, "what gpu_memory_utilization leaves")
        yield MemoryTerm("CUDA graphs", self.graphs)


def engine_memory(setup: Setup, work: Work, gpu_gib: float) -> EngineMemory:
    """Return the memory of an engine: what its budget leaves beside weights and activations is cache."""
    share = finite(setup.policy.get("generation.vllm_cfg.gpu_memory_utilization"))
    budget = gpu_gib * (_SHARE if share is None else min(max(share, 0.0), 1.0))
    weights = engine_weights(setup, work)
    active = _activations(setup, work, gpu_gib)
    eager = setup.policy.get("generation.vllm_cfg.enforce_eager") is True
    per_block = BLOCK_TOKENS * work.facts.kv_bytes_per_token / _cache_split(setup, work) / GIB
    length = whole(setup.policy.get("generation.vllm_cfg.max_model_len")) or setup.policy.length or 0
    blocks = int(max(budget - weights - active, 0.0) / per_block)
    return EngineMemory(
        budget,
        weights,
        active,
        0.0 if eager else GRAPHS_GIB,
        blocks * per_block,
        blocks,
        -(-max(length, 0) // BLOCK_TOKENS),
    )


def engine_weights(setup: Setup, work: Work) -> float:
    """Return the GiB of an engine's bf16 weights on one GPU; vLLM shares a tied embedding."""
    params = work.facts.params or replace(work, tp=1, pp=1).params
    return 2 * params / setup.vllm_width / GIB


def _cache_split(setup: Setup, work: Work) -> int:
    """Return what divides the cache: a key-value head is not divided further."""
    tensor = whole(setup.policy.get("generation.vllm_cfg.tensor_parallel_size")) or 1
    pipeline = max(setup.vllm_width // max(tensor, 1), 1)
    return min(max(tensor, 1), work.facts.kv_heads) * pipeline


def _activations(setup: Setup, work: Work, gpu_gib: float) -> float:
    """Return the peak of vLLM's profiling run: one layer's MLP, or fp32 logits with their sorted copy."""
    large = gpu_gib >= _LARGE_CARD_GIB
    batched = whole(setup.policy.get("generation.vllm_kwargs.max_num_batched_tokens")) or 0
    sequences = whole(setup.policy.get("generation.vllm_kwargs.max_num_seqs")) or 0
    batched = batched if batched > 0 else _BATCHED_TOKENS[large]
    sequences = sequences if sequences > 0 else _SEQUENCES[large]
    tensor = max(whole(setup.policy.get("generation.vllm_cfg.tensor_parallel_size")) or 1, 1)
    facts = work.facts
    layer = 2 * batched * (3 * facts.hidden + 3 * facts.ffn * facts.experts_per_token / tensor)
    sampler = 2 * 4 * min(sequences, batched) * facts.vocab
    return max(layer, sampler) / GIB


def refit_terms(setup: Setup, work: Work, gpu_gib: float) -> tuple[MemoryTerm, ...]:
    """Return the memory while the student's weights move to the engine: bf16 copies through a buffer."""
    weights = engine_weights(setup, work)
    states = 4 * work.params / work.sharing_gpus / GIB
    free = max(gpu_gib - weights - states - CONTEXT_GIB - IDLE_PROCESSES_GIB, 0.0)
    largest = 2 * work.facts.embedding_params / GIB
    return (
        MemoryTerm("student weights", states, "4 P/W"),
        MemoryTerm("engine weights", weights, "2 P / engine's GPUs"),
        MemoryTerm("buffer", max(REFIT_BUFFER * free, largest)),
    )
