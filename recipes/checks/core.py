"""Rules: their inputs, their findings and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from recipes.checks.checkout import Checkout
from recipes.checks.rule_sources import FEATURES, SOURCES
from recipes.drivers import Driver, choose_driver, recipe_kind
from recipes.memory import Demand, demand_of
from recipes.models import ModelFacts, Models, UnknownModel
from recipes.planning import Fix, RecipeEdit, Setup, Side
from recipes.planning.setup import value_at, whole
from recipes.remote_path import prefetch
from recipes.schema.algorithms import algorithm_of, driver_of_algorithm
from recipes.schema.checkout_schema import Schema, Schemas
from recipes.secrets import masked

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe

_MISSING = object()
_LONGEST_BITS = 256
Outcome = Literal["pass", "fail", "warn", "unknown"]


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """Requested resources and those that exist; None is unknown.

    `nodes` and `gpus_per_node` are the job's and replace the recipe's `cluster` values, as the launcher does
    when it starts the driver. `node_gpus`, `node_cpus` and `available_nodes` are what there is.
    `submitting`: the environment looked at is the driver's, not that of the shell somebody checks in.
    """

    nodes: int | None = None
    gpus_per_node: int | None = None
    gpu_memory_gib: float | None = None
    time_s: int | None = None
    node_gpus: int | None = None
    node_cpus: int | None = None
    available_nodes: int | None = None
    offline: bool = False
    submitting: bool = False

    def overrides(self) -> list[str]:
        """Return the overrides that the launcher adds to the driver's command."""
        pairs = (("cluster.num_nodes", self.nodes), ("cluster.gpus_per_node", self.gpus_per_node))
        return [f"++{key}={value}" for key, value in pairs if value is not None]


@dataclass(frozen=True)
class Inputs:
    """All that a check may use besides the recipe.

    `environment` is the driver's, None where it is not known. `root` is the driver's working directory.
    """

    models: Models
    environment: Mapping[str, str] | None = None
    checkout: Checkout | None = None
    request: ClusterRequest = field(default_factory=ClusterRequest)
    root: Path = field(default_factory=Path.cwd)
    schemas: Schemas = field(default_factory=Schemas, compare=False)
    cache: Path | None = None
    """Where what is found in a checkout is kept; None is the user's cache."""

    @property
    def checkout_path(self) -> Path | None:
        """The checkout's directory."""
        return self.checkout.path if self.checkout is not None else None

    @classmethod
    def of(
        cls,
        *,
        environment: Mapping[str, str] | None = None,
        checkout: Path | None = None,
        request: ClusterRequest | None = None,
        cache: Path | None = None,
        root: Path | None = None,
    ) -> Inputs:
        """Return the inputs for a driver that would start in a checkout, else in `root` (default: here)."""
        root = checkout or root or Path.cwd()
        prefetch(checkout)
        return cls(
            Models.of(environment, root),
            environment,
            Checkout.at(checkout, cache) if checkout is not None else None,
            request or ClusterRequest(),
            root,
            cache=cache,
        )


@dataclass(frozen=True, slots=True)
class RecipeLine:
    """A line of a recipe that a finding is about; `file` is `<override>` for an override."""

    file: str
    line: int
    key: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding of a rule; the first key is its subject. `lines` are those without a key of their own."""

    outcome: Outcome
    message: str
    keys: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    foretells: str = ""
    lines: tuple[RecipeLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one rule, once per finding."""

    id: str
    title: str
    outcome: Outcome
    message: str
    foretells: str = ""
    where: tuple[RecipeLine, ...] = ()
    fixes: tuple[Fix, ...] = ()


