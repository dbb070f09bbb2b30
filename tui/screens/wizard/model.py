"""Typed text, defaults for empty fields, and the submit request they produce. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.clusters.inventory import gpu_memory_gib
from launcher.durations import DurationError, format_time_limit, parse_time_limit
from launcher.fields import FIELDS, Field
from launcher.fields import field as field_of
from launcher.text import clean
from tui.screens.wizard.recipe_paths import PACKAGED

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.clusters.inventory import Detection, Partition
    from launcher.request import Cost, Kind
    from launcher.storage.decision import RunStorage, StorageQuestion
    from launcher.submit.submit import SubmissionPlan
    from recipes.checks import Report
    from recipes.errors import ExplainedError
    from recipes.inheritance import EffectiveRecipe
    from recipes.memory import Estimate, Option
    from recipes.models import ModelFacts, UnknownModel
    from recipes.planning import Fix
    from tui.screens.wizard.model_cache import CachedModel
    from tui.screens.wizard.recipe_paths import RecipeChoice

STARTING_RECIPE = "qwen3-1.7b-from-4b.yaml"
REHEARSAL_RECIPE = "rehearsal.yaml"
_DEFAULT_TIME_S = {"rehearsal": 600, "smoke": 1800, "training": 86400}
"""Default time limits, where the partition allows them."""
_MODELS = ("checkout", "student", "teacher")


@dataclass(frozen=True, slots=True)
class Step:
    """One page of the wizard."""

    id: str
    title: str
    fields: tuple[str, ...] = ()


_TITLES = {"cluster": "Cluster", "recipe": "Recipe", "job": "Job", "sizes": "Sizes", "review": "Review"}
STEPS = tuple(
    Step(identity, title, tuple(row.name for row in FIELDS if row.step == identity))
    for identity, title in _TITLES.items()
)


@dataclass(frozen=True, slots=True)
class WizardState:
    """What the user has typed and chosen so far; nothing else."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """By field; a field that is not in it has its default, from the recipe or the cluster."""
    overrides: tuple[str, ...] = ()
    """Overrides that belong to no field: from the command line, and from applied fixes."""
    skipped: tuple[str, ...] = ()
    """Ids of failing checks that must not block."""
    carried: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields that no page asks for, by name: from a run that is made again."""

    @property
    def touched(self) -> bool:
        """Whether there is anything to lose."""
        return bool(self.texts or self.overrides or self.skipped)

    def with_text(self, name: str, text: str, default: str) -> WizardState:
        """Return the state with a field's text; a text that equals the default is not kept."""
        texts = {key: value for key, value in self.texts.items() if key != name}
        if text.strip() != default:
            texts[name] = text.strip()
        return replace(self, texts=texts)

    def with_fix(self, fix: Fix, status: DraftStatus) -> WizardState:
        """Return the state with a check's fix applied: in fields that set its keys, else as overrides."""
        state = self
        for edit in fix.edits:
            name = field_with_key(edit.key, status)
            if name is not None and not edit.remove:
                state = replace(state, texts={**state.texts, name: str(edit.after)})
            else:
                state = replace(state, overrides=(*state.overrides, *edit.overrides()))
        return state

    def with_skipped(self, identity: str) -> WizardState:
        """Return the state with a check skipped, or no longer skipped."""
        if identity in self.skipped:
            return replace(self, skipped=tuple(item for item in self.skipped if item != identity))
        return replace(self, skipped=(*self.skipped, identity))


