"""Runs beside each other: times, memory, milestones, and the keys of their recipes that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from launcher.errors import InputError
from launcher.logs.gpu_samples import NodeSamples, idle_spans, imbalance, peak_memory_gib
from launcher.logs.milestones import MILESTONES
from launcher.monitor.summary import state_json
from launcher.monitor.usual import since_previous
from launcher.monitor.watch import Watch, watch_directory
from launcher.monitor.watch_run import watch_run
from launcher.overview.run_series import ALL, SeriesLimits, all_series
from launcher.overview.series import STEP_PHASES, Series, order_of
from launcher.runs import SPEC, Run, effective_values, load
from launcher.text import clean
from launcher.transports.base import Transport
from recipes.compare import ABSENT, differences
from recipes.errors import ExplainedError
from recipes.keys import KeyPath, format_key

_POINTS, _ALL_POINTS = 200, 200_000
"""Points of a series in JSON, and of all together: each takes some 100 bytes on its way."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run, or a directory of logs, as far as it is compared."""

    name: str
    directory: str
    summary: Mapping[str, Any]
    series: Mapping[str, Series]
    gpus: tuple[NodeSamples, ...]
    recipe: Mapping[str, Any]
    """Effective values; empty for logs alone."""
    nodes: int | None = None
    gpus_per_node: int | None = None
    estimated_gib: float | None = None

    @property
    def durations(self) -> dict[str, float]:
        """Milestone -> seconds since the one before it."""
        times = [
            (item["id"], item["time"]) for item in self.summary["milestones"] if item["time"] is not None
        ]
        return since_previous(times)

    def median_of(self, metric: str) -> float | None:
        """Return the median of a metric of the log without its first value, which includes a warm-up."""
        values = [value for value in self.summary["metrics"].get(metric, []) if value is not None]
        return median(values[1:] or values) if values else None


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table of figures: what it is, and its value for each run (None: unknown)."""

    id: str
    title: str
    unit: str
    values: tuple[float | str | None, ...]


@dataclass(frozen=True, slots=True)
class RecipeDifference:
    """A key whose effective values differ; `absent` values are of runs whose recipe has no such key."""

    key: str
    values: tuple[Any, ...]


def read_run(transport: Transport, directory: str, limits: SeriesLimits = ALL) -> ComparedRun:
    """Read a run, or a directory of logs, from wherever it lies; nothing but its files is needed.

    Raises:
        InputError: the directory is none, or is damaged.
        TransportError: it cannot be read.
    """
    if transport.stat(str(Path(directory, SPEC))) is None:
        status = transport.stat(directory)
        if status is None or not status.is_dir:
            raise InputError("there is no such run or directory", where=directory)
        watch = watch_directory(transport, directory)
        return _read(transport, watch, directory, clean(Path(directory).name), None, limits)
    run = load(transport, directory)
    return _read(transport, watch_run(transport, run), directory, clean(run.spec.name), run, limits)


def _read(
    transport: Transport,
    watch: Watch,
    directory: str,
    name: str,
    run: Run | None,
    limits: SeriesLimits,
) -> ComparedRun:
    watch.with_trackers = False  # all of TensorBoard's scalars are read as series
    watch.catch_up(final=True)
    series, gpus = all_series(transport, watch, limits)
    try:
        recipe = effective_values(transport, directory) if run is not None else {}
    except ExplainedError:
        recipe = {}
    return ComparedRun(
        name,
        directory,
        state_json(run.spec.id if run is not None else name, watch.state),
        series,
        gpus,
        recipe,
        run.spec.nodes if run is not None else None,
        run.spec.gpus_per_node if run is not None else None,
        run.spec.estimated_gib if run is not None else None,
    )


def figures(runs: Sequence[ComparedRun]) -> tuple[Figure, ...]:
    """Return the figures of runs side by side; those that no run has are left out."""
    rows = [
        Figure("state", "state", "", tuple(run.summary["state"] for run in runs)),
        Figure("nodes", "nodes", "", tuple(run.nodes for run in runs)),
        Figure("gpus_per_node", "GPUs of a node", "", tuple(run.gpus_per_node for run in runs)),
        Figure("step", "steps", "", tuple(run.summary["metrics"]["step"] for run in runs)),
        Figure("loss", "last loss", "", tuple(_last(run, "loss") for run in runs)),
        Figure("accuracy", "last validation accuracy", "", tuple(_last(run, "accuracy") for run in runs)),
        Figure("step_s", "step, median", "s", tuple(run.median_of("step_time_s") for run in runs)),
    ]
    rows += [
        Figure(f"{phase}_s", f"  {phase}", "s", tuple(run.median_of(f"{phase}_time_s") for run in runs))
        for phase in STEP_PHASES
    ]
    rows.append(Figure("peak_gib", "peak GPU memory", "GiB", tuple(_peak(run, 0) for run in runs)))
    rows.append(
        Figure("estimated_gib", "  estimated", "GiB", tuple(_rounded(run.estimated_gib) for run in runs))
    )
    rows.append(Figure("gpu_gib", "GPU memory", "GiB", tuple(_peak(run, 1) for run in runs)))
    rows.append(Figure("gpu_least", "least busy GPU", "%", tuple(_busy(run, 0) for run in runs)))
    rows.append(Figure("gpu_most", "busiest GPU", "%", tuple(_busy(run, 1) for run in runs)))
    rows += [
        Figure(
            f"until_{kind.id}", f"until {kind.title}", "s", tuple(run.durations.get(kind.id) for run in runs)
        )
        for kind in MILESTONES
    ]
    return tuple(row for row in rows if any(value is not None for value in row.values))


def _last(run: ComparedRun, metric: str) -> float | None:
    values = [value for value in run.summary["metrics"].get(metric, []) if value is not None]
    return values[-1] if values else None


def _peak(run: ComparedRun, part: int) -> float | None:
    peak = peak_memory_gib(run.gpus)
    return round(peak[part], 1) if peak is not None else None


def _rounded(gib: float | None) -> float | None:
    return None if gib is None else round(gib, 1)


def _busy(run: ComparedRun, part: int) -> float | None:
    spread = imbalance(run.gpus, last=10**6)
    return round(spread[part], 1) if spread is not None else None


def recipe_differences(runs: Sequence[ComparedRun]) -> tuple[RecipeDifference, ...]:
    """Return the keys of the runs' recipes that differ, in the order of the first recipe."""
    with_recipe = [run for run in runs if run.recipe]
    if len(with_recipe) < 2:
        return ()
    first, *others = with_recipe
    keys = {item.key: None for other in others for item in differences(first.recipe, other.recipe)}
    flat = [dict(_leaves(run.recipe)) for run in runs]
    return tuple(RecipeDifference(key, tuple(values.get(key, ABSENT) for values in flat)) for key in keys)


