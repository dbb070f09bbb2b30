"""What would fit: proposals of the memory account, each tried on the recipe and checked by all rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks.engine import Checker, Report
from recipes.memory import Option, demand_of, estimate, options

if TYPE_CHECKING:
    from recipes.planning import Fix, Side
    from recipes.revision import Revision

_PHASES = {"policy": "student-train", "teacher": "teacher-score"}


def fitting_options(
    checker: Checker,
    path: Path,
    overrides: Sequence[str] = (),
    *,
    gpu_gib: float,
    report: Report | None = None,
    revision: Revision | None = None,
    limit: int = 4,
) -> tuple[Option, ...]:
    """Return changes under which a recipe's phases fit, cheapest first; none where it cannot be read.

    A proposal stands where, with its edits, nothing fails that did not before, and the side's phase fits.
    `report` is the recipe's, where it has been checked already.
    """
    report = report or checker.check(path, overrides, revision=revision, verify_fixes=False)
    if report.recipe is None:
        return ()
    inputs = checker.inputs
    failing = _failures(report)

    def accepts(fix: Fix, side: Side) -> bool:
        changed = [*overrides, *fix.overrides()]
        after = _sized(checker, fix).check(path, changed, revision=revision, verify_fixes=False)
        if after.recipe is None or not _failures(after) <= failing:
            return False
        result = estimate(after.recipe, inputs.models, gpu_gib, inputs.checkout_path)
        return any(phase.id == _PHASES[side.name] and phase.fits for phase in result.phases)

    return options(demand_of(report.recipe, inputs.models, inputs.checkout_path), gpu_gib, limit, accepts)


def _failures(report: Report) -> set[tuple[str, str]]:
    return {(result.id, result.where[0].key if result.where else "") for result in report.failing}


def _sized(checker: Checker, fix: Fix) -> Checker:
    """Return a checker for the nodes of a proposal: those of the request would overrule its edit."""
    request = checker.inputs.request
    nodes = next((edit.after for edit in fix.edits if edit.key == "cluster.num_nodes"), None)
    if request.nodes is None or not isinstance(nodes, int):
        return checker
    return Checker(replace(checker.inputs, request=replace(request, nodes=nodes)), checker.resolver)