@dataclass(frozen=True, slots=True)
class DraftStatus:
    """The resolved state of a draft. Everything is None until it is known."""

    state: WizardState = WizardState()
    detection: Detection | None = None
    slurm_error: ExplainedError | None = None
    """Why Slurm could not be queried at all."""
    recipes: tuple[RecipeChoice, ...] = ()
    """Recipes to choose from: of this directory, of the checkout, recently used ones, packaged ones."""
    cached_models: tuple[CachedModel, ...] = ()
    """Models in the cache that the job will use."""
    default_checkout: str = ""
    path: Path | None = None
    """The recipe's file."""
    recipe_source: str = ""
    """Where it comes from, as `recipe_files` names it; empty for any other path."""
    recipe: EffectiveRecipe | None = None
    """With the overrides of the wizard's state, without its fields."""
    base_recipe: EffectiveRecipe | None = None
    """As in its file, without any override."""
    recipe_error: str = ""
    recipe_file_exists: bool = True
    """Whether there is a file of the typed name."""
    checkout: NemoCheckout | None = None
    checkout_error: str = ""
    student: ModelFacts | UnknownModel | None = None
    teacher: ModelFacts | UnknownModel | None = None
    report: Report | None = None
    memory: Estimate | None = None
    fitting: tuple[Option, ...] = ()
    """Checked changes under which the memory would suffice, cheapest first."""
    cost: Cost | None = None
    gpus_per_node: int = 0
    plan: SubmissionPlan | None = None
    """The submission; None where it cannot be planned, or was not planned yet."""
    plan_error: ExplainedError | None = None
    """Why no submission can be planned."""
    resolved: bool = False
    """Whether files and the recipe have been read; Slurm may still be asked."""
    fewest_nodes: int | None = None
    """Nodes that a smoke run gets where none were typed; None where that is not planned yet."""
    loaded_modules: tuple[str, ...] = ()
    """Modules that are loaded in the shell."""
    storage: RunStorage | None = None
    """What the submission would write, and where."""
    storage_question: StorageQuestion | None = None
    """The question where runs are kept; None where that is decided."""
    settled: bool = False
    """Whether everything is resolved."""


def step_of(identity: str) -> Step:
    """Return a step by its id."""
    return next(step for step in STEPS if step.id == identity)


def kind_of(state: WizardState) -> Kind:
    """Return the kind of run."""
    kind = state.texts.get("kind", "training")
    return kind if kind in ("rehearsal", "smoke") else "training"  # type: ignore[return-value]


def fields_of(step: Step, state: WizardState, status: DraftStatus) -> tuple[Field, ...]:
    """Return the fields of a step; rehearsals have stand-in models and need no checkout."""
    names = list(step.fields)
    if kind_of(state) == "rehearsal":
        names = [name for name in names if name not in _MODELS and step.id != "sizes"]
    if "gpu_memory" not in state.texts and not lacks_gpu_memory(state, status):
        names = [name for name in names if name != "gpu_memory"]
    if status.detection is None or not status.detection.site.profiles:
        names = [name for name in names if name != "profile"]
    if not (status.loaded_modules or text_of("modules", state, status) or "modules" in state.texts):
        names = [name for name in names if name != "modules"]
    if kind_of(state) == "smoke":  # its steps are few, whatever the recipe says
        names = [name for name in names if name != "steps"]
    return tuple(field_of(name) for name in names)


def steps_of(state: WizardState, status: DraftStatus) -> tuple[Step, ...]:
    """Return the steps that have fields, and the review."""
    return tuple(step for step in STEPS if step.id == "review" or fields_of(step, state, status))


def lacks_gpu_memory(state: WizardState, status: DraftStatus) -> bool:
    """Return whether nobody knows the memory of the chosen partition's GPUs, and a run needs it."""
    partition = partition_of(state, status)
    if status.detection is None or partition is None or not partition.gpus.count:
        return False
    known = gpu_memory_gib(partition.gpus.type or "gpu", status.detection.site.gpu_memory_gib)
    return known is None and kind_of(state) != "rehearsal"


def key_of(item: Field, status: DraftStatus) -> str:
    """Return the recipe key that a field sets."""
    side = item.key.partition(".")[0]
    megatron = status.recipe is not None and status.recipe.get(f"{side}.megatron_cfg.enabled") is True
    return item.key_with("megatron" if megatron else None)


