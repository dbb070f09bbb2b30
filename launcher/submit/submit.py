"""From a request to jobs in the queue: shared by `submit` and the wizard.

    plan = plan_submission(request, detection, store, environment)    writes and submits nothing
    estimate = estimate_start(plan, store, environment)               asks Slurm for a start time
    run = send(plan, store, environment)                              writes the run, submits its jobs

Raises `InputError` for a contradictory or invalid request (time, profile, checkout, check), `RecipeError` for
a recipe that cannot be read, `TransportError` for missing files and environments; `send` also raises
`PreflightFailedError` and `UnconfirmedError` for a plan that would fail or was not confirmed, `RefusedError`
and `UnreachableError` where Slurm refuses or gives no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.checkout import check_venv, choose, remember
from launcher.checkout_state import checkout_state
from launcher.clusters.inventory import Detection, Partition
from launcher.clusters.registry import cluster_of, slurm_cluster
from launcher.errors import InputError, LaunchError, RefusedError, TransportError, UnreachableError
from launcher.interpreter import interpreter_state
from launcher.request import Cost, JobOptions, SubmitRequest, has_dedicated_head, with_profile
from launcher.runs import Run, RunSpec, RunStore
from launcher.site_choices import load_choices, remember_choices, remember_gpu_memory, remember_modules
from launcher.submit.complete import complete, near_checkout, nodes_of, sbatch_arguments
from launcher.submit.gpu_memory import gpu_type, with_gpu_memory
from launcher.submit.hints import (
    cluster_hints,
    hints,
    measured_memory_hint,
    shell_hints,
    usual_time_hint,
)
from launcher.submit.job_environment import choices_of, environment_of
from launcher.submit.modules import loaded_modules, with_modules
from launcher.submit.red_lines import require_whole_gpus
from launcher.submit.submission import Submission, lay_out
from recipes.errors import ExplainedError
from recipes.inheritance import Resolver

if TYPE_CHECKING:
    from launcher.clusters.base import Scheduler
    from launcher.overview.measured_memory import MeasuredEstimate
    from launcher.storage.decision import RunStorage
    from launcher.submit.preflight import Preflight
    from launcher.transports.base import Transport
    from recipes.checks import Report, Result
    from recipes.inheritance import EffectiveRecipe
    from recipes.memory import Estimate

_NOW_S = 90
"""A start within this time counts as immediate: the backfill scheduler plans in steps of 30 to 60 s."""
_SHORTER = (2, 4)
"""Divisors of the time limit for shorter jobs."""
_LEAST_S = 600
"""Shortest job that is tried; less is not useful."""


class PreflightFailedError(LaunchError):
    """A check predicts a failure."""


class UnconfirmedError(InputError):
    """A plan that the user has not confirmed."""


@dataclass(frozen=True, slots=True)
class SubmissionPlan:
    """A planned submission: its jobs, its cost, its preflight."""

    request: SubmitRequest
    submission: Submission
    cost: Cost
    partition: Partition | None
    """None where Slurm does not list it."""
    preflight: Preflight
    notes: tuple[str, ...]
    """Remarks for the user."""
    obstacle: ExplainedError | None = None
    """Why its jobs would end at once, whatever the user confirms: `send` raises it."""
    measured: MeasuredEstimate | None = None
    """Peak of an earlier run of the recipe, beside its estimate."""

    @property
    def options(self) -> JobOptions:
        """The request with every open choice made."""
        return self.submission.layout.options

    @property
    def report(self) -> Report:
        """The report of the checks."""
        return self.preflight.report

    @property
    def memory(self) -> Estimate | None:
        """The memory of each phase; None for rehearsals, and where the GPUs' memory is unknown."""
        return self.preflight.memory

    @property
    def blocking(self) -> tuple[Result, ...]:
        """Failing checks that were not skipped: `send` refuses."""
        return self.preflight.blocking

    @property
    def asks(self) -> tuple[str, ...]:
        """Questions that the user must confirm before `send`."""
        return self.preflight.asks


