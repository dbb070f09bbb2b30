"""Checks and memory of an edited recipe, with what is read once: parents, schema, models, comments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.chain_comments import ChainComments, SpotIndex
from recipes.checks import Inputs, Report, apply
from recipes.checks.engine import entry_report
from recipes.editing.analysis import Analysis, Placement, Prediction, SupersededError
from recipes.editing.known_schema import KnownSchema
from recipes.editing.resolution import Resolution, resolve_state
from recipes.editing.stock_comments import StockComments
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.memory import estimate

if TYPE_CHECKING:
    from recipes.editing.edit_state import EditState
    from recipes.errors import RecipeError


def never() -> bool:
    """Return that nothing is cancelled."""
    return False


def check_cancelled(cancelled: Callable[[], bool]) -> None:
    """Raise `SupersededError` where `cancelled` returns true."""
    if cancelled():
        raise SupersededError


class Predictor:
    """Predictions for the states of one recipe file; several threads wait for one another."""

    def __init__(
        self,
        path: Path,
        *,
        checkout: Path | None = None,
        environment: Mapping[str, str] | None = None,
        overrides: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.overrides = tuple(overrides)
        self.resolver = Resolver()
        self.inputs = Inputs.of(environment=environment, checkout=checkout)
        self.schema = KnownSchema(self.inputs.schemas, checkout, path)
        self.stock_comments = StockComments(checkout)
        self.first_recipe: EffectiveRecipe | None = None
        """Effective recipe as it was opened."""
        self.lock = threading.RLock()
        self._indexes: dict[str, SpotIndex] = {}

    def predict_resolved(
        self, state: EditState, resolution: Resolution, placement: Placement, cancelled: Callable[[], bool]
    ) -> Prediction:
        """Return checks and memory of a state that has been resolved; an error is a failing C1, C2 or C3."""
        if resolution.error is not None:
            alone: RecipeError | None = resolution.error
            if self.overrides:
                alone = resolve_state(self.resolver, state).error
            return Prediction(entry_report(resolution.error, alone), None)
        recipe: EffectiveRecipe | None = resolution.recipe
        if placement.request().overrides():
            recipe = None
        return self.predict(state, placement, recipe=recipe, cancelled=cancelled)

    def predict(
        self,
        state: EditState,
        placement: Placement,
        overrides: Sequence[str] = (),
        *,
        recipe: EffectiveRecipe | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> Prediction:
        """Return checks and memory of a state with further overrides, or of a recipe resolved from it.

        Raises:
            SupersededError: `cancelled` returned true.
        """
        request = placement.request()
        with self.lock:
            if recipe is None:
                resolution = resolve_state(
                    self.resolver, state, [*self.overrides, *request.overrides(), *overrides]
                )
                if resolution.error is not None:
                    return Prediction(entry_report(resolution.error, None), None)
                recipe = resolution.recipe
            check_cancelled(cancelled)
            inputs = replace(self.inputs, request=request)
            report = Report(tuple(apply(recipe, inputs)), recipe)
            check_cancelled(cancelled)
            return Prediction(
                report, estimate(recipe, inputs.models, request.gpu_memory_gib, inputs.checkout_path)
            )

    def comments(self, analysis: Analysis) -> ChainComments:
        """Return the look-up of comments of an analysed recipe."""
        tree = analysis.state.revision.tree
        return ChainComments(self.resolver.reader, tree, analysis.recipe.files, self._indexes)
