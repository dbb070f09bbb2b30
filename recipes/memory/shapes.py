"""Work of a model on a GPU, and the terms of its memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from recipes.models import ModelFacts

GIB = 2**30
PhaseId = Literal["student-train", "teacher-score", "generation", "refit"]


@dataclass(frozen=True, slots=True)
class MemoryTerm:
    """A named part of a GPU's memory, in GiB."""

    name: str
    gib: float


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one model on `gpus` GPUs with the tokens of one micro batch.

    `tokens` = sequence length x micro batch, before context parallelism divides it. `chunk` is the
    teacher's `logprob_chunk_size`.
    """

    facts: ModelFacts
    gpus: int
    tp: int = 1
    cp: int = 1
    pp: int = 1
    tokens: int = 4096
    checkpointing: bool = True
    cpu_offload: bool = False
    chunk: int | None = None
    megatron: bool = False
    sequence_parallel: bool = False
    defer_fp32_logits: bool = False

    @property
    def shards(self) -> int:
        """Ranks over which FSDP divides what tensor parallelism leaves."""
        return max(self.gpus // (self.tp * self.pp), 1)

    @property
    def untied(self) -> bool:
        """Return whether the head is a matrix of its own: always with tensor or pipeline parallelism."""
        return self.tp > 1 or self.pp > 1 or not self.facts.tied

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


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak of one phase, as a sum of terms; `moment` says when it is reached."""

    moment: str
    terms: tuple[MemoryTerm, ...] = field(default=())

    @property
    def gib(self) -> float:
        """The sum of the terms."""
        return sum(term.gib for term in self.terms)
