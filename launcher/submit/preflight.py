"""What is foretold of a submission: the checks, with the job's own environment, and the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.clusters.slurm.gres import gpu_memory_gib
from launcher.clusters.slurm.job_options import JobOptions
from launcher.clusters.slurm.partitions import Partition
from launcher.clusters.slurm.submission import Submission
from launcher.errors import InputError
from launcher.runs import SkippedCheck
from launcher.sites import Site
from recipes.checks import RULES, Checker, ClusterRequest, Inputs, Report, Result
from recipes.memory import Estimate, estimate

if TYPE_CHECKING:
    from recipes.memory import Phase

REHEARSED = frozenset(("C61", "C62"))
"""What concerns a rehearsal: its actors are placed on nodes and GPUs as the real ones are. NeMo-RL does not
run, and its models are stand-ins."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is foretold."""

    report: Report
    memory: Estimate | None
    blocking: tuple[Result, ...]
    asks: tuple[str, ...]
    skipped: tuple[SkippedCheck, ...]
    """Checks that fail and were skipped by id."""
    notes: tuple[str, ...] = ()


def preflight(
    submission: Submission,
    choices: JobOptions,
    site: Site,
    partition: Partition | None,
    recipe: Path,
    skip: Sequence[str] = (),
) -> Preflight:
    """Check a submission that is laid out.

    Raises:
        InputError: `skip` holds what is no id of a check.
    """
    ids = _known(skip)
    checkout = Path(choices.checkout.path) if choices.checkout is not None else None
    inputs = Inputs.of(
        environment={**submission.plans[0].environment, **choices.keys},
        checkout=checkout,
        request=request_of(choices, site, partition, submission.plans[0].environment),
    )
    report = Checker(inputs).check(recipe, submission.overrides)
    if choices.kind == "rehearsal":
        report = of_rehearsal(report)
    memory = _memory(report, inputs, choices)
    return Preflight(
        report,
        memory,
        report.blocking(ids),
        tuple(_question(phase, memory.gpu_gib) for phase in memory.phases if not phase.fits)
        if memory
        else (),
        tuple(SkippedCheck(id=item.id, message=item.message) for item in report.failing if item.id in ids),
        _notes(inputs, memory, choices),
    )


def of_rehearsal(report: Report) -> Report:
    """Return what of a report concerns a rehearsal."""
    return Report(tuple(item for item in report.results if item.id in REHEARSED), report.recipe)


def _notes(inputs: Inputs, memory: Estimate | None, choices: JobOptions) -> tuple[str, ...]:
    if choices.kind == "rehearsal":
        return ()
    if inputs.request.gpu_memory_gib is None:
        return ("the memory of the GPUs is not known: put it under [gpu_memory_gib] into your site.toml",)
    return memory.notes if memory is not None else ()


def _known(skip: Sequence[str]) -> frozenset[str]:
    ids = frozenset(text.upper() for text in skip)
    unknown = sorted(ids - {rule.id for rule in RULES})
    if unknown:
        raise InputError(
            f"there is no check '{unknown[0]}'", fix="Give an id that `check` lists, such as C34."
        )
    return ids


def request_of(
    choices: JobOptions, site: Site, partition: Partition | None, environment: Mapping[str, str] | None = None
) -> ClusterRequest:
    """Return what is asked of the cluster, as checks see it; `environment` is that of the job, if known."""
    gpus, nodes, memory, cpus = None, None, None, None
    if partition is not None:
        gpus = partition.gpus.count or None
        nodes = partition.nodes if partition.max_nodes is None else min(partition.nodes, partition.max_nodes)
        cpus = _offered(environment or {}) or partition.cpus.cpus
        memory = gpu_memory_gib(partition.gpus.type or "gpu", site.gpu_memory_gib)
    return ClusterRequest(
        nodes=choices.nodes,
        gpus_per_node=choices.gpus_per_node,
        gpu_memory_gib=memory,
        time_s=choices.request.time_s,
        node_gpus=gpus,
        # A rehearsal's actors take a tenth of a CPU each.
        node_cpus=None if choices.kind == "rehearsal" else cpus,
        available_nodes=nodes,
        offline=site.offline,
        submitting=True,
    )


def _offered(environment: Mapping[str, str]) -> int | None:
    """Return the CPUs that Ray is told to offer on a node, where that is not all of them."""
    text = environment.get("RAY_BARE_CPUS", "")
    return int(text) if text.isdecimal() else None


def _memory(report: Report, inputs: Inputs, choices: JobOptions) -> Estimate | None:
    """Estimate the memory; a GPU of unknown memory is not assumed to have some."""
    if choices.kind == "rehearsal" or report.recipe is None or inputs.request.gpu_memory_gib is None:
        return None
    return estimate(report.recipe, inputs.models, inputs.request.gpu_memory_gib)


def _question(phase: Phase, gpu_gib: float) -> str:
    return (
        f"{phase.id} needs about {phase.needed:.1f} GiB (±{phase.uncertainty:.0%}) of a GPU's {gpu_gib:g} GiB"
    )
