"""Hostile recipes: read within limits, or refused in words; nothing leaks, nothing hangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.recipe_inputs import KINDS, LARGE, recipe_attempts
from tests.hostile.verdicts import tally, unchanged_unless_edited


@pytest.mark.long
def test_hostile_recipes_of_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tally(recipe_attempts(2 * len(KINDS), seed=1), tmp_path, unchanged_unless_edited)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.bad == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_hostile_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tally(recipe_attempts(1200, seed=2), tmp_path, unchanged_unless_edited)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.tried["recipes"] == 1200
    assert result.bad == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_large_hostile_recipes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tally(recipe_attempts(90, seed=3, kinds=LARGE), tmp_path, unchanged_unless_edited)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.bad == []
