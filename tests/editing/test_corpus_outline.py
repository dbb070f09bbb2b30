"""Every stock recipe opens quickly in the editor's model, and shows every leaf."""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path

import pytest

from recipes.editing import EditSession, Outline, RecipeAnalyser
from recipes.inheritance import EffectiveRecipe
from recipes.keys import format_key
from tests.bench.bench_editor import LOOP_MS, TARGET_MS, percentile_95, times_of
from tests.checks.releases import RELEASES, release

LIMIT_S = 0.3


def leaf_keys(data: object, path: tuple[object, ...] = ()) -> list[str]:
    """Return the keys of all scalars and empty collections of plain data."""
    pairs: list[tuple[object, object]] = []
    if isinstance(data, dict):
        pairs = list(data.items())
    elif isinstance(data, list):
        pairs = list(enumerate(data))
    if not pairs:
        return [format_key(path)] if path else []  # type: ignore[arg-type]
    return [key for step, item in pairs for key in leaf_keys(item, (*path, step))]


def missing_leaves(outline: Outline, recipe: EffectiveRecipe) -> set[str]:
    shown = {row.key for row in outline.rows if row.state != "commented" and not row.size}
    return set(leaf_keys(recipe.values)) ^ shown


def opened(path: Path, checkout: Path | None = None) -> tuple[float, set[str]]:
    """Open a recipe as the screen does; return the CPU seconds and the leaves that are missing."""
    gc.freeze()  # as the screen does: a full collection over all that the tests loaded takes 0.3 s
    start = time.process_time()
    session = EditSession.open(path)
    analyser = RecipeAnalyser(path, checkout=checkout, environment={})
    outline = analyser.first_outline(session.state)
    seconds = time.process_time() - start
    analysis = analyser.read(session.state)
    if analysis.error is not None:
        return seconds, set()
    return seconds, missing_leaves(outline, analysis.recipe) | missing_leaves(
        analysis.outline, analysis.recipe
    )


def test_a_sample_of_stock_recipes_shows_every_leaf(corpus: list[Path]) -> None:
    assert {path.name: missing for path in corpus[::40] if (missing := opened(path)[1])} == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_stock_recipe_opens_quickly_and_shows_every_leaf(corpus: list[Path]) -> None:
    assert len(corpus) >= 339
    opened(corpus[0])  # imports
    seconds, wrong = [], {}
    for path in corpus:
        taken, missing = opened(path)
        seconds.append(taken)
        if missing:
            wrong[path.name] = sorted(missing)[:5]
    print(f"median {statistics.median(seconds) * 1000:.0f} ms, worst {max(seconds) * 1000:.0f} ms")
    assert wrong == {}
    assert max(seconds) <= LIMIT_S


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", RELEASES)
def test_every_recipe_of_a_release_opens_quickly_and_shows_every_leaf(
    name: str, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkout = release(shared, tmp_path_factory, name)
    paths = sorted((checkout / "examples").rglob("*.yaml"))
    assert len(paths) >= 80
    opened(paths[0], checkout)  # imports
    results = {path.name: opened(path, checkout) for path in paths}
    print(f"{name}: worst {max(seconds for seconds, _ in results.values()) * 1000:.0f} ms")
    assert {file: sorted(missing)[:5] for file, (_, missing) in results.items() if missing} == {}
    assert {file: seconds for file, (seconds, _) in results.items() if seconds > LIMIT_S} == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_key_press_is_analysed_in_time_on_every_distillation_recipe(corpus: list[Path]) -> None:
    """CPU time, so that other processes on the machine do not count."""
    recipes = [path for path in corpus if "distillation" in path.name]
    assert len(recipes) >= 15
    times_of(recipes[0], None)  # imports
    late = {}
    for path in recipes:
        times = times_of(path, None)
        if percentile_95(times.presses) > TARGET_MS or times.wait > LOOP_MS:
            late[path.name] = (percentile_95(times.presses), times.wait)
    assert late == {}
