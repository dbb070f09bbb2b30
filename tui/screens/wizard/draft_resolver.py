"""Finding out what a draft comes to: files, Slurm, checks, memory. For a thread; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError, TransportError
from launcher.text import clean
from recipes.errors import ExplainedError, RecipeError
from recipes.library import starting_recipes
from tui.screens.wizard.model import (
    DraftStatus,
    WizardState,
    changes,
    count_of,
    errors,
    kind_of,
    order_of,
    partition_of,
    text_of,
    time_s,
)

if TYPE_CHECKING:
    from launcher.clusters.slurm.detect import Detection
    from launcher.clusters.slurm.job_options import Cost
    from launcher.runs import RunStore
    from launcher.submit.checkout import NemoCheckout
    from recipes.checks import ClusterRequest
    from recipes.inheritance import EffectiveRecipe, Resolver

_RECENT = 6
_RUNS_READ = 30
"""How many of the latest runs are looked at for recipes used before."""


@dataclass(slots=True)
class DraftResolver:
    """Finds out, and keeps what is slow to find out."""

    store: RunStore
    environment: Mapping[str, str]
    found: Detection | None = None
    no_slurm: ExplainedError | None = None
    _recipes: tuple[Path, ...] | None = None
    _usual_checkout: str | None = None
    _checkouts: dict[str, NemoCheckout | str] = field(default_factory=dict)
    _job: dict[tuple[str, ...], Mapping[str, str]] = field(default_factory=dict)
    """The environment of jobs, by what decides on it, from what was laid out before."""
    _resolver: Resolver | None = None

    # ------------------------------------------------------------ Slurm

    def ask_slurm(self, *, refresh: bool = False) -> None:
        """Ask what there is; takes a minute where the controller hangs."""
        from launcher.clusters.slurm.detect import detect
        from launcher.paths import cache_root

        try:
            self.found = detect(
                self.store.transport, self.environment, cache_root(self.environment), refresh=refresh
            )
            self.no_slurm = None
        except ExplainedError as error:
            self.found, self.no_slurm = None, error

    # ------------------------------------------------------------ a draft

    def glance(self, draft: WizardState) -> DraftStatus:
        """Return what can be told at once: some milliseconds, but for the first time."""
        seen = DraftStatus(draft, self.found, self.no_slurm, self._all_recipes(), self._remembered())
        seen = self._with_recipe(draft, seen)
        checkout = self._checkout(text_of("checkout", draft, seen)) if kind_of(draft) != "rehearsal" else ""
        if isinstance(checkout, str):
            seen = replace(seen, checkout_error=checkout)
        else:
            seen = replace(seen, checkout=checkout)
        if seen.recipe is None:
            return seen
        return self._checked(draft, seen)

    def look(self, draft: WizardState, seen: DraftStatus) -> DraftStatus:
        """Return what would be submitted as well; takes some tenths of a second.

        A report of what was laid out goes over the one of the glance: it knows the job's environment.
        """
        from launcher.submit.submit import plan_submission

        if seen.found is None or errors(draft, seen):
            return replace(seen, settled=True, problem=seen.no_slurm)
        try:
            proposal = plan_submission(order_of(draft, seen), seen.found, self.store, self.environment)
        except ExplainedError as error:
            return replace(seen, settled=True, problem=error)
        self._job[self._decides(draft, seen)] = {
            **proposal.submission.plans[0].environment,
            **proposal.choices.keys,
        }
        return replace(
            seen,
            settled=True,
            proposal=proposal,
            report=proposal.report if proposal.report.recipe is not None else seen.report,
            memory=proposal.memory,
            cost=proposal.cost,
        )

    # ------------------------------------------------------------ parts

    def _all_recipes(self) -> tuple[Path, ...]:
        if self._recipes is None:
            self._recipes = tuple(dict.fromkeys((*self._recent(), *starting_recipes())))
        return self._recipes

    def _recent(self) -> list[Path]:
        """Return recipes of the latest runs that are still there."""
        from launcher.runs import load

        transport = self.store.transport
        found: dict[Path, None] = {}
        try:
            if transport.stat(self.store.root) is None:
                return []
            names = [entry.name for entry in transport.listdir(self.store.root) if entry.is_dir]
        except TransportError:
            return []
        for name in sorted(names, reverse=True)[:_RUNS_READ]:
            try:
                path = Path(load(transport, str(Path(self.store.root, name))).spec.recipe.source)
                if path.is_absolute() and transport.stat(str(path)) is not None:
                    found[path] = None
            except (InputError, TransportError):
                continue  # no run, or one that cannot be read: the list of runs tells
        return list(found)[:_RECENT]

    def _remembered(self) -> str:
        if self._usual_checkout is None:
            from launcher.submit.checkout import choose

            try:
                self._usual_checkout = choose(self.store.transport, None, self.environment).path
            except (InputError, TransportError):
                self._usual_checkout = ""
        return self._usual_checkout

    def _checkout(self, text: str) -> NemoCheckout | str:
        """Return the checkout at a path, or why it is none."""
        from launcher.submit.checkout import choose

        if not text:
            return "is needed"
        known = self._checkouts.get(text)
        if known is None or isinstance(known, str):
            try:
                known = choose(self.store.transport, text, self.environment)
            except (InputError, TransportError) as error:
                known = clean(error.what.partition(", as given by")[0])
            self._checkouts[text] = known
        return known

    def _with_recipe(self, draft: WizardState, seen: DraftStatus) -> DraftStatus:
        text = text_of("recipe", draft, seen)
        path = next((known for known in seen.recipes if text in (known.name, str(known))), None)
        path = path or Path(text).expanduser().absolute()
        if not text:
            return replace(seen, recipe_error="is needed")
        try:
            recipe = self._resolved(path, draft.overrides)
            file = self._resolved(path, ()) if draft.overrides else recipe
        except RecipeError as error:
            return replace(seen, recipe_error=clean(str(error).replace("\n", " ")))
        if not isinstance(recipe.get("distillation"), dict):
            return replace(seen, recipe_error="no recipe of a distillation (it has no `distillation:`)")
        return replace(seen, path=path, recipe=recipe, file=file)

    def _resolved(self, path: Path, overrides: tuple[str, ...]) -> EffectiveRecipe:
        from recipes.inheritance import Resolver

        if self._resolver is None:
            self._resolver = Resolver()
        return self._resolver.resolve(path, overrides)

    def _decides(self, draft: WizardState, seen: DraftStatus) -> tuple[str, ...]:
        names = ("partition", "profile", "checkout", "kind")
        return tuple(text_of(name, draft, seen) for name in names)

    def _checked(self, draft: WizardState, seen: DraftStatus) -> DraftStatus:
        """Check a recipe that is laid out as far as it can be, without trying the fixes."""
        from launcher.submit.preflight import of_rehearsal
        from recipes.checks import Checker, Inputs
        from recipes.memory import estimate

        assert seen.path is not None
        request, cost = self._request(draft, seen)
        checkout = Path(seen.checkout.path) if seen.checkout is not None else None
        inputs = Inputs.of(
            environment=self._job.get(self._decides(draft, seen)), checkout=checkout, request=request
        )
        checker = Checker(inputs, self._resolver)
        overrides = (*draft.overrides, *changes(draft, seen))
        report = checker.check(seen.path, overrides, verify_fixes=False)
        seen = replace(seen, gpus_per_node=request.gpus_per_node or 0, cost=cost)
        if kind_of(draft) == "rehearsal":
            return replace(seen, report=of_rehearsal(report))
        if report.recipe is None:
            return replace(seen, report=report)
        known = inputs.models
        memory = None
        if request.gpu_memory_gib is not None:
            memory = estimate(report.recipe, known, request.gpu_memory_gib)
        return replace(
            seen,
            report=report,
            memory=memory,
            student=known.find(str(report.recipe.get("policy.model_name") or "")),
            teacher=known.find(str(report.recipe.get("teacher.model_name") or "")),
        )

    def _request(self, draft: WizardState, seen: DraftStatus) -> tuple[ClusterRequest, Cost | None]:
        """Return what checks are to assume of the job, and what it costs."""
        from launcher.clusters.slurm.job_options import Cost, JobOptions
        from launcher.runs import SlurmRequest
        from launcher.submit.preflight import request_of
        from recipes.checks import ClusterRequest

        partition, nodes = partition_of(draft, seen), count_of("nodes", draft, seen) or 1
        limit, chain = time_s(draft, seen), count_of("chain", draft, seen)
        if seen.found is None or partition is None:
            return ClusterRequest(nodes=nodes, time_s=limit, submitting=True), None
        asked = SlurmRequest(partition=partition.name, time_s=limit or 0, chain=chain or 1)
        choices = JobOptions(kind_of(draft), nodes, partition.gpus.count, asked, "")
        cost = Cost.of(choices, partition.cpus.cores) if limit and chain else None
        return request_of(choices, seen.found.site, partition), cost
