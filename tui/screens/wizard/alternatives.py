"""Values to choose from in a field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.durations import format_time_limit
from launcher.fields import field as field_of
from recipes.checks.data import REPOSITORIES
from recipes.models.facts import ModelFacts
from recipes.models.table import TABLE
from recipes.planning import Setup, legal_keys
from recipes.planning.sizes import divisors
from tui.formatting import plural
from tui.screens.wizard.model import (
    REHEARSAL_RECIPE,
    DraftStatus,
    WizardState,
    key_of,
    kind_of,
    partition_of,
)
from tui.screens.wizard.recipe_paths import PACKAGED

if TYPE_CHECKING:
    from launcher.clusters.inventory import Partition
    from launcher.fields import Field
    from recipes.planning import Side
    from tui.screens.wizard.recipe_paths import RecipeChoice

_MOST_LISTED = 64
_NAMES_OF_RUNS = ("wandb_project", "wandb_name")


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A value and its description."""

    value: str
    description: str = ""
    label: str = ""
    """Shown in place of the value in a list."""


def choices_for(name: str, state: WizardState, status: DraftStatus) -> tuple[FieldChoice, ...]:
    """Return the values of a field; none where any text is allowed."""
    item = field_of(name)
    if item.choices:
        return tuple(FieldChoice(value, description) for value, description in item.choices)
    if name == "recipe":
        rows = _recipes_for_kind(state, status)
        return tuple(FieldChoice(item.text, item.source, item.label or item.text) for item in rows)
    if name in ("student", "teacher"):
        return _model_choices(name, status)
    if name == "modules":
        return _module_choices(status)
    if name in ("partition", "account", "qos", "profile"):
        return _cluster_choices(name, state, status)
    if name == "gpus_per_node":
        return _gpu_choices(state, status)
    return _recipe_choices(item, status) if item.of_recipe else ()


def _gpu_choices(state: WizardState, status: DraftStatus) -> tuple[FieldChoice, ...]:
    partition = partition_of(state, status)
    count = partition.gpus.count if partition is not None else 0
    return tuple(FieldChoice(str(size)) for size in reversed(divisors(count)))


def _cluster_choices(name: str, state: WizardState, status: DraftStatus) -> tuple[FieldChoice, ...]:
    detection, partition = status.detection, partition_of(state, status)
    if detection is None:
        return ()
    if name == "partition":
        return tuple(FieldChoice(item.name, describe_partition(item)) for item in detection.partitions)
    if name == "profile":
        profiles = (
            FieldChoice(item, ", ".join(profile.environment))
            for item, profile in detection.site.profiles.items()
        )
        return (FieldChoice("", "none"), *profiles)
    accounts = detection.accounts or ()
    if name == "account":
        usable = detection.accounts_in(partition) if partition is not None else None
        names = dict.fromkeys(usable or (item.account for item in accounts))
        default = {item.account for item in accounts if item.default}
        return tuple(FieldChoice(item, "your default" if item in default else "") for item in names)
    qos = dict.fromkeys(value for item in accounts for value in item.qos)
    return (FieldChoice("", "the account's default"), *(FieldChoice(value) for value in qos)) if qos else ()


def _module_choices(status: DraftStatus) -> tuple[FieldChoice, ...]:
    """Return the modules that are loaded in the shell, and those of the site."""
    site = " ".join(status.detection.site.modules) if status.detection is not None else ""
    shell = " ".join(status.loaded_modules)
    rows = [FieldChoice(shell, "loaded in your shell"), FieldChoice(site, "as your site has them")]
    own = [row for row in rows if row.value]
    return (FieldChoice("", "none, or as the profile has them"), *own) if own else ()


def describe_partition(item: Partition) -> str:
    """Return a partition's nodes, GPUs and limit on one line."""
    gpus = f"{item.gpus.count} {item.gpus.type or 'GPU'}".strip() if item.gpus.count else "no GPU"
    limit = f"at most {format_time_limit(item.max_time_s)}" if item.max_time_s else "time limit unknown"
    state_suffix = "" if item.state == "up" else f", {item.state}"
    return f"{plural(item.nodes, 'node')} × {gpus}, {limit}{state_suffix}"


