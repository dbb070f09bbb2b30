"""What the doctor examines, from a request or from a planned submission.

subject, report = examined(request, transport, runs, environment)    a request, however incomplete
report = ready_report(plan, detection, store, environment)     the wizard's question: ready?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.checkout import choose
from launcher.clusters.registry import detect
from launcher.doctor.doctor_request import DoctorRequest
from launcher.doctor.last_report import save_report
from launcher.doctor.node_results import load_record
from launcher.doctor.runner import FAR_LIMIT_S, examine, limit_of, patient
from launcher.doctor.subject import JobSize, Subject
from launcher.errors import InputError, TransportError, UnreachableError
from launcher.paths import cache_root
from launcher.request import Kind, SubmitRequest, with_profile
from launcher.site_choices import load_choices
from launcher.sites import site_here
from launcher.submit.complete import near_checkout, qos_in, smoke_target, time_limit_of
from launcher.submit.job_environment import environment_of
from launcher.submit.modules import loaded_modules, with_modules
from launcher.submit.preflight import cluster_request
from launcher.transports.base import is_remote
from recipes.checks import ClusterRequest, Context, Inputs
from recipes.inheritance import Resolver
from recipes.reading import within
from recipes.remote_path import machine_of

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.clusters.inventory import Detection
    from launcher.doctor.last_report import KeptReport
    from launcher.doctor.verdict import HealthReport
    from launcher.runs import RunStore
    from launcher.sites import Site
    from launcher.submit.submit import SubmissionPlan
    from launcher.transports.base import Transport
    from recipes.errors import ExplainedError
    from recipes.inheritance import EffectiveRecipe

SLURM_S = 1.5
"""How long Slurm's answer is waited for; it is cached, and takes 0.1 s on a healthy cluster."""
_JUTIL_S = 1.0
"""How long jutil is waited for beside it: what is left of budgets."""


def subject_of(
    request: DoctorRequest, transport: Transport, runs: Path, environment: Mapping[str, str]
) -> Subject:
    """Return what is examined for a request; what cannot be told is left open, and is a verdict of its own.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: there is no such profile, module or time, or the site's file is damaged.
        TransportError: this machine's files do not answer.
    """
    wish, cluster = _asked_cluster(request, transport, environment)
    resolver = Resolver()
    recipe = resolver.resolve(request.recipe, request.overrides) if request.recipe is not None else None
    near = (
        near_checkout(transport, wish, resolver) if recipe is not None else (transport.path("").absolute(),)
    )
    checkout, checkout_problem = _checkout(wish, transport, environment, near)
    size = _size(wish, cluster.detection, recipe)
    job = environment_of(
        wish,
        cluster.site,
        transport,
        environment,
        partition=size.partition,
        shared=(str(runs), *((checkout.path,) if checkout is not None else ())),
        secrets=recipe.secret_variables if recipe is not None else frozenset(),
    )
    subject = Subject(
        transport,
        environment,
        {**job.variables, **job.secrets},
        cluster.site,
        runs,
        size,
        cluster.detection,
        cluster.problem,
        job.decisions,
        checkout,
        checkout_problem,
        loaded=loaded_modules(environment),
        container=request.container or "",
    )
    if recipe is not None:
        subject = replace(subject, context=_context(subject, recipe, wish.kind))
    return with_measured(subject)


def examined(
    request: DoctorRequest, transport: Transport, runs: Path, environment: Mapping[str, str]
) -> tuple[Subject, HealthReport]:
    """Return what a request is about, and the verdicts on it; these are kept. Arguments as for `subject_of`.

    Raises:
        ExplainedError: as `subject_of` does.
    """
    from launcher.doctor.check_table import LOGIN_CHECKS, NODE_CHECKS

    subject = subject_of(request, transport, runs, environment)
    report = examine(LOGIN_CHECKS, subject)
    if subject.measured:
        report = report.merged(examine(NODE_CHECKS, subject))
    save_report(subject, report)
    return subject, report.for_host(machine) if (machine := machine_of(subject.path("/"))) else report


@dataclass(frozen=True, slots=True)
class _AskedCluster:
    """What Slurm and the site's file say, within the time that the doctor has."""

    site: Site
    detection: Detection | None = None
    problem: ExplainedError | None = None
    """Why there is no detection."""


def _asked_cluster(
    request: DoctorRequest, transport: Transport, environment: Mapping[str, str]
) -> tuple[SubmitRequest, _AskedCluster]:
    """Return the request with its profile's answers, and the cluster with the modules of its jobs."""
    detection, problem = _detect(transport, environment)
    site = detection.site if detection is not None else site_here(transport, environment)
    wish = with_profile(request.as_submit(), site)
    if detection is None:
        return wish, _AskedCluster(site, problem=problem)
    remembered = load_choices(transport, environment, site.id)
    detection = with_modules(detection, wish, remembered.modules, environment)
    return wish, _AskedCluster(detection.site, detection)


