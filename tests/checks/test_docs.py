"""The documents say what the code does."""

from __future__ import annotations

from pathlib import Path

from recipes.memory.calibration import cross_validate, measured

from recipes.checks.describe import table

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_rules_is_the_rules() -> None:
    assert table() in (DOCS / "checks.md").read_text(encoding="utf-8")


def test_the_fold_errors_are_the_ones_reported() -> None:
    text = (DOCS / "memory.md").read_text(encoding="utf-8")
    for folds in (4, 6, 9):
        errors = cross_validate(measured(), folds)
        assert f"| {folds} | {errors.median:.2%} | {errors.worst:.1%} |".replace("%", " %") in text
    assert f"{len(measured())} measurements" in text
