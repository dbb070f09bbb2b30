"""Laying out a submission: the run, its effective recipe, its files and its jobs. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.checkout import NemoCheckout, with_driver_of
from launcher.clusters.base import Cluster, RunLayout
from launcher.effective import (
    directory_overrides,
    distillation,
    effective_yaml,
    max_steps_of,
    single_checkpoint_overrides,
    size_overrides,
)
from launcher.errors import InputError
from launcher.plan import LaunchPlan
from launcher.request import JobOptions, SubmitRequest
from launcher.runs import RecipeRef, RequestRecord, RunSpec, RunStore, new_id

if TYPE_CHECKING:
    from launcher.sites import Site
    from recipes.inheritance import EffectiveRecipe, Resolver


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission that is ready; nothing is written yet."""

    spec: RunSpec
    files: Mapping[str, bytes]
    plans: tuple[LaunchPlan, ...]
    """One per link of the chain."""
    layout: RunLayout
    overrides: tuple[str, ...]
    """All overrides: the user's, the job's size, the run's own directories."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""

    @property
    def max_steps(self) -> int | None:
        """The run's maximum number of steps."""
        return self.spec.max_steps

    @property
    def recipe(self) -> EffectiveRecipe:
        """The effective recipe, with all overrides."""
        return self.layout.recipe


def lay_out(
    cluster: Cluster,
    store: RunStore,
    site: Site,
    options: JobOptions,
    resolver: Resolver,
    *,
    name: str = "",
) -> Submission:
    """Lay out a submission on a cluster; the recipe gives the run its name by default.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: it is not a recipe of a distillation, there is no such profile, or no such container.
        TransportError: there is no Python environment with Ray.
    """
    request, now = options.request, datetime.now(UTC)
    name = name or request.recipe.stem
    identity = new_id(name, now)
    directory = Path(store.root, identity)
    stored = request.overrides
    if options.slurm is not None:
        stored += size_overrides(options.kind, options.worker_nodes, options.gpus_per_node)
    # Without a scheduler the driver starts in the run's directory: relative paths survive a move of it.
    overrides = (*stored, *directory_overrides(options.kind, "" if options.slurm is None else directory))
    recipe = distillation(request.recipe, overrides, resolver)
    if further := single_checkpoint_overrides(options.kind, recipe):
        stored, overrides = (*stored, *further), (*overrides, *further)
        recipe = distillation(request.recipe, overrides, resolver)
    notes: tuple[str, ...] = ()
    if options.checkout is not None:
        checkout, driver_note = _with_driver(store, options.checkout, request.driver, recipe)
        options = replace(options, checkout=checkout)
        notes = (driver_note,) if driver_note else ()
    layout = RunLayout(identity, directory, recipe, options, site)
    jobs = cluster.plan(layout)
    reference = RecipeRef(source=str(request.recipe.absolute()), overrides=stored)
    spec = _spec(layout, reference, name, now, store.transport.host)
    files = {
        "recipe.yaml": store.transport.read(str(request.recipe.absolute())),
        "effective.yaml": effective_yaml(recipe),
        **jobs.files,
        "plan.json": jobs.plans[0].as_bytes(),
    }
    return Submission(spec, files, jobs.plans, layout, overrides, notes)


def _with_driver(
    store: RunStore, checkout: NemoCheckout, script: str | None, recipe: EffectiveRecipe
) -> tuple[NemoCheckout, str]:
    """Return the checkout with the requested driver, else with the one that the recipe is for, and a note.

    Raises:
        InputError: the checkout has no such script.
    """
    if script is None:
        return with_driver_of(store.transport, checkout, recipe.values)
    if store.transport.stat(str(Path(checkout.path, script))) is None:
        raise InputError(
            f"--driver: the checkout has no '{script}'",
            where=checkout.path,
            fix="Give a script relative to the checkout, such as examples/run_distillation.py.",
        )
    return replace(checkout, driver=script), f"the driver is {script}, as requested"


def _spec(layout: RunLayout, recipe: RecipeRef, name: str, created: datetime, host: str) -> RunSpec:
    options = layout.options
    return RunSpec(
        id=layout.id,
        name=name,
        kind=options.kind,
        created=created,
        user=options.user,
        host=host,
        recipe=recipe,
        cluster="slurm" if options.slurm is not None else "local",
        nodes=options.nodes,
        gpus_per_node=options.gpus_per_node,
        max_steps=max_steps_of(layout.recipe),
        slurm=options.slurm,
        checkout=options.checkout.path if options.checkout is not None else None,
        launcher=options.request.launcher,
        request=_record(options.request),
        schema=1,
    )


def _record(request: SubmitRequest) -> RequestRecord:
    return RequestRecord(
        profile=request.profile,
        env_file=str(request.env_file.absolute()) if request.env_file is not None else None,
        env=request.env,
        no_env=request.no_env,
        sbatch_args=request.sbatch_args,
        container=request.container,
        mounts=request.mounts,
        modules=request.modules,
        driver=request.driver,
    )
