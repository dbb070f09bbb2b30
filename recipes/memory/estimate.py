"""Memory of every phase of a recipe, per GPU, and of the host, per node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recipes.memory import megatron
from recipes.memory.calibration import FITTED
from recipes.memory.shapes import GIB, MemoryTerm, PhaseId, Work
from recipes.memory.training import student_peak, teacher_peak
from recipes.models.facts import ModelFacts, UnknownModel
from recipes.planning.setup import Setup, Side, whole

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe
    from recipes.models.hub import Models

CONTEXT_GIB = 0.7
"""One process's CUDA context; 0.5 to 1 GiB on A100 and H100."""
IDLE_PROCESSES_GIB = 1.25
"""Contexts of the two other worker groups that share a GPU when generation is colocated."""
NCCL_GIB = 2.0
"""Communication buffers with tensor parallelism over four GPUs or more: 2 to 6 GiB were seen."""
VLLM_WORKING_GIB = 2.0
"""Activations and CUDA graphs of a vLLM engine: 1.5 to 3 GiB."""
REFIT_BUFFER = 0.3
"""Share of the free memory that a refit takes as buffer (NRL_REFIT_BUFFER_MEMORY_RATIO)."""
DEFAULT_GPU_GIB = 40.0


@dataclass(frozen=True, slots=True)
class Phase:
    """The memory of one phase on one GPU.

    `allocated` is what tensors take at the peak; `needed` adds what the allocator keeps, CUDA contexts and
    communication buffers. `uncertainty` is relative.
    """

    id: PhaseId
    allocated: float
    needed: float
    fits: bool
    moment: str
    terms: tuple[MemoryTerm, ...]
    uncertainty: float = 0.12


@dataclass(frozen=True, slots=True)
class Estimate:
    """Memory of a recipe; a phase of unknown size is missing, and `notes` say why and what to do."""

    gpu_gib: float
    phases: tuple[Phase, ...]
    host_gib_per_node: float | None
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Return whether all phases with a known size fit."""
        return all(phase.fits for phase in self.phases)


@dataclass(frozen=True, slots=True)
class Demand:
    """Load of the GPUs: the work of both models, and the vLLM engine's."""

    setup: Setup
    student: Work | None
    teacher: Work | None
    notes: tuple[str, ...]


def estimate(recipe: EffectiveRecipe, models: Models, gpu_gib: float | None = None) -> Estimate:
    """Estimate the memory of a recipe on GPUs of `gpu_gib` GiB (default 40, said in the notes)."""
    demand = demand_of(recipe, models)
    notes = list(demand.notes)
    size = gpu_gib or DEFAULT_GPU_GIB
    if gpu_gib is None:
        notes.append(f"GPU memory not given: {DEFAULT_GPU_GIB:g} GiB assumed (--gpu-memory)")
    phases = phases_of(demand, size)
    if demand.student is not None and demand.student.megatron:
        notes.append("Megatron: a coarse estimate, not calibrated on measurements, ±30 %")
    if demand.student is not None and demand.student.facts.source == "table":
        notes.append(f"{demand.student.facts.id}: shape from the built-in table, not from its config.json")
    tight = [phase.id for phase in phases if phase.fits and phase.needed > 0.9 * size]
    if tight:
        notes.append(f"tight (above 90 % of the GPU): {', '.join(tight)}")
    return Estimate(size, phases, _host(demand), tuple(notes))


def demand_of(recipe: EffectiveRecipe, models: Models) -> Demand:
    """Read the load that a recipe puts on its GPUs."""
    setup = Setup.of(recipe)
    notes: list[str] = []
    works: list[Work | None] = []
    if setup.off_policy:
        return Demand(setup, None, None, ("not an on-policy distillation recipe: no single teacher",))
    for side in setup.sides:
        facts = models.find(side.model)
        if isinstance(facts, UnknownModel):
            notes.append(f"{side.name}'s memory is unknown: {facts.reason}. {facts.fix}")
            works.append(None)
        elif facts.params is None:
            notes.append(f"{side.name}'s memory is unknown: the layers of {facts.id} are of different kinds")
            works.append(None)
        elif not side.divides:
            notes.append(
                f"{side.name}'s memory is unknown: {side.gpus} GPUs do not hold whole copies of {side.width}"
            )
            works.append(None)
        else:
            works.append(_work(setup, side, facts))
    return Demand(setup, works[0], works[1], tuple(notes))


def _work(setup: Setup, side: Side, facts: ModelFacts) -> Work:
    teacher = side.name == "teacher"
    return Work(
        facts=facts,
        gpus=side.gpus,
        tp=side.tp,
        cp=side.cp,
        pp=side.pp,
        tokens=_tokens(setup, side),
        checkpointing=side.get(f"{side.section}.activation_checkpointing") is True,
        cpu_offload=side.backend == "dtensor" and side.get("dtensor_cfg.cpu_offload") is True,
        chunk=whole(side.get("logprob_chunk_size")) if teacher else None,
        megatron=side.backend == "megatron",
        sequence_parallel=side.sequence_parallel,
        defer_fp32_logits=side.get("megatron_cfg.defer_fp32_logits") is True,
    )


def _tokens(setup: Setup, side: Side) -> int:
    """Tokens of the fullest micro batch: batching fills it; without, it is the longest samples."""
    kind = "train" if side.name == "policy" else "logprob"
    for batching, on in (("dynamic_batching", side.dynamic), ("sequence_packing", side.packing)):
        filled = whole(side.get(f"{batching}.{kind}_mb_tokens")) if on else None
        if filled:
            return filled
    size = side.count("train_micro_batch_size" if kind == "train" else "logprob_batch_size")
    return (setup.policy.length or side.length or 0) * size


