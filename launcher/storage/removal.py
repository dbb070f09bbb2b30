"""Removal of the checkpoints of trial runs. Those of a training run are its result, and stay."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import InputError, LaunchError, TransportError
from launcher.logs.events import JobState
from launcher.monitor.watch_run import summary_of
from launcher.ownership import require_owner
from launcher.runs import Run, RunStore
from launcher.storage.disk_use import DiskCounter


@dataclass(frozen=True, slots=True)
class RemovedCheckpoints:
    """What was removed."""

    directory: str
    bytes: int
    """Allocated on disk; 0 where there was nothing."""


def trial_checkpoints(run: Run) -> Path | None:
    """Return the directory of a trial run's checkpoints; None where there is none, or it is a link."""
    path = Path(run.directory, "output", "checkpoints")
    inside = Path(os.path.realpath(path)) == Path(os.path.realpath(run.directory), "output", "checkpoints")
    return path if run.spec.kind != "training" and inside and path.is_dir() else None


def remove_checkpoints(store: RunStore, run: Run) -> RemovedCheckpoints:
    """Remove the checkpoints of a smoke run or rehearsal that has ended.

    Raises:
        InputError: it is a training run.
        LaunchError: it has not ended, or is another user's.
        TransportError: they cannot be removed.
    """
    if run.spec.kind == "training":
        raise InputError(
            f"{run.spec.id} is a training run: its checkpoints are its result",
            where=run.directory,
            fix="Remove them yourself, in the recipe's checkpointing.checkpoint_dir.",
        )
    command = ("rm", "-r", "--", str(Path(run.directory, "output", "checkpoints")))
    require_owner(store.transport, run, "keeps its checkpoints", command)
    state = JobState(str(summary_of(store.transport, run)["state"]))
    if not state.ended:
        raise LaunchError(
            f"{run.spec.id} has not ended: it is {state.value}", where=run.directory, fix="`cancel` stops it."
        )
    directory = trial_checkpoints(run)
    if directory is None:
        return RemovedCheckpoints(str(Path(run.directory, "output", "checkpoints")), 0)
    size = sum(DiskCounter().count(directory).values())
    try:
        shutil.rmtree(os.path.realpath(directory))
    except OSError as error:
        raise TransportError(f"cannot remove the checkpoints: {error.strerror}", where=directory) from error
    return RemovedCheckpoints(str(directory), size)


def removal_hint(run: Run) -> str:
    """Return how to remove a trial run's checkpoints; empty where there are none."""
    if trial_checkpoints(run) is None:
        return ""
    from launcher.storage.size import gigabytes

    directory = Path(run.directory, "output", "checkpoints")
    counter = DiskCounter(entries=10_000)
    size = gigabytes(sum(counter.count(directory).values()))
    more = "" if counter.complete else "more than "
    return (
        f"its checkpoint takes {more}{size}; `distill-tui runs --remove-checkpoints {run.spec.id}` removes it"
    )
