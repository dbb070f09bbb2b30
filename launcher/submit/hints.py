"""Hints before a submission: variables that do not reach the job, checkpoints on the wrong file system."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from launcher.clusters.admission import JobAdmission, no_account_text, not_listed, obstacles
from launcher.clusters.inventory import Detection, Partition
from launcher.clusters.shell_defaults import NOT_USED, VARIABLES
from launcher.durations import in_words
from launcher.environment import Outcome, kind_of
from launcher.monitor.usual import Usual
from launcher.overview.measured_memory import MeasuredEstimate
from launcher.request import Cost, JobOptions, SubmitRequest
from launcher.runs import SlurmRequest
from launcher.submit.submission import Submission

MAY_REFUSE = "Slurm may refuse the job: "
"""How a hint begins that Slurm itself answers once the job is sent."""


def hints(environment: Mapping[str, str], submission: Submission) -> tuple[str, ...]:
    """Return hints about a submission; `environment` is this program's."""
    site, kind = submission.layout.site, submission.layout.options.kind
    lines = []
    if site.stores_environments:
        lines.append(f"{site.name} stores the environment of jobs; it does not contain your keys")
    if kind == "rehearsal":
        return tuple(lines)
    lines += _dropped_variables(submission)
    job = submission.plans[0].environment
    if job.get("NRL_FORCE_REBUILD_VENVS", "").lower() == "true":
        lines.append(
            "NRL_FORCE_REBUILD_VENVS of your shell makes the job build the workers' environments anew"
            " (--no-env NRL_FORCE_REBUILD_VENVS)"
        )
    if kind == "training":
        lines += _big_files(environment, submission)
    return tuple(lines)


def cluster_hints(
    detection: Detection, partition: Partition | None, options: JobOptions, cost: Cost
) -> Iterator[str]:
    """Yield hints about what Slurm may refuse, nodes that are down, and a budget that does not suffice."""
    yield from _admission(detection, partition, options)
    usable = partition.nodes_usable if partition is not None else None
    # More nodes than there are is Slurm's refusal, and no matter of nodes that are down.
    if partition is not None and usable is not None and usable < options.nodes <= partition.nodes:
        yield (
            f"only {usable} of {partition.nodes} nodes of {partition.name} can be used now: a job of"
            f" {options.nodes} waits until others are back"
        )
    account = options.slurm_request.account
    for budget in detection.budgets or ():
        if budget.account != account or budget.core_h_left is None or cost.core_hours is None:
            continue
        if cost.core_hours > budget.core_h_left:
            yield (
                f"the job may cost {cost.core_hours:,.0f} core-hours; the budget {account} has"
                f" {budget.core_h_left:,.0f} left"
            )


def _admission(
    detection: Detection, partition_of_job: Partition | None, options: JobOptions
) -> Iterator[str]:
    """Yield why Slurm may refuse the job or let it wait for ever, and what it lacks to know of GPUs."""
    slurm, gpus = options.slurm_request, options.gpus_per_node
    if unlisted := not_listed(slurm.partition, detection):
        yield f"{MAY_REFUSE}{unlisted}"
    partition = detection.partition(slurm.partition)
    job = JobAdmission(
        slurm.partition, options.nodes, slurm.time_s, slurm.account, slurm.qos, with_gpus=gpus > 0
    )
    yield from (f"{MAY_REFUSE}{text}" for text in obstacles(job, detection))
    usable = detection.accounts_in(partition) if partition is not None else None
    if partition is not None and usable == () and detection.accounts:
        yield f"{MAY_REFUSE}{no_account_text(partition, detection)}"
    if usable and slurm.account is not None and slurm.account not in usable:
        text = f"{slurm.account} may not use {slurm.partition}; {', '.join(usable)} may"
        yield f"{MAY_REFUSE}{text}"
    if options.gpus_per_node and partition_of_job is not None and len(partition_of_job.gpu_types) > 1:
        kinds = ", ".join(kind or "untyped" for kind in partition_of_job.gpu_types)
        yield (
            f"nodes of {slurm.partition} have different GPUs ({kinds}), and the job may get any:"
            f" --sbatch-arg=--gres=gpu:TYPE:{gpus} chooses"
        )
    if gpus and not slurm.gres:
        yield (f"Slurm lists no GPUs here: the job asks for whole nodes, and each must have {gpus} GPUs")