def field_with_key(key: str, status: DraftStatus) -> str | None:
    """Return the name of the field that sets a recipe key."""
    if key == "cluster.num_nodes":
        return "nodes"
    return next((item.name for item in FIELDS if item.key and key_of(item, status) == key), None)


def partition_of(state: WizardState, status: DraftStatus) -> Partition | None:
    """Return the chosen partition, else the default one."""
    if status.detection is None:
        return None
    name = (
        state.texts.get("partition")
        or profile_answer("partition", state, status)
        or _smoke_target(state, status)[0]
    )
    if name:
        return status.detection.partition(name)
    default = next((item for item in status.detection.partitions if item.default), None)
    return default or next(iter(status.detection.partitions), None)


def _smoke_target(state: WizardState, status: DraftStatus) -> tuple[str, str]:
    """Return the partition and the reservation that a smoke run gets by default, as `submit --smoke` does."""
    names = ("partition", "reservation")
    chosen = any(state.texts.get(name) or profile_answer(name, state, status) for name in names)
    if kind_of(state) != "smoke" or chosen or status.detection is None:
        return "", ""
    from launcher.submit.complete import smoke_target

    typed = state.texts.get("time") or profile_answer("time", state, status)
    try:
        limit_s = parse_time_limit(typed) if typed else _DEFAULT_TIME_S["smoke"]
    except DurationError:
        limit_s = _DEFAULT_TIME_S["smoke"]
    target = smoke_target(status.detection, count_of("nodes", state, status) or 1, limit_s)
    return (target[0], target[1] or "") if target is not None else ("", "")


def profile_answer(name: str, state: WizardState, status: DraftStatus) -> str:
    """Return what the chosen profile answers for a field; empty where it does not."""
    profiles = status.detection.site.profiles if status.detection is not None else {}
    profile = profiles.get(state.texts.get("profile", ""))
    value = getattr(profile, name, None)
    if isinstance(value, tuple):  # its sbatch arguments come before the request's, in any case
        return " ".join(value) if name == "modules" else ""
    return str(value) if isinstance(value, str | int) else ""


def default_text(name: str, state: WizardState, status: DraftStatus) -> str:
    """Return the text of a field that was not edited."""
    item = field_of(name)
    if item.key:
        value = status.recipe.get(key_of(item, status)) if status.recipe is not None else None
        return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if answer := profile_answer(name, state, status):
        return answer
    if name == "partition":
        partition = partition_of(state, status)
        return partition.name if partition is not None else ""
    if name == "account":
        return _default_account(partition_of(state, status), status)
    if name == "reservation":
        return _smoke_target(state, status)[1]
    if name == "kind":
        return "training"
    if name == "recipe":
        return _packaged_recipe(
            REHEARSAL_RECIPE if kind_of(state) == "rehearsal" else STARTING_RECIPE, status
        )
    if name == "checkout":
        return status.default_checkout
    if name == "modules":
        return " ".join(status.detection.site.modules) if status.detection is not None else ""
    if name == "nodes":
        return _default_nodes(state, status)
    if name == "time":
        partition = partition_of(state, status)
        max_time_s = partition.max_time_s if partition is not None else None
        return format_time_limit(
            min(_DEFAULT_TIME_S[kind_of(state)], max_time_s or _DEFAULT_TIME_S["training"])
        )
    return "1" if name == "chain" else ""


def _default_nodes(state: WizardState, status: DraftStatus) -> str:
    """Return the recipe's nodes; for a smoke run the fewest that suffice, once they are known."""
    if kind_of(state) == "smoke" and status.fewest_nodes is not None:
        return str(status.fewest_nodes)
    count = status.recipe.get("cluster.num_nodes") if status.recipe is not None else None
    return str(count) if isinstance(count, int) and not isinstance(count, bool) and count > 0 else "1"


