"""Work of a model on a GPU, and the terms and moments of its memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from recipes.memory.wrapping import V1, Wrapping

if TYPE_CHECKING:
    from recipes.models import ModelFacts

GIB = 2**30
SLACK_GIB = 1.2
"""Blocks that the allocator cannot give back, being split; found by halving a limit until two steps fail."""
PhaseId = Literal["student-train", "teacher-score", "generation", "refit"]


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """Named part of a GPU's memory, in GiB; `formula` gives its bytes (symbols: docs/memory.md)."""

    name: str
    gib: float
    formula: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """Moment of a phase: what lives on the GPU then.

    `block` is the part of the largest tensor made at this moment, in GiB, that the allocator cannot be
    counted on to find among the blocks that it keeps.
    """

    id: str
    title: str
    terms: tuple[MemoryTerm, ...] = field(default=())
    block: float = 0.0

    @property
    def gib(self) -> float:
        """The sum of the terms: what torch counts as allocated."""
        return sum(term.gib for term in self.terms)


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one model on `gpus` GPUs with the tokens of one micro batch.

    `tokens` = rows x sequence length, before context parallelism divides it. `packed` are the lengths of the
    sequences in a packed row, in order; empty without packing. `chunk` is the teacher's `logprob_chunk_size`.
    `entropy`: the loss with `zero_outside_topk` is not the forward KL alone, so it takes an entropy.
    `padded`: the model is given a padding mask, which NeMo-RL does not do.
    `lora_rank`: only low-rank adapters of that rank are trained. `replicas` hold the same shards (HSDP).
    """

    facts: ModelFacts
    gpus: int
    tp: int = 1
    cp: int = 1
    pp: int = 1
    tokens: int = 4096
    rows: int = 1
    micro_batches: int = 2
    checkpointing: bool = True
    cpu_offload: bool = False
    chunk: int | None = None
    megatron: bool = False
    sequence_parallel: bool = False
    defer_fp32_logits: bool = False
    packed: tuple[int, ...] = ()
    dynamic: bool = False
    padded: bool = False
    zero_outside_topk: bool = False
    entropy: bool = True
    lora_rank: int = 0
    expert_parallel: int = 1
    replicas: int = 1
    wrapping: Wrapping = V1

    @property
    def sharing_gpus(self) -> int:
        """GPUs that share one copy of the states."""
        return max(self.gpus // self.replicas, 1)

    @property
    def shards(self) -> int:
        """Ranks over which FSDP divides what tensor and pipeline parallelism leave."""
        return max(self.sharing_gpus // (self.tp * self.pp), 1)

    @property
    def unsharded(self) -> bool:
        """Return whether the model is one process's alone, without FSDP."""
        return self.gpus == 1 and self.wrapping.bare_on_one_gpu

    @property
    def untied(self) -> bool:
        """Return whether the head is stored as a matrix of its own, apart from the embedding."""
        if not self.facts.tied:
            return True
        return self.pp > 1 or (self.tp > 1 and (self.megatron or not self.wrapping.ties_again))

    @property
    def local_tokens(self) -> float:
        """Tokens of a micro batch on one rank."""
        return self.tokens / self.cp

    @property
    def params(self) -> int:
        """Parameters over all ranks; raises `ValueError` where the model's layers are not understood."""
        count = self.facts.params_as(untied=self.untied)
        if count is None:
            raise ValueError(f"the layers of {self.facts.id} are of different kinds")
        return count
