"""Preflight of a submission: checks with the job's environment, and the memory estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from launcher.clusters.inventory import Partition, gpu_memory_gib
from launcher.errors import InputError
from launcher.request import JobOptions, Kind
from launcher.runs import SkippedCheck
from launcher.sites import Site
from launcher.submit.submission import Submission
from launcher.transports.base import Transport
from recipes.checks import RULES, Checker, ClusterRequest, Inputs, Report, Result, is_skipped
from recipes.inheritance import Resolver
from recipes.memory import Estimate, estimate

if TYPE_CHECKING:
    from recipes.memory import Phase

REHEARSED = frozenset(("C61", "C62"))
"""Checks that apply to a rehearsal: its actors are placed like real ones, its models are stand-ins."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """Results of a preflight."""

    report: Report
    memory: Estimate | None
    blocking: tuple[Result, ...]
    asks: tuple[str, ...]
    skipped: tuple[SkippedCheck, ...]
    """Failing checks that were skipped by id."""
    notes: tuple[str, ...] = ()

    @property
    def estimated_gib(self) -> float | None:
        """What the largest phase needs on a GPU; None where that is not known."""
        phases = self.memory.phases if self.memory is not None else ()
        return round(max(phase.needed for phase in phases), 3) if phases else None


def preflight(
    submission: Submission, partition: Partition | None, resolver: Resolver, transport: Transport
) -> Preflight:
    """Check a submission with its job's environment and its resolved recipe.

    Raises:
        InputError: a check to skip does not exist.
    """
    options = submission.layout.options
    ids = _check_ids(options.request.skip_checks)
    environment = {**submission.plans[0].environment, **options.keys}
    inputs = Inputs.of(
        environment=environment,
        checkout=transport.path(options.checkout.path) if options.checkout is not None else None,
        root=transport.path("").absolute(),
        request=cluster_request(
            ClusterRequest(options.worker_nodes, options.gpus_per_node, time_s=options.slurm_request.time_s),
            options.kind,
            submission.layout.site,
            partition,
            submission.plans[0].environment,
        ),
    )
    checker = Checker(inputs, resolver)
    report = checker.check(options.request.recipe, submission.overrides, recipe=submission.recipe)
    if options.kind == "rehearsal":
        report = of_rehearsal(report)
    memory = _memory(report, inputs, options)
    too_large = [phase for phase in memory.phases if not phase.fits] if memory is not None else []
    return Preflight(
        report,
        memory,
        report.blocking(ids),
        tuple(_question(phase, memory.gpu_gib) for phase in too_large if memory is not None),
        tuple(
            SkippedCheck(id=item.id, message=item.message) for item in report.failing if is_skipped(item, ids)
        ),
        _notes(inputs, memory, options),
    )


def of_rehearsal(report: Report) -> Report:
    """Return the part of a report that applies to a rehearsal."""
    return Report(tuple(item for item in report.results if item.id in REHEARSED), report.recipe)


def _notes(inputs: Inputs, memory: Estimate | None, options: JobOptions) -> tuple[str, ...]:
    if options.kind == "rehearsal":
        return ()
    if inputs.request.gpu_memory_gib is None:
        return ("the memory of the GPUs is unknown: give --gpu-memory GIB, which is remembered",)
    return memory.notes if memory is not None else ()


def _check_ids(skip: Sequence[str]) -> frozenset[str]:
    """Return the skipped rules and findings, their ids in capitals.

    Raises:
        InputError: there is no such rule.
    """
    parts = [text.partition(":") for text in skip]
    unknown = sorted({name.upper() for name, _, _ in parts} - {rule.id for rule in RULES})
    if unknown:
        fix = "Give an id that `check` lists, such as C34, or C66:policy.model_name for one finding."
        raise InputError(f"unknown check '{unknown[0]}'", fix=fix)
    return frozenset(f"{name.upper()}{colon}{key}" for name, colon, key in parts)


def cluster_request(
    request: ClusterRequest,
    kind: Kind,
    site: Site,
    partition: Partition | None,
    environment: Mapping[str, str] | None = None,
) -> ClusterRequest:
    """Return a request with the partition's resources; `environment` is the job's, None if unknown."""
    name = partition.name if partition is not None else None
    request = replace(request, offline=site.is_offline(name), submitting=True)
    if partition is None:
        return request
    nodes = partition.gpu_nodes if request.gpus_per_node != 0 else partition.nodes
    nodes = nodes if partition.max_nodes is None else min(nodes, partition.max_nodes)
    cpus = _offered(environment or {}) or partition.cpus.cpus
    return replace(
        request,
        gpu_memory_gib=gpu_memory_gib(partition.gpus.type or "gpu", site.gpu_memory_gib),
        node_gpus=partition.gpus.count or None,
        # A rehearsal's actors take a tenth of a CPU each.
        node_cpus=None if kind == "rehearsal" else cpus,
        available_nodes=nodes,
    )


def _offered(environment: Mapping[str, str]) -> int | None:
    """Return the CPUs of a node that Ray may use, where they are limited."""
    text = environment.get("RAY_BARE_CPUS", "")
    return int(text) if text.isdecimal() else None


def _memory(report: Report, inputs: Inputs, options: JobOptions) -> Estimate | None:
    """Estimate the memory; None where the GPUs' memory is unknown."""
    if options.kind == "rehearsal" or report.recipe is None or inputs.request.gpu_memory_gib is None:
        return None
    return estimate(report.recipe, inputs.models, inputs.request.gpu_memory_gib, inputs.checkout_path)


def _question(phase: Phase, gpu_gib: float) -> str:
    return (
        f"{phase.id} needs about {phase.needed:.1f} GiB (±{phase.uncertainty:.0%}) of a GPU's {gpu_gib:g} GiB"
    )
