"""The documents say what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.checks.describe import table
from recipes.memory.memory_tables import cards_table, symbols_table, terms_table
from recipes.memory.moments_picture import picture
from recipes.memory.points import errors_table, read_points
from tests.checks.releases import RELEASES, release

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_rules_is_the_rules() -> None:
    assert table() in (DOCS / "checks.md").read_text(encoding="utf-8")


def test_the_terms_and_their_formulas_are_the_account_s() -> None:
    text = (DOCS / "memory.md").read_text(encoding="utf-8")
    assert symbols_table() in text
    assert terms_table() in text


def test_the_errors_are_those_of_the_points() -> None:
    points = read_points(DOCS.parent / "tests" / "cases" / "memory" / "points.jsonl")
    assert errors_table(points) in (DOCS / "memory.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_cards_are_those_that_the_recipes_need(
    shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkouts = [release(shared, tmp_path_factory, name) for name in RELEASES]
    assert cards_table(checkouts) in (DOCS / "memory.md").read_text(encoding="utf-8")


def test_the_picture_is_of_the_account() -> None:
    assert picture() == (DOCS / "memory-moments.svg").read_text(encoding="utf-8")
