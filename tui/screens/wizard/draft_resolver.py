"""Resolution of a wizard state: files, Slurm, checks, memory, plan. Runs on a thread; writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError, TransportError
from launcher.storage.host_library import copy_library, library_on
from launcher.text import clean
from launcher.transports.base import is_remote
from recipes.errors import ExplainedError, RecipeError
from recipes.files import is_file
from recipes.models.hub import Hub
from tui.screens.wizard.draft_request import recipe_overrides, request_of
from tui.screens.wizard.model import (
    DraftStatus,
    WizardState,
    count_of,
    kind_of,
    offered_gpus,
    partition_of,
    text_of,
    time_s,
)
from tui.screens.wizard.model_cache import CachedModel, KeptModels, cached_models
from tui.screens.wizard.recipe_paths import RecipeChoice, recipe_choices, recipe_file, source_of
from tui.screens.wizard.release import ReleaseReader
from tui.screens.wizard.validation import errors

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.clusters.inventory import Detection
    from launcher.overview.measured_memory import MeasuredEstimate
    from launcher.request import Cost
    from launcher.runs import RunStore
    from recipes.checks import Checker, ClusterRequest, Inputs
    from recipes.inheritance import EffectiveRecipe, Resolver
    from recipes.memory import Estimate, Option

_RECENT = 6
_RUNS_READ = 30
_EFFECTIVE = "effective.yaml"
"""Latest runs that are read for recently used recipes."""


@dataclass(slots=True)
class DraftResolver:
    """Resolves wizard states, and caches what is slow."""

    store: RunStore
    environment: Mapping[str, str]
    detection: Detection | None = None
    slurm_error: ExplainedError | None = None
    _recipes: dict[str, tuple[RecipeChoice, ...]] = field(default_factory=dict)
    """Recipes to choose from, by checkout."""
    _models: dict[str, tuple[CachedModel, ...]] = field(default_factory=dict)
    """Cached models, by directory of the cache."""
    _default_checkout_path: str | None = None
    _probed_checkouts: dict[str, NemoCheckout | str] = field(default_factory=dict)
    _job_environments: dict[tuple[str, ...], Mapping[str, str]] = field(default_factory=dict)
    """Job environments of earlier plans, by the fields that determine them."""
    _fewest_nodes: dict[frozenset[tuple[str, str]], int] = field(default_factory=dict)
    """Nodes of planned smoke runs, by what decides them."""
    _inputs: dict[str, Inputs] = field(default_factory=dict)
    """Inputs of the checks, by checkout: its schemas and features are read when they are needed first."""
    _release: ReleaseReader = field(init=False, repr=False)
    _resolver: Resolver | None = None

    def __post_init__(self) -> None:
        """Read checkouts on the machine of the runs."""
        self._release = ReleaseReader(self.path)

    def path(self, text: str) -> Path:
        """Return a path on the machine that the run is for."""
        return self.store.transport.path(text)

    @property
    def _here(self) -> Path:
        """Directory that relative paths count from: the current one, on a host the user's home."""
        return self.path("").absolute()

    @property
    def is_far(self) -> bool:
        """Whether the machine is another one."""
        return is_remote(self.store.transport)

    # ------------------------------------------------------------ Slurm

    def ask_slurm(self, *, refresh: bool = False) -> None:
        """Detect partitions, accounts and limits; takes a minute where the controller hangs."""
        from launcher.clusters.registry import detect
        from launcher.paths import cache_root
        from launcher.site_choices import load_choices
        from launcher.submit.gpu_memory import with_gpu_memory

        if refresh:
            self._inputs.clear()
            self._recipes.clear()
            self._models.clear()
        try:
            self.detection = detect(
                self.store.transport, self.environment, cache_root(self.environment), refresh=refresh
            )
            self.slurm_error = None
            remembered = load_choices(self.store.transport, self.environment, self.detection.site.id)
            self.detection = with_gpu_memory(self.detection, None, remembered.gpu_memory_gib)
        except ExplainedError as error:
            self.detection, self.slurm_error = None, error

    # ------------------------------------------------------------ a state

    def quick_status(self, state: WizardState) -> DraftStatus:
        """Return what is known within milliseconds (but for the first time): recipe, checks, memory, cost."""
        from launcher.submit.modules import loaded_modules

        status = DraftStatus(
            state,
            self._detection(state),
            self.slurm_error,
            default_checkout=self._default_checkout(),
            fewest_nodes=self._fewest_nodes.get(_nodes_key(state)),
            loaded_modules=loaded_modules(self.environment),
            resolved=True,
        )
        checkout = self._checkout(text_of("checkout", state, status)) if kind_of(state) != "rehearsal" else ""
        if isinstance(checkout, str):
            status = replace(status, checkout_error=checkout)
        else:
            status = replace(status, checkout=checkout)
        status = replace(
            status,
            recipes=self._recipe_choices(status.checkout),
            cached_models=self._cached_models(state, status),
        )
        status = self._with_recipe(state, status)
        if status.recipe is None:
            return status
        status = self._release.add_to(status)
        return self._with_report(state, status)

    def full_status(self, state: WizardState, status: DraftStatus) -> DraftStatus:
        """Return the status with its submission plan; takes some tenths of a second.

        The plan's report replaces the quick one: it knows the job's environment.
        """
        from launcher.storage.decision import storage_question
        from launcher.submit.submit import plan_submission, storage_of

        status = self._release.with_stock(status)
        if status.detection is None or errors(state, status):
            return replace(status, settled=True, plan_error=status.slurm_error)
        try:
            plan = plan_submission(
                request_of(state, status), status.detection, self.store, self.environment, self._resolver
            )
            storage = storage_of(plan, self.store, self.environment)
            # On a host runs are kept where its settings say: they are changed there.
            question = None
            if not self.is_far:
                question = storage_question(
                    plan.submission.layout, storage, self.store.transport, self.environment
                )
        except ExplainedError as error:
            return replace(status, settled=True, plan_error=error)
        if "nodes" not in state.texts:
            self._fewest_nodes[_nodes_key(state)] = plan.options.nodes
        self._job_environments[self._environment_key(state, status)] = {
            **plan.submission.plans[0].environment,
            **plan.options.keys,
        }
        return replace(
            status,
            settled=True,
            plan=plan,
            fewest_nodes=self._fewest_nodes.get(_nodes_key(state)),
            gpus_per_node=plan.options.gpus_per_node,
            storage=storage,
            storage_question=question,
            report=plan.report if plan.report.recipe is not None else status.report,
            memory=plan.memory,
            measured=plan.measured,
            fitting=self._fitting(state, status, plan.memory, plan.measured),
            cost=plan.cost,
        )

    def _fitting(
        self,
        state: WizardState,
        status: DraftStatus,
        memory: Estimate | None,
        measured: MeasuredEstimate | None,
    ) -> tuple[Option, ...]:
        """Return checked changes under which the memory would suffice; none where it does.

        Where an earlier run took more than was estimated, there is as much less room.
        """
        from recipes.checks.fitting import fitting_options

        if memory is None or status.path is None:
            return ()
        room = measured.room_gib(memory.gpu_gib) if measured is not None else memory.gpu_gib
        if memory.fits and all(phase.needed <= room for phase in memory.phases):
            return ()
        overrides = (*state.overrides, *recipe_overrides(state, status))
        return fitting_options(self._checker(state, status), status.path, overrides, gpu_gib=room)

    # ------------------------------------------------------------ parts

    def _detection(self, state: WizardState) -> Detection | None:
        """Return the detection with the GPU memory that was typed, if any."""
        from launcher.submit.gpu_memory import with_gpu_memory

        given = count_of("gpu_memory", state, DraftStatus()) if "gpu_memory" in state.texts else None
        return with_gpu_memory(self.detection, given, {}) if self.detection is not None else None

    def _cached_models(self, state: WizardState, status: DraftStatus) -> tuple[CachedModel, ...]:
        """Return the models in the job's cache; in the shell's, before a job's environment is planned."""
        environment = self._job_environments.get(self._environment_key(state, status), self.environment)
        hub = Hub.of(environment, self._here)
        directory = str(hub.directory)
        if directory not in self._models:
            self._models[directory] = cached_models(hub)
        return self._models[directory]

    def _recipe_choices(self, checkout: NemoCheckout | None) -> tuple[RecipeChoice, ...]:
        directory = checkout.path if checkout is not None else ""
        if directory not in self._recipes:
            recent, runs = self._recent_recipes()
            checkout_path = self.path(directory) if directory else None
            self._recipes[directory] = recipe_choices(
                recent, checkout_path, runs, self._here, self._library()
            )
        return self._recipes[directory]

    def _recent_recipes(self) -> tuple[list[Path], list[tuple[str, Path]]]:
        """Return existing recipes of the latest runs, and trainings with the file of their values."""
        from launcher.runs import load

        transport = self.store.transport
        paths: dict[Path, None] = {}
        trainings: list[tuple[str, Path]] = []
        try:
            with self.store.looking():
                if transport.stat(self.store.root) is None:
                    return [], []
                names = [entry.name for entry in transport.listdir(self.store.root) if entry.is_dir]
                for name in sorted(names, reverse=True)[:_RUNS_READ]:
                    try:
                        spec = load(transport, str(Path(self.store.root, name))).spec
                        path = self.path(spec.recipe.source)
                        values = self.path(str(Path(self.store.root, name, _EFFECTIVE)))
                        if len(paths) < _RECENT and path.is_absolute() and self._is_there(path):
                            paths[path] = None
                        training = spec.kind == "training" and len(trainings) < _RECENT
                        if training and self._is_there(values):
                            trainings.append((spec.id, values))
                    except (InputError, TransportError):
                        continue  # not a run, or an unreadable one: the list of runs reports it
        except TransportError:
            return [], []
        return list(paths), trainings

    def _is_there(self, path: Path) -> bool:
        # Here with the transport's deadline; on a host from the listing of a directory.
        return is_file(path) if self.is_far else self.store.transport.stat(str(path)) is not None

    def _default_checkout(self) -> str:
        if self._default_checkout_path is None:
            from launcher.checkout import choose

            try:
                self._default_checkout_path = choose(
                    self.store.transport, None, self.environment, near=(self._here,)
                ).path
            except (InputError, TransportError):
                self._default_checkout_path = ""
        return self._default_checkout_path

    def _checkout(self, text: str) -> NemoCheckout | str:
        """Return the checkout at a path, or why it is not one."""
        from launcher.checkout import choose

        if not text:
            return "required"
        checkout = self._probed_checkouts.get(text)
        if checkout is None or isinstance(checkout, str):
            try:
                checkout = choose(self.store.transport, text, self.environment)
            except (InputError, TransportError) as error:
                checkout = clean(error.what.partition(", as given by")[0])
            self._probed_checkouts[text] = checkout
        return checkout

    def _with_recipe(self, state: WizardState, status: DraftStatus) -> DraftStatus:
        text = text_of("recipe", state, status)
        if not text:
            return replace(status, recipe_error="required")
        library = self._library()
        path = recipe_file(text, self._here, library)
        try:
            if library is not None and path.parent == library:
                copy_library(self.store.transport, library)
            recipe = self._resolved(path, state.overrides)
            base_recipe = self._resolved(path, ()) if state.overrides else recipe
        except RecipeError as error:
            text = clean(str(error).replace("\n", " "))
            return replace(status, recipe_error=text, recipe_file_exists=path.exists())
        if not isinstance(recipe.get("distillation"), dict):
            problem = "not a distillation recipe (no `distillation:` section)"
            return replace(status, recipe_error=f"{problem}: {clean(str(path))}")
        source = source_of(path, status.recipes)
        return replace(status, path=path, recipe_source=source, recipe=recipe, base_recipe=base_recipe)

    def _library(self) -> Path | None:
        """Return where a host has, or gets, the packaged recipes; None for this machine."""
        return library_on(self.store.transport, self.environment) if self.is_far else None

    def _resolved(self, path: Path, overrides: tuple[str, ...]) -> EffectiveRecipe:
        from recipes.inheritance import Resolver

        if self._resolver is None:
            self._resolver = Resolver()
        return self._resolver.resolve(path, overrides)

    def _environment_key(self, state: WizardState, status: DraftStatus) -> tuple[str, ...]:
        names = ("partition", "profile", "checkout", "kind")
        return tuple(text_of(name, state, status) for name in names)

    def _checker(self, state: WizardState, status: DraftStatus) -> Checker:
        """Return the checker of the job that the state describes."""
        from recipes.checks import Checker

        request, _ = self._request(state, status)
        return Checker(replace(self._inputs_of(state, status), request=request), self._resolver)

    def _inputs_of(self, state: WizardState, status: DraftStatus) -> Inputs:
        """Return what checks need of the checkout and of the job's environment; each is read once."""
        from recipes.checks import Inputs

        environment = self._job_environments.get(self._environment_key(state, status))
        if environment is None and self.is_far:  # not that of this program
            environment = self.environment
        checkout = status.checkout.path if status.checkout is not None else ""
        inputs = self._inputs.get(checkout)
        if inputs is None or inputs.environment != environment:
            directory = self.path(checkout) if checkout else None
            inputs = Inputs.of(environment=environment, checkout=directory, root=self._here)
            models = KeptModels(inputs.models.hub, inputs.models.root)
            inputs = self._inputs[checkout] = replace(inputs, models=models)
        return inputs

    def _with_report(self, state: WizardState, status: DraftStatus) -> DraftStatus:
        """Add checks, memory and cost; fixes are not verified, which takes longer."""
        from launcher.submit.preflight import of_rehearsal
        from recipes.memory import estimate

        assert status.path is not None
        request, cost = self._request(state, status)
        checker = self._checker(state, status)
        inputs = checker.inputs
        overrides = (*state.overrides, *recipe_overrides(state, status))
        report = checker.check(status.path, overrides, verify_fixes=False)
        status = replace(status, gpus_per_node=request.gpus_per_node or 0, cost=cost)
        if kind_of(state) == "rehearsal":
            return replace(status, report=of_rehearsal(report))
        if report.recipe is None:
            return replace(status, report=report)
        models = inputs.models
        memory = None
        if request.gpu_memory_gib is not None:
            memory = estimate(report.recipe, models, request.gpu_memory_gib, inputs.checkout_path)
        return replace(
            status,
            report=report,
            memory=memory,
            student=models.find(str(report.recipe.get("policy.model_name") or "")),
            teacher=models.find(str(report.recipe.get("teacher.model_name") or "")),
        )

    def _request(self, state: WizardState, status: DraftStatus) -> tuple[ClusterRequest, Cost | None]:
        """Return the resources that checks assume for the job, and its cost."""
        from launcher.request import Cost
        from launcher.submit.preflight import cluster_request
        from recipes.checks import ClusterRequest

        partition, nodes = partition_of(state, status), count_of("nodes", state, status) or 1
        limit_s, chain = time_s(state, status), count_of("chain", state, status)
        if status.detection is None or partition is None:
            return ClusterRequest(nodes=nodes, time_s=limit_s, submitting=True), None
        gpus = offered_gpus(state, status)
        if "gpus_per_node" in state.texts:
            gpus = count_of("gpus_per_node", state, status) or gpus
        cost = Cost.of(nodes, gpus, limit_s * chain, partition.cpus.cores) if limit_s and chain else None
        request = ClusterRequest(nodes, gpus, time_s=limit_s or 0)
        return cluster_request(request, kind_of(state), status.detection.site, partition), cost


def _nodes_key(state: WizardState) -> frozenset[tuple[str, str]]:
    """Return what decides the fewest nodes: everything that was typed, but nodes and time."""
    texts = {name: text for name, text in state.texts.items() if name not in ("nodes", "time")}
    return frozenset({**texts, "overrides": "\0".join(state.overrides)}.items())