def _leaves(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[str, Any]]:
    """Yield every key of a recipe with its value, sections included."""
    for name, value in values.items():
        yield format_key((*path, name)), value
        if isinstance(value, dict):
            yield from _leaves(value, (*path, name))


def shared_series(runs: Sequence[ComparedRun]) -> tuple[str, ...]:
    """Return the names of the series that several runs have, those that matter most first; else of any."""
    counts: dict[str, int] = {}
    for run in runs:
        for name in run.series:
            counts[name] = counts.get(name, 0) + 1
    shared = [name for name, count in counts.items() if count > 1]
    return tuple(sorted(shared or counts, key=order_of))


def comparison_json(runs: Sequence[ComparedRun]) -> dict[str, Any]:
    """Return a comparison as `compare --json` prints it."""
    names = shared_series(runs)
    points = min(max(_ALL_POINTS // max(len(names) * len(runs), 1), 2), _POINTS)
    return {
        "runs": [{"run": run.summary["run"], "name": run.name, "dir": run.directory} for run in runs],
        "figures": [
            {"id": row.id, "title": row.title.strip(), "unit": row.unit, "values": list(row.values)}
            for row in figures(runs)
        ],
        "recipe": [
            {
                "key": item.key,
                "values": [None if value is ABSENT else value for value in item.values],
                "present": [value is not ABSENT for value in item.values],
            }
            for item in recipe_differences(runs)
        ],
        "series": {name: [_series_json(run.series.get(name), points) for run in runs] for name in names},
        "idle": [[span.in_words() for span in idle_spans(run.gpus)] for run in runs],
    }


def _series_json(series: Series | None, points: int) -> dict[str, Any] | None:
    """Return a series thinned to so many points; a value that is not finite is null."""
    if series is None:
        return None
    stride = max(len(series.steps) // points, 1)
    values = [float(value) for value in series.values[::stride]]
    return {
        "steps": [float(step) for step in series.steps[::stride]],
        "values": [value if math.isfinite(value) else None for value in values],
        "points": len(series.steps) + series.left_out,
    }