@dataclass(frozen=True, slots=True)
class StartTime:
    """When a job of some length would start, as Slurm estimates."""

    time_s: int
    start: str
    """As Slurm prints it: local time, `YYYY-MM-DDTHH:MM:SS`."""
    now: bool
    """Whether that is immediately."""


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """When a submission would start, and shorter ones that would start sooner."""

    requested: StartTime
    sooner: tuple[StartTime, ...] = ()

    @property
    def start(self) -> str:
        """The start of the job as requested."""
        return self.requested.start


def plan_submission(
    request: SubmitRequest,
    detection: Detection,
    store: RunStore,
    environment: Mapping[str, str],
    resolver: Resolver | None = None,
) -> SubmissionPlan:
    """Return the planned submission of a request. Nothing is written.

    Args:
        request: The user's request.
        detection: The cluster's offer.
        store: Where runs are kept.
        environment: This program's environment.
        resolver: Keeps parsed recipes between calls.

    Raises:
        InputError: the request is contradictory or invalid.
        RecipeError: the recipe cannot be read.
        TransportError: a file is missing.
    """
    resolver = resolver or Resolver()
    request = with_profile(request, detection.site)
    remembered = load_choices(store.transport, environment, detection.site.id)
    detection = with_gpu_memory(detection, request.gpu_memory, remembered.gpu_memory_gib)
    detection = with_modules(detection, request, remembered.modules, environment)
    if request.nodes is None:
        return _on_fewest_nodes(request, detection, store, environment, resolver)
    return _planned(request, detection, store, environment, resolver)


def _planned(
    request: SubmitRequest,
    detection: Detection,
    store: RunStore,
    environment: Mapping[str, str],
    resolver: Resolver,
) -> SubmissionPlan:
    """Plan a request with its profile, its nodes, and a site that has all that is remembered of it."""
    from launcher.submit.preflight import preflight

    transport = store.transport
    rehearsal = request.kind == "rehearsal"
    near = () if rehearsal else near_checkout(transport, request, resolver)
    checkout = None if rehearsal else choose(transport, request.checkout, environment, near=near)
    partition, options = complete(request, detection, transport, environment, checkout, resolver, store.root)
    cluster = slurm_cluster(transport, store.root, environment)
    submission = lay_out(cluster, store, detection.site, options, resolver)
    require_whole_gpus(submission, partition)
    result = preflight(submission, partition, resolver, transport)
    spec = submission.spec.model_copy(
        update={"skipped_checks": result.skipped, "estimated_gib": result.estimated_gib}
    )
    measured = _measured(spec, submission.recipe, store) if result.memory is not None else None
    cost = _cost(options, partition)
    obstacle, interpreter_note = _interpreter(submission, transport, environment)
    notes = (
        *submission.notes,
        *result.notes,
        *hints(environment, submission),
        *cluster.hints(submission.layout, partition),
        *cluster_hints(detection, partition, options, cost),
        *shell_hints(environment, request, options.slurm_request),
        *filter(
            None,
            (
                _time_hint(submission, store),
                _memory_hint(spec, measured, result),
                interpreter_note,
            ),
        ),
    )
    return SubmissionPlan(
        request, replace(submission, spec=spec), cost, partition, result, notes, obstacle, measured
    )


def _time_hint(submission: Submission, store: RunStore) -> str:
    """Return a hint where the time limit is too short for the recipe's steps, by earlier runs of it."""
    from launcher.overview.usual_runs import usual_durations

    options, steps = submission.layout.options, submission.recipe.get("distillation.max_num_steps")
    if options.kind != "training" or not isinstance(steps, int):
        return ""
    slurm = options.slurm_request
    usual = usual_durations(store.transport, store.root, submission.spec.recipe.source, options.nodes)
    return usual_time_hint(usual, steps, slurm.time_s, slurm.chain)


def _measured(spec: RunSpec, recipe: EffectiveRecipe, store: RunStore) -> MeasuredEstimate | None:
    """Return the peak of an earlier run of a recipe."""
    from launcher.overview.measured_memory import measured_memory, models_in

    return measured_memory(store.transport, store.root, spec.recipe.source, spec.nodes, models_in(recipe))