def _recipes_for_kind(state: WizardState, status: DraftStatus) -> tuple[RecipeChoice, ...]:
    """Return the recipes of a kind: NeMo-RL cannot run the rehearsal's."""
    rehearsal = kind_of(state) == "rehearsal"
    return tuple(item for item in status.recipes if rehearsal or not _is_rehearsal(item))


def _is_rehearsal(item: RecipeChoice) -> bool:
    return item.source == PACKAGED and item.path.name == REHEARSAL_RECIPE


def _model_choices(name: str, status: DraftStatus) -> tuple[FieldChoice, ...]:
    """Return cached models, then built-in ones; for the teacher those with the student's vocabulary.

    The vocabulary of a cached model that is not built in is left to the checks.
    """
    student = status.student if isinstance(status.student, ModelFacts) else None

    def fits(facts: ModelFacts) -> bool:
        return (
            name != "teacher" or student is None or (facts.vocab == student.vocab and facts.id != student.id)
        )

    sizes = {item.id: f"{item.bytes / 1e9:.1f} GB in the cache" for item in status.cached_models}
    cached = [item for item in sizes if item not in TABLE or fits(TABLE[item])]
    models = sorted(TABLE.values(), key=lambda facts: (facts.family, facts.params or 0))
    return (
        *(FieldChoice(item, _join(sizes[item], TABLE.get(item))) for item in cached),
        *(
            FieldChoice(facts.id, describe_model(facts))
            for facts in models
            if facts.id not in sizes and fits(facts)
        ),
    )


def _join(size: str, facts: ModelFacts | None) -> str:
    return f"{size}, {describe_model(facts)}" if facts is not None else size


def describe_model(facts: ModelFacts) -> str:
    """Return a model's size, layers, heads and vocabulary on one line."""
    size = f"{facts.params / 1e9:.1f}B parameters, " if facts.params else ""
    return f"{size}{facts.layers} layers, {facts.heads}/{facts.kv_heads} heads, vocabulary {facts.vocab:,}"


def setup_of(status: DraftStatus) -> Setup | None:
    """Return the sizes of the effective recipe."""
    recipe = status.report.recipe if status.report is not None else None
    return Setup.of(recipe) if recipe is not None else None


def legal_sizes(name: str, status: DraftStatus) -> tuple[int, ...]:
    """Return the legal values of a size while all others stay as they are."""
    setup = setup_of(status)
    key = key_of(field_of(name), status)
    if setup is None or not key:
        return ()

    def facts_of(side: Side) -> ModelFacts | None:
        facts = status.student if side is setup.policy else status.teacher
        return facts if isinstance(facts, ModelFacts) else None

    if name == "generation_gpus":
        return tuple(range(1, setup.gpus_per_node))
    if name == "generation_nodes":
        return tuple(range(1, min(setup.nodes, _MOST_LISTED)))
    return legal_keys.legal_sizes(key, setup, facts_of)


def _recipe_choices(item: Field, status: DraftStatus) -> tuple[FieldChoice, ...]:
    """Return a recipe field's values: legal sizes, else what NeMo-RL has and its own recipes use."""
    counts = dict(status.stock.used(item)) if status.stock is not None else {}
    sizes = legal_sizes(item.name, status)
    if sizes:
        return tuple(FieldChoice(str(size), _used(counts.get(str(size), 0))) for size in sizes)
    if item.kind == "path" or item.name in _NAMES_OF_RUNS:
        return ()
    names = _data_sets(status) if item.name in ("data_set", "validation_set") else ()
    values = dict.fromkeys((*counts, *names))
    return tuple(FieldChoice(value, _used(counts.get(value, 0))) for value in list(values)[:_MOST_LISTED])


def _used(count: int) -> str:
    return f"in {plural(count, 'recipe')} of NeMo-RL" if count else ""


def _data_sets(status: DraftStatus) -> tuple[str, ...]:
    """Return the data sets that the checkout has by name, those with a known source first."""
    own = status.data_sets or tuple(REPOSITORIES)
    return tuple(sorted(own, key=lambda name: (name not in REPOSITORIES, name.casefold())))