def shell_hints(environment: Mapping[str, str], request: SubmitRequest, slurm: SlurmRequest) -> Iterator[str]:
    """Yield what the job takes from sbatch's variables in the shell, and those that it does not take."""
    taken = [
        f"--{name}={environment[variable]} ({variable})"
        for name, variable in VARIABLES.items()
        if environment.get(variable) and getattr(request, name) is None
        if name == "time" or slurm.option(name) == environment[variable]
    ]
    if taken:
        yield f"from your shell: {', '.join(taken)}"
    account = environment.get(VARIABLES["account"])
    if account and request.account is None and slurm.account != account:
        charged = f"{slurm.account} is charged" if slurm.account else "none is named"
        yield f"{account} ({VARIABLES['account']} of your shell) may not use {slurm.partition}; {charged}"
    for variable, option in NOT_USED.items():
        if value := environment.get(variable):
            argument = f"--sbatch-arg={shlex.quote(f'--{option}={value}')}"
            yield f"{variable} of your shell is not used; {argument} passes it on"


def usual_time_hint(usual: Usual, steps: int, time_s: int, chain: int) -> str:
    """Return a hint where a recipe's steps need more time than its jobs have; empty where not, or unknown.

    Each job of a chain starts up again.
    """
    if usual.step_s is None or usual.setup_s is None:
        return ""
    needed_s = usual.setup_s * chain + usual.step_s * steps
    if needed_s <= time_s * chain:
        return ""
    jobs = f"{chain} jobs of {in_words(time_s)}" if chain > 1 else f"the time limit of {in_words(time_s)}"
    runs = "an earlier run" if usual.runs == 1 else f"{usual.runs} earlier runs"
    return (
        f"by {runs} of this recipe on as many nodes, start-up takes {in_words(usual.setup_s)} and a step"
        f" {in_words(usual.step_s)}: {steps:,} steps need {in_words(needed_s)}, more than {jobs}"
    )


def measured_memory_hint(measured: MeasuredEstimate | None, estimated_gib: float, gpu_gib: float) -> str:
    """Return a hint where an estimate that fits does not by what an earlier run took; empty where it does."""
    if measured is None or measured.corrected_gib(estimated_gib) <= gpu_gib:
        return ""
    return (
        f"{measured.run}, an earlier run of this recipe, took {measured.in_words()}: by that, this one needs"
        f" {measured.corrected_gib(estimated_gib):.1f} GiB of a GPU's {gpu_gib:g} GiB"
    )


def _dropped_variables(submission: Submission) -> Iterator[str]:
    """Name the directories of the shell that the job does not get, and the secrets that it could get."""
    environment = submission.layout.options.environment
    decisions = environment.decisions if environment is not None else ()
    for item in decisions:
        if item.outcome is Outcome.DROPPED and kind_of(item.name) == "storage" and item.name != "TMPDIR":
            yield f"{item.name} of your shell does not reach the job: {item.reason}"
        if kind_of(item.name) == "storage" and "$" in item.value:
            yield f"{item.name} of the job is {item.value}: your shell has no such variable"
    offered = [item.name for item in decisions if item.outcome is Outcome.OFFERED]
    if offered:
        yield f"secrets that stay out of the job: {', '.join(offered)} (--env NAME gives one to the driver)"


def _big_files(environment: Mapping[str, str], submission: Submission) -> Iterator[str]:
    """Compare the checkpoint directory with the site's file system for large files."""
    site, recipe = submission.layout.site, submission.recipe
    directory = recipe.get("checkpointing.checkpoint_dir")
    if not site.scratch or not isinstance(directory, str) or not recipe.get("checkpointing.enabled", False):
        return
    target = Path(submission.spec.checkout or "", directory)
    scratch = Template(site.scratch).safe_substitute(environment)
    if "$" in scratch:
        if target.is_relative_to(environment.get("HOME") or "/nowhere"):
            yield f"checkpoints go below your home directory ({target}); large files belong in {site.scratch}"
    elif not target.is_relative_to(scratch):
        yield f"checkpoints go to {target}; on {site.name} large files belong in {scratch}"
