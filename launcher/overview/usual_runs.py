"""Usual durations of a run: by the earlier runs of its recipe on as many nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from launcher.monitor.usual import Usual
from launcher.overview.row_cache import cache_file, load_rows
from launcher.overview.rows import RunRow
from launcher.overview.usual_rows import usual_among
from launcher.runs import Run, RunStore, load
from launcher.saved_summary import load_summary
from launcher.transports.base import Transport, is_remote
from recipes.errors import ExplainedError

_READ = 30
"""Runs that are read where the list of runs has kept none."""


def usual_durations(transport: Transport, root: str, recipe: str, nodes: int, *, without: str = "") -> Usual:
    """Return the usual durations of a recipe on so many nodes; `without`: directory of a run to leave out.

    Of runs that failed only what they reached counts, after those that ended well.
    """
    return usual_among(earlier_rows(transport, root), recipe, nodes, without=without)


def earlier_rows(transport: Transport, root: str) -> list[RunRow]:
    """Return the rows of runs that have ended: as the list of runs has kept them, else of the latest."""
    if is_remote(transport):  # its list of runs is not kept here, and reading 30 runs takes a minute
        return []
    kept = [cached.row for cached in load_rows(cache_file(root, os.environ)).values()]
    return kept or list(_read(transport, root))


def _read(transport: Transport, root: str) -> Iterable[RunRow]:
    from launcher.overview.rows import filled_row, starting_row

    try:
        directories = RunStore(transport, root).directories()[:_READ]
    except ExplainedError:
        return
    for directory, _ in directories:
        try:
            run = load(transport, directory)
            summary = load_summary(transport, run)
        except ExplainedError:
            continue
        if summary is not None:
            yield filled_row(starting_row(run), summary)


def usual_of_run(transport: Transport, run: Run) -> Callable[[], Usual]:
    """Return a function that looks up the usual durations of a run once, when it is first called."""

    @cache
    def look_up() -> Usual:
        root = str(Path(run.directory).parent)
        return usual_durations(transport, root, run.spec.recipe.source, run.spec.nodes, without=run.directory)

    return look_up