def phases_of(demand: Demand, gpu_gib: float) -> tuple[Phase, ...]:
    """Return the phases whose models are known."""
    phases: list[Phase] = []
    colocated = demand.setup.colocated
    for id_, work in (("student-train", demand.student), ("teacher-score", demand.teacher)):
        if work is not None:
            phases.append(training_phase(id_ == "teacher-score", work, gpu_gib, colocated=colocated))
    if demand.student is not None and demand.setup.policy.get("generation.backend") == "vllm":
        phases.append(_generation(demand.setup, demand.student, gpu_gib))
        if colocated:
            phases.append(_refit(demand.setup, demand.student, gpu_gib))
    return tuple(phases)


def training_phase(teacher: bool, work: Work, gpu_gib: float, *, colocated: bool) -> Phase:
    """Return the phase in which a model trains, or scores."""
    if work.megatron:
        peak = megatron.teacher_peak(work) if teacher else megatron.student_peak(work)
        reserve = 0.15 * peak.gib
    else:
        peak = teacher_peak(work) if teacher else student_peak(work)
        reserve = FITTED.reserve(work, teacher=teacher)
    extra = [MemoryTerm("allocator reserve", max(reserve, 0.0)), MemoryTerm("CUDA context", CONTEXT_GIB)]
    if colocated:
        extra.append(MemoryTerm("other processes", IDLE_PROCESSES_GIB))
    if work.tp >= 4:
        extra.append(MemoryTerm("communication buffers", NCCL_GIB))
    needed = peak.gib + sum(term.gib for term in extra)
    return Phase(
        "teacher-score" if teacher else "student-train",
        peak.gib,
        needed,
        needed <= gpu_gib,
        peak.moment,
        (*peak.terms, *extra),
        megatron.UNCERTAINTY if work.megatron else 0.12,
    )


def _engine(setup: Setup, work: Work) -> tuple[float, float]:
    """Return an engine's weights and the cache of one full-length sequence, GiB per GPU."""
    params = replace(work, tp=1, pp=1).params
    width = setup.vllm_width
    length = whole(setup.policy.get("generation.vllm_cfg.max_model_len")) or setup.policy.length or 0
    return 2 * params / width / GIB, work.facts.kv_bytes_per_token * length / width / GIB


def _generation(setup: Setup, work: Work, gpu_gib: float) -> Phase:
    share = setup.policy.get("generation.vllm_cfg.gpu_memory_utilization")
    budget = gpu_gib * (min(max(share, 0.0), 1.0) if isinstance(share, (int, float)) else 0.9)
    weights, sequence = _engine(setup, work)
    idle = IDLE_PROCESSES_GIB if setup.colocated else 0.0
    least = weights + VLLM_WORKING_GIB + sequence
    terms = (
        MemoryTerm("weights", weights),
        MemoryTerm("activations and graphs", VLLM_WORKING_GIB),
        MemoryTerm("key-value cache", max(budget - weights - VLLM_WORKING_GIB, 0.0)),
        MemoryTerm("CUDA context", CONTEXT_GIB),
        MemoryTerm("other processes", idle),
    )
    needed = max(budget, least) + CONTEXT_GIB + idle
    fits = least <= budget and needed <= gpu_gib
    concurrent = max(budget - weights - VLLM_WORKING_GIB, 0.0) / sequence if sequence else 0.0
    moment = f"the cache holds {concurrent:.1f} sequences of full length"
    return Phase("generation", max(budget, least), needed, fits, moment, terms, 0.2)


def _refit(setup: Setup, work: Work, gpu_gib: float) -> Phase:
    weights, _ = _engine(setup, work)
    states = 4 * work.params / work.gpus / GIB
    free = max(gpu_gib - weights - states - CONTEXT_GIB - IDLE_PROCESSES_GIB, 0.0)
    largest = 2 * work.facts.embedding_params / GIB
    terms = (
        MemoryTerm("student weights", states),
        MemoryTerm("engine weights", weights),
        MemoryTerm("buffer", max(REFIT_BUFFER * free, largest)),
        MemoryTerm("CUDA context", CONTEXT_GIB),
        MemoryTerm("other processes", IDLE_PROCESSES_GIB),
    )
    allocated = sum(term.gib for term in terms[:3])
    needed = allocated + CONTEXT_GIB + IDLE_PROCESSES_GIB
    return Phase("refit", allocated, needed, needed <= gpu_gib, "weights move to the engine", terms, 0.2)


def _host(demand: Demand) -> float | None:
    """GiB of host memory per node: models put aside, sleeping engines, the driver's top-k on the head."""
    setup, student, teacher = demand.setup, demand.student, demand.teacher
    if student is None or teacher is None:
        return None
    nodes = max(setup.train_gpus // setup.gpus_per_node, 1)
    aside = (4 * teacher.params + 12 * student.params) / nodes
    engines = max(setup.gpus_per_node // setup.vllm_width, 1) if setup.colocated else 0
    asleep = 2 * (student.facts.params or 0) * engines
    logits = whole(setup.recipe.get("distillation.topk_logits_k")) or 0
    driver = setup.samples_per_step * (setup.policy.length or 0) * logits * 12
    return (aside + asleep + driver) / GIB
