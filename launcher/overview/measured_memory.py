"""Measured peaks of GPU memory beside the estimates, by earlier runs of a recipe."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from launcher.overview.rows import RunRow
from launcher.overview.usual_runs import earlier_rows
from launcher.transports.base import Transport
from recipes.errors import ExplainedError
from recipes.inheritance import EffectiveRecipe


@dataclass(frozen=True, slots=True)
class MeasuredEstimate:
    """The largest phase of a memory estimate beside the measured peak of that run, in GiB."""

    estimated_gib: float
    measured_gib: float
    run: str = ""
    """Id of the run."""

    @property
    def share(self) -> float:
        """The measured peak as a share of the estimate."""
        return self.measured_gib / self.estimated_gib

    def corrected_gib(self, estimated_gib: float) -> float:
        """Return another estimate, with the share that was measured."""
        return estimated_gib * self.share

    def room_gib(self, gpu_gib: float) -> float:
        """Return what an estimate may take on a GPU of so many GiB.

        Never more than the GPU has: a sample each 15 s misses short peaks.
        """
        return gpu_gib / max(self.share, 1.0)

    def in_words(self) -> str:
        """Return both figures."""
        figures = f"{self.measured_gib:.1f} GiB where {self.estimated_gib:.1f} GiB were estimated"
        return f"{figures} ({self.share:.0%})"


def models_in(recipe: EffectiveRecipe) -> tuple[str, str]:
    """Return the names of student and teacher."""
    return str(recipe.get("policy.model_name", "")), str(recipe.get("teacher.model_name", ""))


def measured_among(
    rows: Iterable[RunRow], recipe: str, nodes: int | None, models: tuple[str, str] = ("", "")
) -> MeasuredEstimate | None:
    """Return the latest measurement of a recipe, of a run on as many nodes if there is one.

    A file of the same name elsewhere is taken for the same recipe if it has the same `models`, student and
    teacher: many are called recipe.yaml.
    """
    name = PurePath(recipe).name
    alike = [
        row
        for row in rows
        if row.peak_gib
        and row.estimated_gib
        and PurePath(row.recipe).name == name
        and (row.recipe == recipe or (row.student, row.teacher) == models)
    ]
    latest = max(alike, key=lambda row: (row.nodes == nodes, row.started or 0.0), default=None)
    if latest is None or not latest.peak_gib or not latest.estimated_gib:
        return None
    return MeasuredEstimate(latest.estimated_gib, latest.peak_gib, latest.id)


def measured_memory(
    transport: Transport, root: str, recipe: str, nodes: int | None, models: tuple[str, str]
) -> MeasuredEstimate | None:
    """Return the latest measurement of a recipe under a root; None where no run of it has one."""
    return measured_among(earlier_rows(transport, root), recipe, nodes, models)


def measured_here(recipe: EffectiveRecipe, path: Path) -> MeasuredEstimate | None:
    """Return the latest measurement of a recipe of this machine, among the user's runs; None without one."""
    from launcher.paths import runs_root
    from launcher.transports.local import LocalTransport
    from recipes.planning import Setup
    from recipes.remote_path import RemotePath

    if isinstance(path, RemotePath):  # its runs are on another machine
        return None
    try:
        root = runs_root()
    except ExplainedError:  # settings that cannot be read: the memory of a recipe does not need them
        return None
    nodes = Setup.of(recipe).nodes
    return measured_memory(LocalTransport(), str(root), os.path.abspath(path), nodes, models_in(recipe))