def _memory_hint(spec: RunSpec, measured: MeasuredEstimate | None, preflight: Preflight) -> str:
    """Return a hint where the recipe fits by the estimate, but not by what an earlier run of it took."""
    memory = preflight.memory
    if memory is None or not memory.fits or spec.estimated_gib is None:
        return ""
    return measured_memory_hint(measured, spec.estimated_gib, memory.gpu_gib)


def _interpreter(
    submission: Submission, transport: Transport, environment: Mapping[str, str]
) -> tuple[ExplainedError | None, str]:
    """Return why the job's Python does not start, and a remark; one in a container is not asked.

    What modules of the job add is not known here: with them, only its files are looked for.
    """
    job = submission.plans[0].environment
    venv = job.get("RAY_BARE_VENV")
    if venv is None:
        return None, ""
    try:
        check_venv(transport, Path(venv), environment)
    except TransportError as error:
        return error, ""
    if submission.layout.site.modules:
        return None, ""
    state, loaded = interpreter_state(transport, venv, environment, job), loaded_modules(environment)
    return state.obstacle(loaded), state.note(loaded)


def storage_of(plan: SubmissionPlan, store: RunStore, environment: Mapping[str, str]) -> RunStorage:
    """Return what a plan would write, and where; `environment` is this program's."""
    from launcher.storage.decision import run_storage

    job = {**plan.submission.plans[0].environment, **plan.options.keys}
    return run_storage(plan.submission.layout, job, Path(store.root), store.transport, environment)


def _cost(options: JobOptions, partition: Partition | None) -> Cost:
    slurm = options.slurm_request
    cores = partition.cpus.cores if partition is not None else None
    return Cost.of(options.nodes, options.gpus_per_node, slurm.time_s * slurm.chain, cores)


def _on_fewest_nodes(
    request: SubmitRequest,
    detection: Detection,
    store: RunStore,
    environment: Mapping[str, str],
    resolver: Resolver,
) -> SubmissionPlan:
    """Plan for the recipe's nodes; a smoke run for the fewest where nothing fails and the memory suffices."""
    job = environment_of(request, detection.site, store.transport, environment)
    # A node that only has Ray's head comes on top of those that work.
    head = 1 if has_dedicated_head(job) else 0
    nodes = nodes_of(request, resolver)
    count = 1
    while request.kind == "smoke" and count < nodes:
        tried = replace(request, nodes=count + head)
        plan = _planned(tried, detection, store, environment, resolver)
        if not plan.blocking and not plan.asks:
            return plan
        count *= 2
    return _planned(replace(request, nodes=nodes + head), detection, store, environment, resolver)


def send(
    plan: SubmissionPlan, store: RunStore, environment: Mapping[str, str], *, confirmed: bool = False
) -> Run:
    """Write the run's directory and submit its jobs, once; returns the run.

    Args:
        plan: What `plan_submission` returned.
        store: Where runs are kept.
        environment: This program's environment.
        confirmed: The user has confirmed the plan's questions.

    Raises:
        PreflightFailedError: a check that was not skipped fails.
        UnconfirmedError: the plan has questions that were not confirmed.
        RefusedError: Slurm refused; the run records that.
        UnreachableError: it is not clear whether Slurm accepted the job; watching the run resolves it.
    """
    require_clear(plan, confirmed=confirmed)
    run = store.create(_with_checkout_state(plan, store, environment), plan.submission.files)
    for link in plan.submission.plans:
        try:
            run = cluster_of(run, store.transport).submit(run, link)
        except (RefusedError, UnreachableError) as error:
            raise _partly(error, run, len(plan.submission.plans)) from error
    if plan.options.checkout is not None:
        remember(store.transport, plan.options.checkout, environment)
    site = plan.submission.layout.site.id
    remember_choices(store.transport, environment, site, choices_of(plan.request, environment))
    if plan.request.modules:
        remember_modules(store.transport, environment, site, plan.submission.layout.site.modules)
    if plan.request.gpu_memory is not None and plan.partition is not None:
        kind = gpu_type(plan.partition)
        remember_gpu_memory(store.transport, environment, site, kind, plan.request.gpu_memory)
    return run