def _packaged_recipe(name: str, status: DraftStatus) -> str:
    """Return a packaged recipe as it is typed: its name, unless a file of this directory has the same."""
    packaged = (item for item in status.recipes if item.source == PACKAGED and item.path.name == name)
    return next((item.text for item in packaged), name)


def _default_account(partition: Partition | None, status: DraftStatus) -> str:
    if status.detection is None:
        return ""
    default = next((item.account for item in status.detection.accounts or () if item.default), "")
    usable = status.detection.accounts_in(partition) if partition is not None else None
    if usable and default not in usable:
        return usable[0]
    return default


def text_of(name: str, state: WizardState, status: DraftStatus) -> str:
    """Return the text of a field: as typed, else its default."""
    return state.texts[name] if name in state.texts else default_text(name, state, status)


def time_s(state: WizardState, status: DraftStatus) -> int | None:
    """Return the time limit in seconds; None where it is missing or invalid."""
    try:
        return parse_time_limit(text_of("time", state, status))
    except DurationError:
        return None


def count_of(name: str, state: WizardState, status: DraftStatus) -> int | None:
    """Return a field's whole number >= 1; None where it is missing or invalid."""
    text = text_of(name, state, status)
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


def error_in(item: Field, state: WizardState, status: DraftStatus) -> str:
    """Return why a field's text cannot be part of a request; empty where it can."""
    text = text_of(item.name, state, status)
    if not text and item.name == "partition" and status.detection is None:
        return ""  # an unreachable Slurm is reported elsewhere
    if not text:
        required = not item.optional and (not item.key or item.name in state.texts)
        return "required" if required else ""
    if item.kind == "whole" and count_of(item.name, state, status) is None:
        return "must be a whole number >= 1"
    if item.kind == "time":
        return _time_error(text)
    if item.repeatable and words_of(text) is None:
        return "a quote is not closed"
    if item.name == "recipe" and status.recipe_error:
        return _recipe_error(text, status)
    if item.name == "checkout" and status.checkout_error:
        return status.checkout_error
    return ""


def _recipe_error(text: str, status: DraftStatus) -> str:
    """Return why a recipe cannot be read; where a part of its name was typed, how many have it."""
    matches = [item for item in status.recipes if text.casefold() in item.path.name.casefold()]
    if status.recipe_file_exists or not matches:
        return status.recipe_error
    return f"{len(matches)} match (tab)"


def words_of(text: str) -> tuple[str, ...] | None:
    """Return the words of a text as a shell has them; None where a quote is not closed."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return None


def _time_error(text: str) -> str:
    try:
        parse_time_limit(text)
    except DurationError as error:
        return clean(str(error))
    return ""


def warning_in(item: Field, state: WizardState, status: DraftStatus) -> str:
    """Return why the site may refuse a field's text; only the site can decide."""
    partition = partition_of(state, status)
    if partition is None:
        return ""
    text = text_of(item.name, state, status)
    if item.name == "partition" and partition.state != "up":
        return f"is {partition.state}"
    if item.name == "account" and status.detection is not None:
        usable = status.detection.accounts_in(partition)
        if usable is not None and text and text not in usable:
            return f"may not use {partition.name}"
    limit = time_s(state, status)
    if item.name == "time" and limit and partition.max_time_s and limit > partition.max_time_s:
        return f"{partition.name}: {format_time_limit(partition.max_time_s)} at most"
    nodes = count_of("nodes", state, status)
    max_nodes = min(partition.nodes, partition.max_nodes or partition.nodes)
    if item.name == "nodes" and nodes and nodes > max_nodes:
        return f"{partition.name} allows at most {max_nodes}"
    return ""


def errors(state: WizardState, status: DraftStatus) -> dict[str, str]:
    """Return the errors that prevent a request, by field."""
    texts = {
        item.name: error_in(item, state, status)
        for step in STEPS
        for item in fields_of(step, state, status)
    }  # fmt: skip
    return {name: text for name, text in texts.items() if text}