def with_measured(subject: Subject) -> Subject:
    """Return a subject with what was measured on nodes with its environments, if anything was."""
    try:
        record = within(lambda: load_record(subject), limit_of(subject.transport))
    except (OSError, TransportError):
        record = None  # a file system that hangs: the checks that use it will say so
    return replace(subject, measured=record.nodes) if record is not None else subject


def ready_report(
    plan: SubmissionPlan, detection: Detection, store: RunStore, environment: Mapping[str, str]
) -> KeptReport:
    """Return whether everything is ready for a planned submission: the checks of this login node.

    The report is kept, nothing else is changed; it takes at most some 3 s. For a rehearsal only what it needs
    is examined.
    """
    subject = _planned(plan, detection, store, environment)
    return save_report(subject, _examined(plan, subject))


def _examined(plan: SubmissionPlan, subject: Subject) -> HealthReport:
    from launcher.doctor.check_table import LOGIN_CHECKS

    rehearsal = plan.options.kind == "rehearsal"
    checks = [check for check in LOGIN_CHECKS if not rehearsal or check.id not in _OF_CHECKOUT]
    return examine(checks, with_measured(subject))


def _planned(
    plan: SubmissionPlan, detection: Detection, store: RunStore, environment: Mapping[str, str]
) -> Subject:
    """Return what is examined for a planned submission."""
    options, job = plan.options, plan.submission.plans[0].environment
    slurm = options.slurm
    size = JobSize(
        options.nodes,
        options.gpus_per_node,
        slurm.time_s * slurm.chain if slurm is not None else None,
        slurm.partition if slurm is not None else None,
        slurm.account if slurm is not None else None,
        slurm.qos if slurm is not None else None,
    )
    layout = plan.submission.layout
    subject = Subject(
        store.transport,
        environment,
        {**job, **options.keys},
        layout.site,
        store.transport.path(store.root),
        size,
        detection,
        decisions=options.environment.decisions if options.environment is not None else (),
        checkout=options.checkout,
        loaded=loaded_modules(environment),
        container=job.get("CONTAINER", "") if options.request.launcher == "ray.sub" else "",
    )
    if options.kind == "rehearsal":
        return subject
    inputs = Inputs.of(
        environment={**job, **options.keys},
        checkout=subject.path(options.checkout.path) if options.checkout is not None else None,
        root=subject.path("").absolute(),
    )
    return replace(subject, context=Context(plan.submission.recipe, inputs))


_OF_CHECKOUT = frozenset(("D10", "D12", "D27", "D38"))
"""Checks that a rehearsal does not need: it runs without a checkout."""


def _detect(
    transport: Transport, environment: Mapping[str, str]
) -> tuple[Detection | None, ExplainedError | None]:
    limit_s = FAR_LIMIT_S if is_remote(transport) else patient(SLURM_S)
    try:
        cache, jutil_s = cache_root(environment), patient(_JUTIL_S)
        return within(lambda: detect(transport, environment, cache, budgets_s=jutil_s), limit_s), None
    except TransportError as error:
        return None, error
    except TimeoutError:
        return None, UnreachableError(
            f"Slurm gave no answer within {limit_s:.3g} s", fix="Slurm may be overloaded; try again later."
        )


def _checkout(
    request: SubmitRequest, transport: Transport, environment: Mapping[str, str], near: Sequence[Path]
) -> tuple[NemoCheckout | None, ExplainedError | None]:
    try:
        return choose(transport, request.checkout, environment, near=near), None
    except (InputError, TransportError) as error:
        return None, error


def _size(request: SubmitRequest, detection: Detection | None, recipe: EffectiveRecipe | None) -> JobSize:
    from recipes.planning import Setup

    nodes = request.nodes or (Setup.of(recipe).nodes if recipe is not None else 1)
    time_s = time_limit_of(request.time) if request.time is not None else None
    name = request.partition
    if detection is not None and name is None:
        target = smoke_target(detection, nodes, time_s or 0) if request.kind == "smoke" else None
        name = target[0] if target is not None else detection.default_partition
    partition = detection.partition(name) if detection is not None and name is not None else None
    account = request.account or (detection.account_for(partition) if detection is not None else None)
    qos = request.qos or (qos_in(detection, partition, account) if detection is not None else None)
    gpus = request.gpus_per_node
    if gpus is None and partition is not None:
        gpus = partition.gpus.count or None
    return JobSize(nodes, gpus, time_s, name, account, qos)


def _context(subject: Subject, recipe: EffectiveRecipe, kind: Kind) -> Context:
    """Return a recipe with what its checks use: the job's environment, the checkout, the resources."""
    size = subject.size
    request = cluster_request(
        ClusterRequest(size.nodes, size.gpus_per_node, time_s=size.time_s),
        kind,
        subject.site,
        subject.partition,
        subject.job,
    )
    checkout = subject.path(subject.checkout.path) if subject.checkout is not None else None
    here = subject.path("").absolute()
    return Context(recipe, Inputs.of(environment=subject.job, checkout=checkout, root=here, request=request))
