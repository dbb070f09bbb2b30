"""Opening of a run for the monitor.

Pydantic and most of the launcher are imported by the functions, which run on threads: the first paint does
not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.formatting import plural

if TYPE_CHECKING:
    from launcher.monitor.watch import Watch
    from launcher.runs import Run
    from launcher.transports.base import Transport
    from tui.work_machine import WorkMachine

FILE_DEADLINE_S = 5.0
"""Time limit of a file call, after which the file system is reported as not answering."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run's facts that are known before its logs are read."""

    title: str
    detail: str = ""
    """Host, nodes and GPUs."""
    directory: str = ""
    started: float | None = None


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run, or logs alone, ready to be watched."""

    summary: RunSummary
    watch: Watch
    transport: Transport
    """For the logs' text; not the watch's own, so that neither waits for the other."""
    run: Run | None = None
    machine: WorkMachine | None = None
    """Where it is; None: this machine."""

    @property
    def host(self) -> str:
        """Name of the host that it is on; empty for this machine."""
        return self.machine.name if self.machine is not None else ""

    def new_transport(self) -> Transport:
        """Return a new transport to its machine, for another thread."""
        return self.machine.transport() if self.machine is not None else local()

    def again(self) -> OpenedRun:
        """Return the same run or logs with a watch of its own, for another thread."""
        if self.run is not None:
            return open_run(self.run, self.machine)
        from launcher.monitor.watch import Watch

        watch = Watch(
            self.new_transport(), self.watch.directories, self.watch.files, locate=self.watch.locate
        )
        return OpenedRun(self.summary, watch, self.new_transport(), machine=self.machine)


Opener = Callable[[], OpenedRun]


def local() -> Transport:
    """Return a new transport to this machine."""
    from launcher.transports.local import LocalTransport

    return LocalTransport(FILE_DEADLINE_S)


def open_run(run: Run, machine: WorkMachine | None = None) -> OpenedRun:
    """Return a run of a machine (None: this one) ready to be watched."""
    from launcher.monitor.watch_run import watch_run
    from launcher.overview.usual_runs import usual_of_run

    transport = local if machine is None else machine.transport
    watch = watch_run(transport(), run)
    watch.usual = usual_of_run(transport(), run)
    summary = summary_of(run)
    if machine is not None and machine.name:
        summary = replace(summary, title=f"{machine.name}: {summary.title}")
    return OpenedRun(summary, watch, transport(), run, machine)


def open_directory(directory: str, machine: WorkMachine) -> OpenedRun:
    """Open the run in a directory of a machine.

    Raises:
        InputError: it is no run.
        TransportError: the machine does not answer.
    """
    from launcher.runs import load

    return open_run(load(machine.transport(), directory), machine)


def find_run_on(machine: WorkMachine, reference: str) -> OpenedRun:
    """Find what a reference means on a host: a run, a Slurm job, or a directory of logs; open it.

    Raises:
        AmbiguousError: several runs match.
        InputError: there is no such thing.
        TransportError: the host does not answer.
    """
    from launcher.errors import AmbiguousError, InputError
    from launcher.monitor.watch import watch_directory
    from launcher.monitor.watch_run import watch_job
    from launcher.run_reference import is_job_id
    from launcher.runs import store_on

    store = store_on(machine.transport())
    title = f"{machine.name}: {clean(reference)}"
    if "/" in reference:
        entry = store.transport.stat(reference)
        if entry is None or not entry.is_dir:
            raise InputError(f"no such directory on {machine.name}: {clean(reference)}")
        if store.transport.stat(f"{reference}/run.json") is None:
            watch = watch_directory(store.transport, reference)
            return OpenedRun(RunSummary(title), watch, machine.transport(), machine=machine)
    try:
        return open_run(store.find(reference), machine)
    except AmbiguousError:
        raise
    except InputError:
        if not is_job_id(reference):
            raise
        watch = watch_job(store.transport, reference)
        return OpenedRun(RunSummary(title), watch, machine.transport(), machine=machine)


def find_run(root: Path, reference: str) -> OpenedRun:
    """Find a run by its id, a part of it, or its directory, and open it.

    Raises:
        InputError: no run matches, or several do.
    """
    from launcher.runs import user_store

    return open_run(user_store(local(), root).find(reference))


def summary_of(run: Run) -> RunSummary:
    """Return the summary of a run from its `run.json`."""
    spec = run.spec
    started = run.job.submitted if run.job is not None else spec.created
    detail = f"{clean(spec.host)} · {plural(spec.nodes, 'node')}"
    if spec.kind == "rehearsal":  # its worker units need no GPU, whatever the recipe says
        detail = f"rehearsal, stand-in models · {detail}"
    elif spec.kind == "doctor":
        detail = f"measurements of nodes, no training · {detail}"
    elif spec.gpus_per_node:
        detail += f" × {plural(spec.gpus_per_node, 'GPU')}"
    return RunSummary(f"{clean(spec.name)}  {clean(spec.id)}", detail, run.directory, started.timestamp())


class OpeningFailed(Message):
    """The run or the logs of a screen cannot be opened."""

    def __init__(self, error: ExplainedError) -> None:
        super().__init__()
        self.error = error


class ActionFailed(Message):
    """A request of the user failed: cancelling, a notification, the pager. The app shows why."""

    def __init__(self, error: ExplainedError) -> None:
        super().__init__()
        self.error = error
