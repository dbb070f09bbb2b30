"""From what a user orders to jobs that Slurm has: what `submit` and the wizard share.

    proposal = plan_submission(order, found, store, environment)    nothing is written, nothing submitted
    forecast = estimate_start(proposal, store, environment)       asks Slurm when it would start
    run = send(proposal, store, environment)                writes the run's directory and submits its jobs

What is raised: `InputError` for an order that contradicts itself or names nothing (a time, a profile, a
checkout, a check), `RecipeError` for a recipe that cannot be read, `TransportError` for files and
environments that are not there; `PreflightFailedError` and `UnconfirmedError` from `send` for a proposal
that would fail or was not agreed to; `RefusedError` and `UnreachableError` where Slurm says no, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from launcher.clusters.slurm.detect import Detection
from launcher.clusters.slurm.job_options import Cost, JobOptions
from launcher.clusters.slurm.messages import RefusedError, UnreachableError
from launcher.clusters.slurm.partitions import Partition
from launcher.clusters.slurm.submission import Submission, prepare
from launcher.errors import InputError, LaunchError
from launcher.runs import Run, RunStore
from launcher.sites import Site
from launcher.submit.checkout import choose, remember, with_driver_of
from launcher.submit.hints import hints
from launcher.submit.request import SubmitRequest, choose_for, nodes_of
from launcher.transports.base import Transport
from recipes.inheritance import resolve

if TYPE_CHECKING:
    from launcher.submit.preflight import Preflight
    from recipes.checks import Report, Result
    from recipes.memory import Estimate

__all__ = [
    "PreflightFailedError",
    "StartEstimate",
    "StartTime",
    "SubmissionPlan",
    "SubmitRequest",
    "UnconfirmedError",
    "estimate_start",
    "plan_submission",
    "require_clear",
    "send",
]
_NOW_S = 90
"""A start within so many seconds is one at once: the backfill scheduler plans in steps of 30 to 60 s."""
_SHORTER = (2, 4)
"""Parts of the time that a shorter job is tried with."""
_LEAST_S = 600
"""A job below ten minutes does not get far."""


class PreflightFailedError(LaunchError):
    """The start would fail, as a check foretells."""


class UnconfirmedError(InputError):
    """Something needs the user's yes."""


@dataclass(frozen=True, slots=True)
class SubmissionPlan:
    """What would be submitted, what it costs, and what is foretold of it."""

    order: SubmitRequest
    submission: Submission
    choices: JobOptions
    cost: Cost
    site: Site
    partition: Partition | None
    """None where Slurm lists no such partition."""
    foresight: Preflight
    notes: tuple[str, ...]
    """What the user may want to know."""

    @property
    def report(self) -> Report:
        """What the checks say."""
        return self.foresight.report

    @property
    def memory(self) -> Estimate | None:
        """The memory of each phase; None for rehearsals, and where the GPUs' memory is unknown."""
        return self.foresight.memory

    @property
    def blocking(self) -> tuple[Result, ...]:
        """Checks that fail and were not skipped: `send` refuses."""
        return self.foresight.blocking

    @property
    def asks(self) -> tuple[str, ...]:
        """What wants a yes before `send` does anything."""
        return self.foresight.asks


@dataclass(frozen=True, slots=True)
class StartTime:
    """When a job of some length would start, as Slurm foretells."""

    time_s: int
    start: str
    """As Slurm prints it: local time, `YYYY-MM-DDTHH:MM:SS`."""
    now: bool
    """Whether that is at once."""


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """When a submission would start, and shorter ones that would start sooner."""

    asked: StartTime
    sooner: tuple[StartTime, ...] = ()

    @property
    def start(self) -> str:
        """The start of what was ordered."""
        return self.asked.start


def plan_submission(
    order: SubmitRequest, found: Detection, store: RunStore, environment: Mapping[str, str]
) -> SubmissionPlan:
    """Return what an order comes to. Nothing is written.

    Args:
        order: What the user wants.
        found: What the cluster has.
        store: Where runs are kept.
        environment: That of this program.

    Raises:
        InputError: the order contradicts itself, or names what is not there.
        RecipeError: the recipe cannot be read.
        TransportError: a file or a Python environment is not there.
    """
    from launcher.submit.preflight import preflight

    if order.nodes is None:
        return _on_as_many_nodes_as_needed(order, found, store, environment)
    transport = store.transport
    checkout = None if order.kind == "rehearsal" else choose(transport, order.checkout, environment)
    driver_note = ""
    if checkout is not None:
        checkout, driver_note = with_driver_of(
            transport, checkout, resolve(order.recipe, order.overrides).values
        )
    partition, choices = choose_for(order, found, transport, environment, checkout)
    submission = prepare(transport, store, environment, found.site, order.recipe, order.overrides, choices)
    foresight = preflight(submission, choices, found.site, partition, order.recipe, order.skip_checks)
    told = hints(found.site, environment, submission, choices, partition, foresight.report.recipe)
    spec = submission.spec.model_copy(update={"skipped_checks": foresight.skipped})
    return SubmissionPlan(
        order,
        replace(submission, spec=spec),
        choices,
        Cost.of(choices, partition.cpus.cores if partition is not None else None),
        found.site,
        partition,
        foresight,
        (*((driver_note,) if driver_note else ()), *foresight.notes, *told),
    )