@dataclass(frozen=True)
class Context:
    """Recipe with the inputs and derived facts that rules use."""

    recipe: EffectiveRecipe
    inputs: Inputs

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - a recipe holds anything
        """Return a value of the effective recipe."""
        return value_at(self.recipe, key, default)

    def has(self, key: str) -> bool:
        """Return whether a key is there, null included."""
        return value_at(self.recipe, key, _MISSING) is not _MISSING

    @cached_property
    def setup(self) -> Setup:
        """The arithmetic of the recipe."""
        return Setup.of(self.recipe)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Student and teacher."""
        return self.setup.sides

    @cached_property
    def demand(self) -> Demand:
        """The work of both models on their GPUs."""
        return demand_of(self.recipe, self.inputs.models, self.inputs.checkout_path)

    @cached_property
    def placed(self) -> tuple[Side, ...]:
        """The sides whose GPUs divide into copies of their model: only there is dp known."""
        if not self.setup.split_is_legal:
            return ()
        return tuple(side for side in self.sides if side.backend and side.divides)

    @cached_property
    def gym(self) -> bool:
        """Return whether NeMo-Gym generates the answers."""
        return self.get("env.should_use_nemo_gym") is True and self.has_feature("nemo-gym")

    @cached_property
    def driver(self) -> Driver:
        """The driver script that the recipe is for."""
        if self.checkout is None or not self.checkout.scripts:
            kind, reason = recipe_kind(self.recipe.values)
            return Driver(None, kind, reason)
        return choose_driver(self.recipe.values, self.checkout.scripts)

    def has_feature(self, name: str) -> bool:
        """Return whether NeMo-RL has a feature; without a checkout, whether the newest release has it."""
        return FEATURES[name].newest if self.checkout is None else self.checkout.has(name)

    @cached_property
    def three_pools(self) -> str:
        """The key by which the teacher has GPUs of its own, as in some forks; "" if it has none."""
        for key in ("teacher.resources", "teacher.cluster", "teacher.colocated.resources", "cluster.teacher"):
            if isinstance(self.get(key), dict):
                return key
        for section in ("cluster", "distillation", "teacher"):
            values = self.get(section)
            for name in values if isinstance(values, dict) else ():
                if str(name).startswith("teacher_") and str(name).endswith(
                    ("_nodes", "_gpus_per_node", "_gpus")
                ):
                    return f"{section}.{name}"
        return ""

    @property
    def validates(self) -> bool:
        """Return whether the run validates at all; NeMo-RL does every 20 steps where nothing is said."""
        period = whole(self.get("distillation.val_period"))
        starts = self.get("distillation.val_at_start") is True
        starts = starts or (self.get("distillation.val_at_end") is True and self.has_feature("val_at_end"))
        return starts or (20 if period is None else period) > 0

    @property
    def checkout(self) -> Checkout | None:
        """The NeMo-RL checkout, if known."""
        return self.inputs.checkout

    @cached_property
    def schema(self) -> Schema | None:
        """The configuration classes of the recipe's driver: the checkout's, else those of a release."""
        algorithm = algorithm_of(self.recipe.values)
        if algorithm is None:
            return None
        path = self.checkout.path if self.checkout is not None else None
        return self.inputs.schemas.of(driver_of_algorithm(algorithm), path)

    @cached_property
    def _facts(self) -> dict[str, ModelFacts | UnknownModel]:
        return {}

    def model(self, side: Side) -> ModelFacts | UnknownModel:
        """Return the facts of a side's model, or why they are unknown."""
        if side.name not in self._facts:
            self._facts[side.name] = self.inputs.models.find(side.model)
        return self._facts[side.name]

    def model_facts(self, side: Side) -> ModelFacts | None:
        """Return a side's model facts, None if they are unknown."""
        facts = self.model(side)
        return facts if isinstance(facts, ModelFacts) else None

    def variable(self, name: str) -> str | None:
        """Return a variable of the driver's environment; None where it is unset or unknown."""
        return (self.inputs.environment or {}).get(name)

    def edit(self, key: str, after: object) -> RecipeEdit:
        """Return the edit that sets a key."""
        absent = not self.has(key)
        return RecipeEdit(key, None if absent else self.get(key), after, absent=absent)

    def fix(self, key: str, after: object) -> Fix:
        """Return the fix that sets one key."""
        return Fix(f"{key}: {shown(self.get(key))} -> {shown(after)}", (self.edit(key, after),))

    def fix_all(self, values: Mapping[str, object]) -> Fix:
        """Return the fix that sets several keys."""
        title = ", ".join(f"{key}: {shown(self.get(key))} -> {shown(after)}" for key, after in values.items())
        return Fix(title, tuple(self.edit(key, after) for key, after in values.items()))

    def removal(self, key: str) -> Fix:
        """Return the fix that deletes a key."""
        return Fix(f"delete {key}", (RecipeEdit(key, self.get(key), None, remove=True),))


@dataclass(frozen=True, slots=True)
class Rule:
    """A failure that can be predicted: `find` yields nothing where there is nothing to report.

    `foretells` is the message of NeMo-RL (or of a library below it), `source_file` where NeMo-RL raises it.
    """

    id: str
    title: str
    find: Callable[[Context], Iterable[Finding]]
    foretells: str
    source_file: str

    def results(self, context: Context) -> list[Result]:
        """Apply the rule; one passed result if it finds nothing, or if NeMo-RL has no such failure."""
        if not self.applies(context):
            return [Result(self.id, self.title, "pass", "")]
        results = [self._result(context, finding) for finding in self.find(context)]
        return results or [Result(self.id, self.title, "pass", "")]

    def applies(self, context: Context) -> bool:
        """Return whether the NeMo-RL at hand can fail as the rule predicts."""
        if context.checkout is None:
            return self.id not in SOURCES or not SOURCES[self.id].never
        return context.checkout.has_rule(self.id)

    def _result(self, context: Context, finding: Finding) -> Result:
        where = list(finding.lines)
        for key in finding.keys:
            origin = context.recipe.origin(key) or context.recipe.origin(key.rpartition(".")[0])
            if origin is not None:
                where.append(RecipeLine(origin.file, origin.line, key))
        predicted = ""
        if finding.outcome in ("fail", "warn"):
            predicted = (
                f"{finding.foretells or self.foretells} ({self.source_file})" if self.foretells else ""
            )
        message = masked(finding.message)  # a value may come from a secret variable
        return Result(
            self.id, self.title, finding.outcome, message, masked(predicted), tuple(where), finding.fixes
        )


def fail(message: str, *keys: str, fixes: Iterable[Fix] = (), foretells: str = "") -> Finding:
    """Return the finding that the run would fail."""
    return Finding("fail", message, keys, tuple(fixes), foretells)


def warn(message: str, *keys: str, fixes: Iterable[Fix] = (), foretells: str = "") -> Finding:
    """Return the finding that something has no effect, or may go wrong."""
    return Finding("warn", message, keys, tuple(fixes), foretells)


def undecided(message: str, needed: str, *keys: str) -> Finding:
    """Return the finding that a rule cannot be decided, and what would decide it."""
    return Finding("unknown", f"unknown: {message}. {needed}", keys)


def shown(value: object) -> str:
    """Return a value as a recipe shows it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return "…"
    if isinstance(value, int) and value.bit_length() > _LONGEST_BITS:
        return f"a number of {value.bit_length()} bits"  # Python spells no more than 4300 digits
    return str(value)
