"""Memory of every phase of a recipe, per GPU, and of the host, per node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.memory import megatron
from recipes.memory.allocator import CONTEXT_GIB, IDLE_PROCESSES_GIB, beside, limit, reserved
from recipes.memory.demand import Demand, demand_of
from recipes.memory.generation import engine_memory, refit_terms
from recipes.memory.host_memory import host_gib
from recipes.memory.shapes import MemoryTerm, Moment, PhaseId, Work
from recipes.memory.training import student_moments, teacher_moments
from recipes.memory.uncertainty import COARSE, uncertainty_of, unmeasured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.inheritance import EffectiveRecipe
    from recipes.models.hub import Models
    from recipes.planning.setup import Setup

DEFAULT_GPU_GIB = 40.0
_TIGHT = 0.9


@dataclass(frozen=True, slots=True)
class Phase:
    """The memory of one phase on one GPU, in GiB.

    `allocated` is what tensors take at the peak; `needed` adds what the allocator must have to run, CUDA
    contexts and communication buffers: `terms` sum up to it. `reserved` is what a monitor will show of the
    process, as far as the card has it. `uncertainty` is that of `allocated`, relative.
    """

    id: PhaseId
    allocated: float
    needed: float
    fits: bool
    moment: str
    terms: tuple[MemoryTerm, ...]
    uncertainty: float = COARSE
    moments: tuple[Moment, ...] = ()
    reserved: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory of a recipe; a phase of unknown size is missing, and `notes` say why and what to do.

    `basis` says what the numbers stand on where it is not measurements of just this.
    """

    gpu_gib: float
    phases: tuple[Phase, ...]
    host_gib_per_node: float | None
    notes: tuple[str, ...]
    basis: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Return whether all phases with a known size fit."""
        return all(phase.fits for phase in self.phases)


def estimate(
    recipe: EffectiveRecipe, models: Models, gpu_gib: float | None = None, checkout: Path | None = None
) -> Estimate:
    """Estimate the memory of a recipe with a checkout's workers, on GPUs of `gpu_gib` GiB (default: 40)."""
    demand = demand_of(recipe, models, checkout)
    notes = list(demand.notes)
    size = gpu_gib or DEFAULT_GPU_GIB
    if gpu_gib is None:
        notes.append(f"GPU memory not given: {DEFAULT_GPU_GIB:g} GiB assumed (--gpu-memory)")
    phases = phases_of(demand, size)
    if demand.student is not None and demand.student.megatron:
        notes.append(f"Megatron: a coarse estimate, not calibrated on measurements, ±{COARSE:.0%}")
    if demand.student is not None and demand.student.facts.source == "table":
        notes.append(f"{demand.student.facts.id}: shape from the built-in table, not from its config.json")
    tight = [phase.id for phase in phases if phase.fits and phase.needed > _TIGHT * size]
    if tight:
        notes.append(f"tight (above 90 % of the GPU): {', '.join(tight)}")
    return Estimate(size, phases, host_gib(demand), tuple(notes), tuple(_basis(demand, phases)))


def _basis(demand: Demand, phases: tuple[Phase, ...]) -> Iterator[str]:
    """Yield what was taken for given, and of what there is no measurement."""
    yield from demand.assumed
    for name, work in (("policy", demand.student), ("teacher", demand.teacher)):
        parts = list(unmeasured(work)) if work is not None else []
        if parts:
            yield f"{name}: {', '.join(parts)}: arithmetic, not measured, ±{COARSE:.0%}"
    if any(phase.id in ("generation", "refit") for phase in phases):
        yield "generation and refit: vLLM's arithmetic, not measured"


def phases_of(demand: Demand, gpu_gib: float) -> tuple[Phase, ...]:
    """Return the phases whose models are known."""
    phases: list[Phase] = []
    colocated = demand.setup.colocated
    for teacher, work in ((False, demand.student), (True, demand.teacher)):
        if work is not None:
            phases.append(training_phase(teacher, work, gpu_gib, colocated=colocated))
    if demand.student is not None and demand.setup.policy.get("generation.backend") == "vllm":
        phases.append(_generation(demand.setup, demand.student, gpu_gib))
        if colocated:
            phases.append(_refit(demand.setup, demand.student, gpu_gib))
    return tuple(phases)


def moments_of(work: Work, *, teacher: bool) -> tuple[Moment, ...]:
    """Return the moments of a training step, or of a teacher's forward pass."""
    if work.megatron:
        return megatron.teacher_moments(work) if teacher else megatron.student_moments(work)
    return teacher_moments(work) if teacher else student_moments(work)


def training_phase(teacher: bool, work: Work, gpu_gib: float, *, colocated: bool) -> Phase:
    """Return the phase in which a model trains, or scores."""
    moments = moments_of(work, teacher=teacher)
    peak = max(moments, key=lambda moment: moment.gib)
    room = MemoryTerm("room for the allocator", limit(moments) - peak.gib)
    terms = (*peak.terms, room, *beside(work, colocated=colocated))
    needed = sum(term.gib for term in terms)
    return Phase(
        "teacher-score" if teacher else "student-train",
        peak.gib,
        needed,
        needed <= gpu_gib,
        peak.title,
        terms,
        uncertainty_of(work),
        moments,
        min(reserved(work, peak.gib, teacher=teacher), max(gpu_gib - needed + limit(moments), peak.gib)),
    )


def _generation(setup: Setup, work: Work, gpu_gib: float) -> Phase:
    engine = engine_memory(setup, work, gpu_gib)
    idle = IDLE_PROCESSES_GIB if setup.colocated else 0.0
    beside_it = (MemoryTerm("CUDA context", CONTEXT_GIB), MemoryTerm("other processes", idle))
    budget = max(engine.budget, engine.least)
    needed = budget + engine.graphs + CONTEXT_GIB + idle
    fits = engine.least <= engine.budget and needed <= gpu_gib
    moment = f"the cache holds {engine.sequences:.1f} sequences of full length ({engine.blocks} blocks)"
    return Phase("generation", budget + engine.graphs, needed, fits, moment, (*engine.terms(), *beside_it))


def _refit(setup: Setup, work: Work, gpu_gib: float) -> Phase:
    terms = refit_terms(setup, work, gpu_gib)
    allocated = sum(term.gib for term in terms)
    beside_it = (MemoryTerm("CUDA context", CONTEXT_GIB), MemoryTerm("other processes", IDLE_PROCESSES_GIB))
    needed = allocated + CONTEXT_GIB + IDLE_PROCESSES_GIB
    moment = "weights move to the engine"
    return Phase("refit", allocated, needed, needed <= gpu_gib, moment, (*terms, *beside_it))
