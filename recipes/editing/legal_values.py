"""Values that a key may be given, each tried with the checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.editing.analysis import Analysis
from recipes.editing.outline import one_line
from recipes.editing.predictor import Predictor, check_cancelled
from recipes.editing.preflight_changes import subject
from recipes.keys import parse_key
from recipes.models import ModelFacts
from recipes.planning.edits import hydra
from recipes.planning.legal_keys import legal_sizes
from recipes.planning.setup import Setup
from recipes.schema.key_info import key_info
from recipes.yaml.typed import read_typed

if TYPE_CHECKING:
    from recipes.editing.analysis import Prediction
    from recipes.planning.setup import Side

_TRIED = 24
"""Values that are tried at most: each takes some 6 ms."""


@dataclass(frozen=True, slots=True)
class LegalValue:
    """A value to choose, as it is typed; `note` names the failures that it would bring ("" for none)."""

    text: str
    present: bool
    note: str = ""


def legal_values(
    predictor: Predictor, analysis: Analysis, key: str, cancelled: Callable[[], bool]
) -> tuple[LegalValue, ...]:
    """Return values to choose from, those without a new failure first; () where any value is allowed."""
    present = _present(analysis, key)
    texts = _candidates(predictor, analysis, key, present)
    if not texts:
        return ()
    baseline = analysis.prediction
    values = []
    for text in texts:
        check_cancelled(cancelled)
        note = ""
        if text != present:
            override = f"++{key}={hydra(read_typed(text).value)}"
            tried = predictor.predict(analysis.state, analysis.placement, (override,), cancelled=cancelled)
            note = new_failures(baseline, tried)
        values.append(LegalValue(text, text == present, note))
    return tuple(sorted(values, key=lambda value: bool(value.note)))


def _present(analysis: Analysis, key: str) -> str:
    missing = object()
    value = analysis.recipe.get(key, missing)
    return "" if value is missing or isinstance(value, dict | list) else one_line(value)


def _candidates(predictor: Predictor, analysis: Analysis, key: str, present: str) -> list[str]:
    recipe, models = analysis.recipe, predictor.inputs.models

    def facts_of(side: Side) -> ModelFacts | None:
        facts = models.find(side.model)
        return facts if isinstance(facts, ModelFacts) else None

    placed = analysis.report.recipe or recipe
    sizes = [str(size) for size in legal_sizes(key, Setup.of(placed), facts_of)]
    if sizes:
        shown = sizes if present in sizes or not present else [present, *sizes]
        return shown[:_TRIED]
    description = predictor.schema.description(predictor.schema.algorithm(recipe.values))
    steps = [str(step) for step in parse_key(key)]
    if description is None or not steps or any("." in step for step in steps):
        return []
    info = key_info(description, ".".join(steps))
    return list(info.allowed[:_TRIED]) if info is not None else []


def new_failures(before: Prediction, after: Prediction) -> str:
    """Return the messages of failures that only the later prediction has, on one line."""
    old = {(result.id, subject(result)) for result in before.report.failing}
    new = [result for result in after.report.failing if (result.id, subject(result)) not in old]
    return "; ".join(f"{result.id} {result.message or result.title}" for result in new)
