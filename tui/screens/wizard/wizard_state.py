"""What the user has typed and chosen in the wizard, and what it comes to. Values alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.fields import FIELDS
from launcher.fields import STEPS as TITLES

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.clusters.inventory import Detection
    from launcher.fields.stock_values import StockValues
    from launcher.overview.measured_memory import MeasuredEstimate
    from launcher.request import Cost
    from launcher.storage.decision import RunStorage, StorageQuestion
    from launcher.submit.submit import SubmissionPlan
    from recipes.checks import Report
    from recipes.errors import ExplainedError
    from recipes.inheritance import EffectiveRecipe
    from recipes.known_keys import KeyTree
    from recipes.memory import Estimate, Option
    from recipes.models import ModelFacts, UnknownModel
    from tui.screens.wizard.model_cache import CachedModel
    from tui.screens.wizard.recipe_paths import RecipeChoice

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One page of the wizard."""

    id: str
    title: str
    fields: tuple[str, ...] = ()


STEPS = tuple(
    Step(item.id, item.title, tuple(row.name for row in FIELDS if row.step == item.id)) for item in TITLES
)


@dataclass(frozen=True, slots=True)
class WizardState:
    """What the user has typed and chosen so far; nothing else."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """By field; a field that is not in it has its default, from the recipe or the cluster."""
    overrides: tuple[str, ...] = ()
    """Overrides that belong to no field: from the command line, from applied fixes, and any other key."""
    skipped: tuple[str, ...] = ()
    """Ids of failing checks that must not block."""
    both: frozenset[str] = frozenset()
    """Fields of the student that are set for the teacher, too."""

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

    def without_text(self, name: str) -> WizardState:
        """Return the state with a field at its default."""
        texts = {key: value for key, value in self.texts.items() if key != name}
        return replace(self, texts=texts, both=self.both - {name})

    def with_both(self, name: str) -> WizardState:
        """Return the state with a field set for student and teacher, or no longer for both."""
        return replace(self, both=self.both ^ {name})

    def with_skipped(self, identity: str) -> WizardState:
        """Return the state with a check skipped, or no longer skipped."""
        if identity in self.skipped:
            return replace(self, skipped=tuple(item for item in self.skipped if item != identity))
        return replace(self, skipped=(*self.skipped, identity))

    def as_json(self) -> str:
        """Return the state as one line, for a draft."""
        data = {
            "format": _FORMAT,
            "texts": dict(self.texts),
            "overrides": self.overrides,
            "skipped": self.skipped,
            "both": sorted(self.both),
        }
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> WizardState:
        """Read what `as_json` wrote; fields that there are no more are left out.

        Raises:
            ValueError: it is something else.
        """
        try:
            data = json.loads(text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise ValueError("not a draft of this version")
        names = {row.name for row in FIELDS}
        texts = data.get("texts")
        if not isinstance(texts, dict):
            raise ValueError("the draft's fields are missing")
        return cls(
            {name: text for name, text in texts.items() if name in names and isinstance(text, str)},
            _strings(data.get("overrides")),
            _strings(data.get("skipped")),
            frozenset(_strings(data.get("both"))) & names,
        )


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("a list of texts was expected")
    return tuple(value)


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
    measured: MeasuredEstimate | None = None
    """Peak of an earlier run of the recipe, once a submission is planned."""
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
    key_tree: KeyTree | None = None
    """Keys that the checkout's release knows; None where that was not read yet."""
    data_sets: tuple[str, ...] = ()
    """Data sets that the checkout has by name."""
    stock: StockValues | None = None
    """Values of the checkout's own recipes; None where they were not read yet."""

    @property
    def effective(self) -> EffectiveRecipe | None:
        """The recipe with everything that was chosen; None where it cannot be resolved."""
        return self.report.recipe if self.report is not None else None
