"""One field of a request, and the steps of the wizard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FieldKind = Literal["text", "whole", "number", "time", "choice", "path", "switch"]
"""Kind of a value: any text, a whole number, a number, a time limit, one of several, a path, yes or no."""
StepId = Literal["", "cluster", "models", "parallelism", "batches", "data", "job", "review"]
ON, OFF = "true", "false"
"""Values of a switch, as a recipe has them."""


@dataclass(frozen=True, slots=True)
class StepTitle:
    """One page of the wizard."""

    id: StepId
    title: str


STEPS = (
    StepTitle("cluster", "Cluster"),
    StepTitle("models", "Models"),
    StepTitle("parallelism", "Parallelism"),
    StepTitle("batches", "Batches and lengths"),
    StepTitle("data", "Data and output"),
    StepTitle("job", "Nodes and time"),
    StepTitle("review", "Review"),
)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request."""

    name: str
    title: str
    help: str
    """Its effect, in one or two sentences."""
    kind: FieldKind
    key: str = ""
    """Recipe key that it sets; empty for what concerns the job alone."""
    megatron: str = ""
    """Its key where the side's backend is Megatron."""
    earlier: tuple[str, ...] = ()
    """Its keys in other releases of NeMo-RL, tried where the release has not the first."""
    only_megatron: bool = False
    """Whether DTensor has nothing of the kind."""
    compound: bool = False
    """Whether a value of it sets several keys (`launcher.fields.compound_fields`)."""
    follows: str = ""
    """Consequences of a change, in one sentence."""
    both: bool = False
    """Whether student and teacher have it, so that it may be set for both."""
    least: float | None = None
    """Smallest number; None: 1 for a whole number, any for others."""
    most: float | None = None
    """Largest number."""
    unit: str = ""
    flag: str = ""
    """Option of `submit` for it."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values and their meaning, where they are always the same."""
    optional: bool = False
    """Whether it may be left empty."""
    step: StepId = ""
    """Page of the wizard that asks for it; empty for what only the command line has."""
    sbatch: str = ""
    """Long option of sbatch, without dashes, that takes the value unchanged."""
    metavar: str = ""
    """Placeholder of its value in the help of `submit`."""
    default: str = ""
    """Description of its default, for the help of `submit`."""
    repeatable: bool = False
    """Whether its flag may be given several times."""
    scheduler: bool = False
    """Whether only a cluster with a scheduler has it."""

    @property
    def of_recipe(self) -> bool:
        """Whether it sets values of the recipe."""
        return bool(self.key or self.megatron or self.compound)

    def key_with(self, backend: str | None) -> str:
        """Return its recipe key with a backend."""
        return self.megatron if self.megatron and backend == "megatron" else self.key

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that it may set, in any release and with any backend."""
        return tuple(dict.fromkeys(key for key in (self.key, self.megatron, *self.earlier) if key))
