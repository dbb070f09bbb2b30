"""Changes of a recipe that make it fit on a GPU, cheapest first: fewer nodes, then less time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import TYPE_CHECKING

from recipes.memory.demand import Demand, micro_batches
from recipes.memory.estimate import training_phase
from recipes.memory.fit_edits import fix_of
from recipes.memory.wrapping import V1, V1_UNTIED
from recipes.planning.sizes import legal_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recipes.memory.shapes import Work
    from recipes.planning.edits import Fix
    from recipes.planning.setup import Side

_MORE_NODES = (1, 2, 4, 8)
_LENGTHS = (1.0, 0.5, 0.25)
_TRIED = 24
"""Proposals that are checked by the rules, at most, per side."""
_OFFLOAD, _RECOMPUTE, _WIDER, _SMALLER, _WORKER = 2.0, 0.3, 0.1, 0.05, 0.02
"""Rough shares of a step's time that a change costs: CPU offload, recomputing, each doubling of TP or CP,
smaller micro batches; the other worker costs a rewrite, not time. They order proposals and nothing else."""


@dataclass(frozen=True, slots=True)
class Option:
    """Change under which a phase fits, and the GiB that it then needs."""

    side: str
    fix: Fix
    needed: float
    nodes: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    work: Work
    nodes: int
    time: float


def options(
    demand: Demand, gpu_gib: float, limit: int = 4, accepts: Callable[[Fix, Side], bool] | None = None
) -> tuple[Option, ...]:
    """Return changes that make student and teacher fit; none for a side that fits or is unknown.

    Fewest nodes first, then least time lost: without CPU offload before with it. Shorter sequences change
    what is trained, and are proposed only where nothing else fits. `accepts` decides on each proposal; the
    rules of a recipe do in `recipes.checks.fitting`.
    """
    chosen: list[Option] = []
    for side, work in zip(demand.setup.sides, (demand.student, demand.teacher), strict=True):
        teacher, colocated = side.name == "teacher", demand.setup.colocated
        if work is None or training_phase(teacher, work, gpu_gib, colocated=colocated).fits:
            continue
        for share in _LENGTHS:
            fitting = _fitting(demand, side, work, gpu_gib, share)
            accepted = _accepted(fitting, demand, side, work, limit, accepts)
            if accepted:
                chosen.extend(accepted)
                break
    return tuple(chosen)


def _accepted(
    fitting: Iterator[tuple[_Candidate, float]],
    demand: Demand,
    side: Side,
    work: Work,
    limit: int,
    accepts: Callable[[Fix, Side], bool] | None,
) -> list[Option]:
    """Return the first proposals that are accepted; a change that only adds to one of them is left out."""
    accepted: list[Option] = []
    for _, (candidate, needed) in zip(range(_TRIED), fitting, strict=False):
        fix = fix_of(demand, side, work, candidate.work, candidate.nodes)
        changes = {(edit.key, str(edit.after)) for edit in fix.edits}
        if any(changes >= {(edit.key, str(edit.after)) for edit in other.fix.edits} for other in accepted):
            continue
        if accepts is None or accepts(fix, side):
            accepted.append(Option(side.name, fix, needed, candidate.nodes))
            if len(accepted) == limit:
                break
    return accepted


def _fitting(
    demand: Demand, side: Side, work: Work, gpu_gib: float, share: float
) -> Iterator[tuple[_Candidate, float]]:
    """Yield the candidates that fit with what they need, cheapest first."""
    teacher, colocated = side.name == "teacher", demand.setup.colocated
    for factor in _MORE_NODES:
        candidates = sorted(_candidates(demand, side, work, factor, share), key=lambda item: item.time)
        for candidate in candidates:
            phase = training_phase(teacher, candidate.work, gpu_gib, colocated=colocated)
            if phase.fits:
                yield candidate, phase.needed


def _candidates(demand: Demand, side: Side, work: Work, factor: int, share: float) -> Iterator[_Candidate]:
    """Yield legal settings on so many times the nodes: parallel sizes, worker, recomputing, offload, rows."""
    setup = demand.setup
    gpus = setup.train_gpus * factor if setup.colocated else setup.train_gpus + setup.gpus * (factor - 1)
    sizes = legal_parallel(gpus, work.facts, node_gpus=setup.gpus_per_node, pipeline=work.megatron)
    variants = list(_variants(side, work, share))
    for size in sizes:
        dp = gpus // size.width
        shared = setup.global_batch if side.name == "policy" else setup.samples_per_step
        if shared and shared % dp:
            continue
        wider = abs(log2(size.width / work.tp / work.cp / work.pp))
        for variant, time in variants:
            if variant.cpu_offload and gpus == 1:
                continue
            split = replace(variant, gpus=gpus, tp=size.tp, cp=size.cp, pp=size.pp)
            if side.name == "policy":
                split = replace(split, micro_batches=micro_batches(setup, side, split, dp))
            yield _Candidate(split, setup.nodes * factor, time + _WIDER * wider)


def _variants(side: Side, work: Work, share: float) -> Iterator[tuple[Work, float]]:
    """Yield the work with other settings than sizes, and the time that they cost."""
    train = side.name == "policy"
    dtensor = not work.megatron and side.backend == "dtensor"
    offloads = (False, True) if dtensor and not work.cpu_offload else (work.cpu_offload,)
    recomputing = (work.checkpointing, True) if train and not work.checkpointing else (work.checkpointing,)
    held = dtensor and train and (work.wrapping.holds_layers or work.unsharded)
    first = V1 if work.wrapping.ties_again else V1_UNTIED
    wrappings = (work.wrapping, first) if held else (work.wrapping,)
    rows = (work.rows, 1) if work.rows > 1 else (1,)
    for offload in offloads:
        for recompute in recomputing:
            for wrapping in wrappings:
                for count in rows:
                    time = _OFFLOAD * (offload and not work.cpu_offload)
                    time += _RECOMPUTE * (recompute and not work.checkpointing)
                    time += _WORKER * (wrapping is not work.wrapping) + _SMALLER * (count < work.rows)
                    tokens = int(work.tokens / work.rows * count * share)
                    packed = tuple(max(int(length * share * count / work.rows), 1) for length in work.packed)
                    variant = replace(
                        work,
                        tokens=tokens,
                        rows=count,
                        packed=packed,
                        cpu_offload=offload,
                        checkpointing=recompute,
                        wrapping=wrapping,
                    )
                    yield variant, time