def _with_checkout_state(plan: SubmissionPlan, store: RunStore, environment: Mapping[str, str]) -> RunSpec:
    """Return the run's record with the commit of its checkout; git is asked only for what is submitted."""
    spec = plan.submission.spec
    if spec.checkout is None:
        return spec
    state = checkout_state(store.transport, environment, spec.checkout)
    return spec.model_copy(update={"checkout_state": state})


def _partly(error: RefusedError | UnreachableError, run: Run, links: int) -> RefusedError | UnreachableError:
    """Return the error with the jobs of a chain that were submitted before it."""
    if not run.jobs:
        return error
    ids = ", ".join(job.id for job in run.jobs)
    return type(error)(
        f"{error.what} (job {len(run.jobs) + 1} of the {links} of a chain)",
        where=error.where,
        fix=f"Submitted before it: {ids}; they run as a shorter chain, or `cancel {run.spec.id}` stops them.",
    )


def require_clear(plan: SubmissionPlan, *, confirmed: bool = False) -> None:
    """Raise where a plan must not be sent.

    Raises:
        ExplainedError: the plan has an obstacle.
        PreflightFailedError: a check that was not skipped fails.
        UnconfirmedError: the plan has questions that were not confirmed.
    """
    if plan.obstacle is not None:
        raise plan.obstacle
    if plan.blocking:
        ids = ", ".join(dict.fromkeys(result.id for result in plan.blocking))
        raise PreflightFailedError(
            f"not submitted: {ids} would fail",
            where=plan.request.recipe,
            fix="Apply a fix with `check --fix`, or skip each of them with --skip-check ID.",
        )
    if plan.asks and not (confirmed or plan.request.yes):
        raise UnconfirmedError(
            f"not submitted: {'; '.join(plan.asks)}",
            where=plan.request.recipe,
            fix="`memory` shows what would fit; --yes submits all the same.",
        )


def estimate_start(
    plan: SubmissionPlan, store: RunStore, environment: Mapping[str, str], *, shorter: bool = True
) -> StartEstimate:
    """Ask Slurm when the job would start, and whether a shorter one would start sooner; submits nothing.

    Args:
        plan: What `plan_submission` returned.
        store: Where runs are kept.
        environment: This program's environment.
        shorter: Try shorter times, too, where the start is not immediate: at most two more questions.

    Raises:
        RefusedError: Slurm would refuse.
        UnreachableError: it gave no answer.
    """
    cluster = slurm_cluster(store.transport, store.root, environment)
    options = _with_profile_arguments(plan)
    limit_s = options.slurm_request.time_s
    requested = _start(cluster, options, limit_s)
    if not shorter or requested.now:
        return StartEstimate(requested)
    sooner: list[StartTime] = []
    for part in _SHORTER:
        time_s = limit_s // part // 60 * 60
        if time_s < _LEAST_S:
            break
        start = _start(cluster, options, time_s)
        if start.start < min((item.start for item in (requested, *sooner)), default=""):
            sooner.append(start)
        if start.now:
            break
    return StartEstimate(requested, tuple(sooner))


def _with_profile_arguments(plan: SubmissionPlan) -> JobOptions:
    """Return a plan's options with all arguments of sbatch in its request."""
    options = plan.options
    arguments = sbatch_arguments(options.request, plan.submission.layout.site)
    return replace(options, request=replace(options.request, sbatch_args=arguments))


def _start(cluster: Scheduler, options: JobOptions, time_s: int) -> StartTime:
    slurm = options.slurm_request.model_copy(update={"time_s": time_s})
    start = cluster.estimate_start(replace(options, slurm=slurm))
    return StartTime(time_s, start, _is_now(start))


def _is_now(start: str) -> bool:
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        return False
    return (at - datetime.now(at.tzinfo)).total_seconds() < _NOW_S
