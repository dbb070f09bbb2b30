"""Fixes of a finding in the text under edit, each tried before it is offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from recipes.document import Document
from recipes.editing.analysis import Analysis, Placement, Prediction
from recipes.editing.edit_state import EditState
from recipes.editing.here import apply_edits
from recipes.editing.legal_values import new_failures
from recipes.editing.predictor import Predictor, check_cancelled
from recipes.editing.preflight_changes import identity
from recipes.errors import RecipeError

if TYPE_CHECKING:
    from recipes.checks import Result
    from recipes.planning import Fix

_OFFERED = 4
_TRIED = 10
"""Fixes that are tried at most: each takes some 20 ms."""


def verified_fixes(
    predictor: Predictor, analysis: Analysis, result: Result, cancelled: Callable[[], bool]
) -> tuple[Fix, ...]:
    """Return the fixes that, made in the text, take the finding away and bring no new failure."""
    fixes = list({fix.overrides(): fix for fix in result.fixes if fix.edits}.values())
    verified: list[Fix] = []
    for fix in fixes[:_TRIED]:
        check_cancelled(cancelled)
        tried = try_fix(predictor, analysis, fix, analysis.placement, cancelled)
        if tried is None:
            continue
        left = any(identity(other) == identity(result) for other in tried.report.results)
        if not left and not new_failures(analysis.prediction, tried):
            verified.append(fix)
            if len(verified) == _OFFERED:
                break
    return tuple(verified)


def try_fix(
    predictor: Predictor,
    analysis: Analysis,
    fix: Fix,
    placement: Placement,
    cancelled: Callable[[], bool],
) -> Prediction | None:
    """Return the prediction with a fix made in the text; None where the text does not take it."""
    state = fixed_state(analysis, fix)
    return predictor.predict(state, placement, cancelled=cancelled) if state is not None else None


def fixed_state(analysis: Analysis, fix: Fix) -> EditState | None:
    """Return the state with a fix made in the text; None where the text does not take it."""
    state = analysis.state
    if not state.is_yaml:
        return None
    document = Document.at(state.revision, state.path)
    try:
        apply_edits(document, fix.edits, analysis.recipe)
    except RecipeError:
        return None
    return replace(state, text=document.text, revision=document.revision)
