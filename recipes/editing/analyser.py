"""Analyses of a recipe while it is edited: effective tree, checks, memory, and what changed of them.

`update` takes some milliseconds and is for a worker thread; parents, schema and models are read once and
kept for as long as their bytes stay the same. It calls `cancelled` between its parts, so that a newer text
need not wait for an older one. What it returns is immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks import Report
from recipes.editing.analysis import Analysis, Placement, Prediction
from recipes.editing.finding_fixes import verified_fixes
from recipes.editing.fitting_changes import FittingChange, fitting_changes
from recipes.editing.key_details import KeyDetails, details_of
from recipes.editing.key_search import KeyMatch, SearchIndex
from recipes.editing.legal_values import LegalValue, legal_values
from recipes.editing.outline import Outline, outline_of
from recipes.editing.predictor import Predictor, check_cancelled, never
from recipes.editing.preflight_changes import PreflightChanges, changes
from recipes.editing.resolution import Resolution, resolve_state

if TYPE_CHECKING:
    from recipes.checks import Result
    from recipes.editing.edit_state import EditState
    from recipes.planning import Fix


class RecipeAnalyser(Predictor):
    """Analyses of one recipe file, each compared with the one before."""

    def __init__(
        self,
        path: Path,
        *,
        checkout: Path | None = None,
        environment: Mapping[str, str] | None = None,
        overrides: Sequence[str] = (),
    ) -> None:
        super().__init__(path, checkout=checkout, environment=environment, overrides=overrides)
        self._previous: Analysis | None = None
        self._search: tuple[Analysis, SearchIndex] | None = None
        self._resolved: tuple[EditState, Resolution] | None = None
        """What the first outline was made of: the analysis of the same state need not resolve it again."""

    def first_outline(self, state: EditState) -> Outline:
        """Return the effective tree at once, before the checkout's schema is read.

        That one tells which keys are unknown, and which comments are keys rather than sentences.
        """
        with self.lock:
            self._resolved = state, resolve_state(self.resolver, state, self.overrides)
            return outline_of(self._resolved[1].recipe, state.revision.tree)

    def update(
        self,
        state: EditState,
        placement: Placement | None = None,
        *,
        refresh: bool = False,
        cancelled: Callable[[], bool] = never,
        outlined: Callable[[Outline], None] | None = None,
    ) -> Analysis:
        """Analyse a state of the text, and compare with the analysis before.

        With `refresh` also the same text again: a parent may have changed. `outlined` is called with the
        tree, before the checks are applied.

        Raises:
            SupersededError: `cancelled` returned true; the next analysis compares with the one before.
        """
        placement = placement or Placement()
        with self.lock:
            previous = self._previous
            if (
                previous is not None
                and not refresh
                and previous.state.revision is state.revision
                and previous.placement == placement
            ):
                analysis = replace(previous, state=state, changes=PreflightChanges())
            else:
                analysis = self._analysis(state, placement, previous, cancelled, outlined)
            self._previous = analysis
            return analysis

    def _analysis(
        self,
        state: EditState,
        placement: Placement,
        previous: Analysis | None,
        cancelled: Callable[[], bool],
        outlined: Callable[[Outline], None] | None,
    ) -> Analysis:
        resolution = self._resolution(state)
        check_cancelled(cancelled)
        stale = not resolution.complete and previous is not None
        if previous is not None and stale:
            resolution, outline = replace(resolution, recipe=previous.recipe), previous.outline
        else:
            outline = self._outline(resolution, state)
        if outlined is not None:
            outlined(outline)
        check_cancelled(cancelled)
        self.first_recipe = self.first_recipe or resolution.recipe
        prediction = self.predict_resolved(state, resolution, placement, cancelled)
        difference = PreflightChanges()
        if previous is not None:
            difference = changes(previous.report, prediction.report, previous.memory, prediction.memory)
        return Analysis(state, placement, resolution, outline, prediction, difference, stale)

    def _resolution(self, state: EditState) -> Resolution:
        """Resolve a state, or take what its first outline was made of."""
        resolved, self._resolved = self._resolved, None
        if resolved is not None and resolved[0] is state:
            return resolved[1]
        return resolve_state(self.resolver, state, self.overrides)

    def read(self, state: EditState) -> Analysis:
        """Return an analysis without predictions: the effective tree alone, for a search."""
        with self.lock:
            resolution = resolve_state(self.resolver, state, self.overrides)
            outline = self._outline(resolution, state)
            return Analysis(state, Placement(), resolution, outline, Prediction(Report(()), None))

    def _outline(self, resolution: Resolution, state: EditState) -> Outline:
        key_tree = self.schema.key_tree(self.schema.algorithm(resolution.recipe.values))
        return outline_of(resolution.recipe, state.revision.tree, key_tree)

    def details(self, analysis: Analysis, key: str) -> KeyDetails:
        """Return what is known of a key, set or not; quick enough for every move of the cursor."""
        return details_of(self, analysis, key)

    def find(self, analysis: Analysis, text: str, *, limit: int = 50) -> tuple[KeyMatch, ...]:
        """Find keys by any part of key, value or comment, also those that are not set; best first."""
        if self._search is None or self._search[0] is not analysis:
            self._search = analysis, SearchIndex.of(self, analysis)
        return self._search[1].find(text, limit)

    def legal_values(
        self, analysis: Analysis, key: str, *, cancelled: Callable[[], bool] = never
    ) -> tuple[LegalValue, ...]:
        """Return values to choose from, those without a new failure first; for a worker thread."""
        return legal_values(self, analysis, key, cancelled)

    def fixes(
        self, analysis: Analysis, result: Result, *, cancelled: Callable[[], bool] = never
    ) -> tuple[Fix, ...]:
        """Return the fixes after which a finding is gone and nothing new fails; for a worker thread."""
        return verified_fixes(self, analysis, result, cancelled)

    def what_would_fit(
        self, analysis: Analysis, key: str = "", *, cancelled: Callable[[], bool] = never
    ) -> tuple[FittingChange, ...]:
        """Return changes after which all phases fit and nothing new fails, cheapest first.

        With a key, values of that key alone. For a worker thread.
        """
        return fitting_changes(self, analysis, key, cancelled)
