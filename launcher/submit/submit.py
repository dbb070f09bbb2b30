"""From a request to jobs in the queue: what `submit` and the wizard share.

    plan = plan_submission(request, detection, store, environment)    writes and submits nothing
    estimate = estimate_start(plan, store, environment)               asks Slurm when it would start
    run = send(plan, store, environment)                              writes the run, submits its jobs

Raised are `InputError` for a request that contradicts itself or names nothing (a time, a profile, a checkout,
a check), `RecipeError` for a recipe that cannot be read, `TransportError` for files and environments that are
not there; by `send`, `PreflightFailedError` and `UnconfirmedError` for a plan that would fail or was not
agreed to, `RefusedError` and `UnreachableError` where Slurm refuses or gives no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from launcher.checkout import choose, remember
from launcher.clusters.inventory import Detection, Partition
from launcher.clusters.registry import cluster_of, slurm_cluster
from launcher.errors import InputError, LaunchError, RefusedError, UnreachableError
from launcher.request import Cost, JobOptions, SubmitRequest
from launcher.runs import Run, RunStore
from launcher.submit.complete import complete, nodes_of
from launcher.submit.hints import hints
from launcher.submit.layout import Submission, lay_out
from recipes.inheritance import Resolver

if TYPE_CHECKING:
    from launcher.clusters.base import Scheduler
    from launcher.submit.preflight import Preflight
    from recipes.checks import Report, Result
    from recipes.memory import Estimate

_NOW_S = 90
"""A start within so many seconds is one at once: the backfill scheduler plans in steps of 30 to 60 s."""
_SHORTER = (2, 4)
"""Parts of the time that a shorter job is tried with."""
_LEAST_S = 600
"""A job below ten minutes does not get far."""


class PreflightFailedError(LaunchError):
    """A check predicts that the start would fail."""


class UnconfirmedError(InputError):
    """Something needs the user's yes."""


@dataclass(frozen=True, slots=True)
class SubmissionPlan:
    """A submission as it would be made: its jobs, its cost, its preflight."""

    request: SubmitRequest
    submission: Submission
    cost: Cost
    partition: Partition | None
    """None where Slurm lists no such partition."""
    preflight: Preflight
    notes: tuple[str, ...]
    """Remarks for the user."""

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
        """Checks that fail and were not skipped: `send` refuses."""
        return self.preflight.blocking

    @property
    def asks(self) -> tuple[str, ...]:
        """Questions that need a yes before `send` does anything."""
        return self.preflight.asks


@dataclass(frozen=True, slots=True)
class StartTime:
    """When a job of some length would start, as Slurm estimates."""

    time_s: int
    start: str
    """As Slurm prints it: local time, `YYYY-MM-DDTHH:MM:SS`."""
    now: bool
    """Whether that is at once."""


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
    """Return the submission that a request comes to. Nothing is written.

    Args:
        request: What the user wants.
        detection: What the cluster offers.
        store: Where runs are kept.
        environment: That of this program.
        resolver: Keeps parsed recipes between calls.

    Raises:
        InputError: the request contradicts itself, or names what is not there.
        RecipeError: the recipe cannot be read.
        TransportError: a file or a Python environment is not there.
    """
    resolver = resolver or Resolver()
    if request.nodes is None:
        return _on_fewest_nodes(request, detection, store, environment, resolver)
    from launcher.submit.preflight import preflight

    transport = store.transport
    checkout = None if request.kind == "rehearsal" else choose(transport, request.checkout, environment)
    partition, options = complete(request, detection, transport, environment, checkout, resolver)
    cluster = slurm_cluster(transport, store.root, environment)
    submission = lay_out(cluster, store, detection.site, options, resolver)
    result = preflight(submission, partition, resolver)
    spec = submission.spec.model_copy(update={"skipped_checks": result.skipped})
    slurm = options.slurm_request
    cores = partition.cpus.cores if partition is not None else None
    return SubmissionPlan(
        request,
        replace(submission, spec=spec),
        Cost.of(options.nodes, options.gpus_per_node, slurm.time_s * slurm.chain, cores),
        partition,
        result,
        (*result.notes, *hints(environment, submission), *cluster.hints(submission.layout, partition)),
    )


def _on_fewest_nodes(
    request: SubmitRequest,
    detection: Detection,
    store: RunStore,
    environment: Mapping[str, str],
    resolver: Resolver,
) -> SubmissionPlan:
    """Plan for the recipe's nodes; a smoke run for the fewest where nothing fails and the memory suffices."""
    nodes = nodes_of(request, resolver)
    count = 1
    while request.kind == "smoke" and count < nodes:
        plan = plan_submission(replace(request, nodes=count), detection, store, environment, resolver)
        if not plan.blocking and not plan.asks:
            return plan
        count *= 2
    return plan_submission(replace(request, nodes=nodes), detection, store, environment, resolver)


def send(
    plan: SubmissionPlan, store: RunStore, environment: Mapping[str, str], *, confirmed: bool = False
) -> Run:
    """Write the run's directory and submit its jobs, once; returns the run.

    Args:
        plan: What `plan_submission` returned.
        store: Where runs are kept.
        environment: That of this program.
        confirmed: The user has agreed to what the plan asks.

    Raises:
        PreflightFailedError: a check that was not skipped fails.
        UnconfirmedError: the plan asks something that was not agreed to.
        RefusedError: Slurm refused; the run records that.
        UnreachableError: it is not clear whether Slurm took the job; the run finds out.
    """
    require_clear(plan, confirmed=confirmed)
    run = store.create(plan.submission.spec, plan.submission.files)
    for link in plan.submission.plans:
        try:
            run = cluster_of(run, store.transport).submit(run, link)
        except (RefusedError, UnreachableError) as error:
            raise _partly(error, run, len(plan.submission.plans)) from error
    if plan.options.checkout is not None:
        remember(store.transport, plan.options.checkout, environment)
    return run


def _partly(error: RefusedError | UnreachableError, run: Run, links: int) -> RefusedError | UnreachableError:
    """Say which jobs of a chain are there although a later one is not."""
    if not run.jobs:
        return error
    ids = ", ".join(job.id for job in run.jobs)
    return type(error)(
        f"{error.what} (job {len(run.jobs) + 1} of the {links} of a chain)",
        where=error.where,
        fix=f"Submitted before it: {ids}; they run as a shorter chain, or `cancel {run.spec.id}` stops them.",
    )


def require_clear(plan: SubmissionPlan, *, confirmed: bool = False) -> None:
    """Raise where a plan is not to be sent: it would fail, or asks what was not agreed to.

    Raises:
        PreflightFailedError: a check that was not skipped fails.
        UnconfirmedError: the plan asks something that was not agreed to.
    """
    if plan.blocking:
        ids = ", ".join(dict.fromkeys(result.id for result in plan.blocking))
        raise PreflightFailedError(
            f"not submitted: {ids} would fail",
            where=plan.request.recipe,
            fix="`check --fix` applies a fix; --skip-check ID, for each of them, submits all the same.",
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
    """Ask Slurm when it would start, and whether a shorter job would start sooner. Nothing is submitted.

    Args:
        plan: What `plan_submission` returned.
        store: Where runs are kept.
        environment: That of this program.
        shorter: Ask for shorter times too, where the start is not at once: at most two more questions.

    Raises:
        RefusedError: Slurm would refuse.
        UnreachableError: it gave no answer.
    """
    cluster = slurm_cluster(store.transport, store.root, environment)
    options = plan.options
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
