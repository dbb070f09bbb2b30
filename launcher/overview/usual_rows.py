"""Usual durations by rows of the list: pure, and without the models of stored runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING

from launcher.logs.job_state import JobState
from launcher.overview.rows import RunRow

if TYPE_CHECKING:
    from launcher.monitor.usual import Usual

_MOST = 20
_GOOD = (JobState.COMPLETED, JobState.STOPPED)


def usual_among(rows: Iterable[RunRow], recipe: str, nodes: int, *, without: str = "") -> Usual:
    """Return the usual durations by rows of ended runs, the latest of them."""
    from launcher.monitor.usual import usual_of

    name = PurePath(recipe).name
    alike = [
        row
        for row in rows
        if row.durations
        and row.nodes == nodes
        and PurePath(row.recipe).name == name
        and row.directory != without
    ]
    alike.sort(key=lambda row: (row.state in _GOOD, row.started or 0.0), reverse=True)
    return usual_of(dict(row.durations) for row in alike[:_MOST])


def longer_than_usual(row: RunRow, rows: Iterable[RunRow]) -> tuple[str, ...]:
    """Return in words what of a run took notably longer than in the others of its recipe and size."""
    if not row.durations or row.nodes is None:
        return ()
    usual = usual_among(rows, row.recipe, row.nodes, without=row.directory)
    texts = (usual.longer(name, seconds) for name, seconds in row.durations if name != "step")
    return tuple(text for text in texts if text)
