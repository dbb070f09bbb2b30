"""All that is derived from one state of an edited recipe, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recipes.checks import ClusterRequest, Report, Result
from recipes.compare import ValueDifference, differences
from recipes.editing.outline import Outline
from recipes.editing.preflight_changes import PreflightChanges
from recipes.editing.resolution import Resolution
from recipes.errors import RecipeError
from recipes.files import unified_diff
from recipes.inheritance import EffectiveRecipe
from recipes.memory import Estimate
from recipes.values import plain
from recipes.yaml.typed import writable, yaml_text

if TYPE_CHECKING:
    from recipes.editing.edit_state import EditState


class SupersededError(Exception):
    """Raised where an analysis was cancelled."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Place that predictions are made for; None leaves it to the recipe (the memory: to the default)."""

    nodes: int | None = None
    gpus_per_node: int | None = None
    gpu_memory_gib: float | None = None

    def request(self) -> ClusterRequest:
        """Return the resources that the checks assume."""
        return ClusterRequest(self.nodes, self.gpus_per_node, self.gpu_memory_gib)


@dataclass(frozen=True, slots=True)
class Prediction:
    """Checks and memory of a recipe at a place."""

    report: Report
    memory: Estimate | None

    @property
    def overfull(self) -> tuple[str, ...]:
        """Phases that do not fit."""
        return tuple(phase.id for phase in self.memory.phases if not phase.fits) if self.memory else ()


@dataclass(frozen=True)
class Analysis:
    """All that is derived from one state of the text."""

    state: EditState
    placement: Placement
    resolution: Resolution
    outline: Outline
    prediction: Prediction
    changes: PreflightChanges = field(default_factory=PreflightChanges)
    stale: bool = False
    """Whether the outline is that of the last text whose chain could be read."""

    @property
    def recipe(self) -> EffectiveRecipe:
        """Effective recipe; with an `error`, as far as it can be resolved."""
        return self.resolution.recipe

    @property
    def error(self) -> RecipeError | None:
        """Reason why the text is no YAML, or why NeMo-RL would refuse the recipe."""
        return self.state.error or self.resolution.error

    @property
    def report(self) -> Report:
        """Results of the checks."""
        return self.prediction.report

    @property
    def memory(self) -> Estimate | None:
        """Memory estimate; None where the recipe cannot be resolved."""
        return self.prediction.memory

    def failing(self) -> tuple[Result, ...]:
        """Return the findings that predict a failure."""
        return self.report.failing

    def findings_on(self, key: str) -> tuple[Result, ...]:
        """Return the findings about a key or what is below it, failures first."""
        order = ("fail", "warn", "unknown")
        results = [
            result
            for result in self.report.results
            if result.outcome != "pass" and any(_is_within(line.key, key) for line in result.where)
        ]
        return tuple(sorted(results, key=lambda result: order.index(result.outcome)))

    def diff_parent(self) -> tuple[ValueDifference, ...]:
        """Return the keys whose value differs from what the parents alone give, before interpolation."""
        return tuple(differences(plain(self.recipe.inherited), plain(self.recipe.merged)))

    def diff_parent_text(self) -> str:
        """Return a unified diff from the parents' values to the recipe's, before interpolation."""
        before, after = (
            yaml_text(writable(plain(value))) + "\n" if value.items else ""
            for value in (self.recipe.inherited, self.recipe.merged)
        )
        return unified_diff(before, after, "parents", str(self.state.path))


def _is_within(key: str, section: str) -> bool:
    return key == section or (bool(section) and key.startswith(f"{section}."))