def _on_as_many_nodes_as_needed(
    order: SubmitRequest, found: Detection, store: RunStore, environment: Mapping[str, str]
) -> SubmissionPlan:
    """Lay out on the recipe's nodes; a smoke run on the fewest where nothing fails and memory suffices."""
    nodes = nodes_of(order)
    count = 1
    while order.kind == "smoke" and count < nodes:
        proposal = plan_submission(replace(order, nodes=count), found, store, environment)
        if not proposal.blocking and not proposal.asks:
            return proposal
        count *= 2
    return plan_submission(replace(order, nodes=nodes), found, store, environment)


def send(
    proposal: SubmissionPlan, store: RunStore, environment: Mapping[str, str], *, confirmed: bool = False
) -> Run:
    """Write the run's directory and submit its jobs, once; returns the run.

    Args:
        proposal: What `plan_submission` returned.
        store: Where runs are kept.
        environment: That of this program.
        confirmed: The user has agreed to what the proposal asks.

    Raises:
        ForetoldError: a check that was not skipped fails.
        UnconfirmedError: the proposal asks something that was not agreed to.
        RefusedError: Slurm refused; the run records that.
        UnreachableError: it is not clear whether Slurm took the job; the run finds out.
    """
    from launcher.monitor.watch_run import cluster_of

    require_clear(proposal, confirmed=confirmed)
    run = store.create(proposal.submission.spec, proposal.submission.files)
    for plan in proposal.submission.plans:
        try:
            run = cluster_of(run, store.transport).submit(run, plan)
        except (RefusedError, UnreachableError) as error:
            raise _partly(error, run, len(proposal.submission.plans)) from error
    if proposal.choices.checkout is not None:
        remember(store.transport, proposal.choices.checkout, environment)
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


def require_clear(proposal: SubmissionPlan, *, confirmed: bool = False) -> None:
    """Raise where a proposal is not to be sent: it would fail, or asks what was not agreed to.

    Raises:
        ForetoldError: a check that was not skipped fails.
        UnconfirmedError: the proposal asks something that was not agreed to.
    """
    if proposal.blocking:
        ids = ", ".join(dict.fromkeys(result.id for result in proposal.blocking))
        raise PreflightFailedError(
            f"not submitted: {ids} would fail",
            where=proposal.order.recipe,
            fix="`check --fix` applies a fix; --skip-check ID, for each of them, submits all the same.",
        )
    if proposal.asks and not (confirmed or proposal.order.yes):
        raise UnconfirmedError(
            f"not submitted: {'; '.join(proposal.asks)}",
            where=proposal.order.recipe,
            fix="`memory` shows what would fit; --yes submits all the same.",
        )


def estimate_start(
    proposal: SubmissionPlan, store: RunStore, environment: Mapping[str, str], *, shorter: bool = True
) -> StartEstimate:
    """Ask Slurm when it would start, and whether a shorter job would start sooner. Nothing is submitted.

    Args:
        proposal: What `plan_submission` returned.
        store: Where runs are kept.
        environment: That of this program.
        shorter: Ask for shorter times too, where the start is not at once: at most two more questions.

    Raises:
        RefusedError: Slurm would refuse.
        UnreachableError: it gave no answer.
    """
    choices = proposal.choices
    asked = _start(store.transport, environment, choices, choices.request.time_s)
    if not shorter or asked.now:
        return StartEstimate(asked)
    sooner: list[StartTime] = []
    for part in _SHORTER:
        time_s = choices.request.time_s // part // 60 * 60
        if time_s < _LEAST_S:
            break
        tried = _start(store.transport, environment, choices, time_s)
        if tried.start < min((item.start for item in (asked, *sooner)), default=""):
            sooner.append(tried)
        if tried.now:
            break
    return StartEstimate(asked, tuple(sooner))


def _start(
    transport: Transport, environment: Mapping[str, str], choices: JobOptions, time_s: int
) -> StartTime:
    from launcher.clusters.slurm.cluster import test_only as ask

    request = choices.request.model_copy(update={"time_s": time_s})
    told = ask(transport, environment, replace(choices, request=request)).start
    return StartTime(time_s, told, _is_now(told))


def _is_now(start: str) -> bool:
    try:
        at = datetime.fromisoformat(start)
    except ValueError:
        return False
    return (at - datetime.now(at.tzinfo)).total_seconds() < _NOW_S
