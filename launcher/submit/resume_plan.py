"""The job that resumes a run, rendered anew from the run's request.

`plan.json` is a record of what was submitted: its command and environment are never executed. It only tells
the directory that the run was made in, which its recipe's paths name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.checkout import NemoCheckout, probe, with_driver_of
from launcher.clusters.base import RunLayout
from launcher.clusters.registry import slurm_cluster
from launcher.effective import distillation
from launcher.errors import InputError
from launcher.plan import LaunchPlan, PlanRecord
from launcher.request import JobOptions, SubmitRequest
from launcher.runs import SECRETS, Run, SlurmRequest
from launcher.sites import site_here
from launcher.stored import read_stored
from launcher.submit.env_file import read_env_file
from launcher.submit.job_environment import environment_of
from launcher.transports.base import Transport


def plan_of_resumption(
    transport: Transport, run: Run, request: SlurmRequest, effective: Mapping[str, Any]
) -> LaunchPlan:
    """Return the plan of one more job of a run, from its request.

    Raises:
        InputError: the run was moved, its plan is damaged, or what it needs is no longer there.
        RecipeError: its effective recipe cannot be read.
    """
    _require_unmoved(transport, run)
    environment, directory = transport.environment(), Path(run.directory)
    site = site_here(transport, environment)
    checkout = _checkout(transport, run, effective)
    submit_request = _submit_request(run, request)
    shared = (str(directory.parent), *((checkout.path,) if checkout is not None else ()))
    options = JobOptions(
        submit_request,
        nodes=run.spec.nodes,
        gpus_per_node=run.spec.gpus_per_node,
        user=run.spec.user,
        slurm=request,
        keys=_keys(transport, directory / SECRETS),
        checkout=checkout,
        environment=environment_of(
            submit_request, site, transport, environment, partition=request.partition, shared=shared
        ),
    )
    recipe = distillation(transport.path(str(directory / "effective.yaml")), ())
    cluster = slurm_cluster(transport, str(directory.parent), environment)
    rendered = cluster.plan(RunLayout(run.spec.id, directory, recipe, options, site))
    return cluster.plan_again(rendered.plans[0], None)


def _require_unmoved(transport: Transport, run: Run) -> None:
    """Refuse a run whose recipe names another directory; one that `runs --move` moved has a link there."""
    path = Path(run.directory, "plan.json")
    argv = read_stored(transport, path, PlanRecord).argv
    if not argv:
        raise InputError("plan.json is damaged: argv is empty or missing", where=path)
    script = argv[-1]
    if transport.real_path(str(Path(script).parent)) != transport.real_path(run.directory):
        raise InputError(
            "this run was moved, or is a copy: its plan names another directory",
            where=Path(script).parent,
            fix="Submit the recipe again: a training run resumes from its checkpoint directory.",
        )


def _checkout(transport: Transport, run: Run, effective: Mapping[str, Any]) -> NemoCheckout | None:
    if run.spec.checkout is None:
        return None
    checkout = probe(transport, run.spec.checkout)
    if run.spec.request.driver is not None:
        return replace(checkout, driver=run.spec.request.driver)
    return with_driver_of(transport, checkout, effective)[0]


def _submit_request(run: Run, slurm: SlurmRequest) -> SubmitRequest:
    record = run.spec.request
    return SubmitRequest(
        Path(run.directory, "recipe.yaml"),
        nodes=run.spec.nodes,
        time=slurm.time_s,
        kind=run.spec.kind,
        chain=slurm.chain,
        profile=record.profile,
        sbatch_args=record.sbatch_args,
        launcher=run.spec.launcher,
        container=record.container,
        mounts=record.mounts,
        env=record.env,
        no_env=record.no_env,
        modules=record.modules,
        options=slurm.options,
    )


def _keys(transport: Transport, path: Path) -> dict[str, str]:
    """Return the keys of the run's own key file, which its jobs read."""
    if transport.stat(str(path)) is None:
        return {}
    return read_env_file(transport.read(str(path)).decode(errors="replace"), path)
