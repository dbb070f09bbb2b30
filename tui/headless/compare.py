"""`compare`: runs beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from launcher.errors import InputError
from launcher.overview.comparison import (
    ComparedRun,
    comparison_json,
    figures,
    read_run,
    recipe_differences,
)
from launcher.overview.figure_text import texts_of, value_text
from launcher.overview.run_series import SeriesLimits
from tui.headless.output import SCHEMA, print_json, show
from tui.headless.stores import run_store

if TYPE_CHECKING:
    import argparse

_LIMITS = SeriesLimits(values=2_000_000)
"""Values of event files of all runs together, 90 MB; of more, every second one, or fourth …"""


def run(options: argparse.Namespace) -> int:
    """Compare runs.

    Raises:
        InputError: fewer than two runs are given, or one is not found.
    """
    if len(options.runs) < 2:
        raise InputError("two runs or more are needed", fix="distill-tui compare RUN RUN")
    store = run_store()
    limits = _LIMITS.shared(len(options.runs))
    runs = [read_run(store.transport, _directory(store, reference), limits) for reference in options.runs]
    if options.json:
        print_json(SCHEMA | comparison_json(runs))
    else:
        for line in text_lines(runs):
            show(line)
    return 0


def _directory(store: Any, reference: str) -> str:  # noqa: ANN401 - a run store, imported for types only
    """Return the directory of a run by any of its names, or a directory of logs."""
    try:
        return str(store.find(reference).directory)
    except InputError:
        status = store.transport.stat(reference)
        if status is None or not status.is_dir:
            raise
        return reference


def text_lines(runs: list[ComparedRun]) -> list[str]:
    """Return the comparison as lines: figures, then the recipe's differences."""
    width = max(*(len(run.name) for run in runs), 12)
    lines = [f"{'':30}" + "".join(f" {run.name:>{width}}" for run in runs)]
    lines += [
        f"{row.title:30}" + "".join(f" {text:>{width}}" for text in texts_of(row)) for row in figures(runs)
    ]
    for item in recipe_differences(runs):
        lines += ["", item.key]
        lines += [
            f"  {run.name:{width}} {value_text(value)}" for run, value in zip(runs, item.values, strict=True)
        ]
    return lines
