"""Finding or starting a run, and making it ready to be watched.

What needs pydantic, or a good part of the launcher, is imported by the functions, which run on threads: the
first paint does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from launcher.text import clean
from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from launcher.monitor.watch import Watch
    from launcher.runs import Run
    from launcher.transports.base import Transport

FILE_DEADLINE_S = 5.0
"""A file system that does not answer for so long is told to the user."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is known of a run before anything of it is read."""

    title: str
    detail: str = ""
    """Where it runs, and on how much."""
    directory: str = ""
    started: float | None = None


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run, or logs alone, ready to be watched."""

    about: RunSummary
    watch: Watch
    transport: Transport
    """For looking at the logs' text; not the one that polls, so that neither waits for the other."""
    run: Run | None = None


Opener = Callable[[], OpenedRun]


def local() -> Transport:
    """Return a new transport to this machine."""
    from launcher.transports.local import LocalTransport

    return LocalTransport(FILE_DEADLINE_S)


def opened(run: Run) -> OpenedRun:
    """Return a run ready to be watched."""
    from launcher.monitor.watch_run import watch_run

    return OpenedRun(about(run), watch_run(local(), run), local(), run)


def found(root: Path, reference: str) -> OpenedRun:
    """Find a run by its id, a part of it, or its directory.

    Raises:
        InputError: there is none, or more than one.
    """
    from launcher.runs import user_store

    return opened(user_store(local(), root).find(reference))


def about(run: Run) -> RunSummary:
    """Return what a run's directory tells before its logs are read."""
    spec = run.spec
    started = run.job.submitted if run.job is not None else spec.created
    nodes = f"{spec.nodes} node{'' if spec.nodes == 1 else 's'}"
    where = f"{clean(spec.host)} · {nodes}"
    if spec.kind == "rehearsal":  # its worker units need no GPU, whatever the recipe says
        where = f"rehearsal, stand-in models · {where}"
    elif spec.gpus_per_node:
        where += f" × {spec.gpus_per_node} GPU{'' if spec.gpus_per_node == 1 else 's'}"
    return RunSummary(f"{clean(spec.name)}  {clean(spec.id)}", where, run.directory, started.timestamp())


class OpenFailed(Message):
    """What was asked for cannot be done."""

    def __init__(self, error: ExplainedError) -> None:
        super().__init__()
        self.error = error
