"""From a run, a directory or files to a watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher.clusters.base import Cluster
from launcher.clusters.local import LocalCluster
from launcher.logs.events import JobChanged, Role
from launcher.logs.sources import LogFile, role_of
from launcher.logs.state import RunState
from launcher.logs.summary import state_json
from launcher.logs.watch import Watch
from launcher.runs import Run, load, load_summary, save_summary
from launcher.transports.base import Transport


def cluster_of(run: Run, transport: Transport) -> Cluster:
    """Return the cluster that has a run's jobs."""
    match run.spec.cluster:
        case "local":
            return LocalCluster(transport)


def watch_run(transport: Transport, run: Run) -> Watch:
    """Watch a run by its directory: its logs, and its cluster where that can be asked."""

    def probe() -> JobChanged | None:
        latest = load(transport, run.directory)  # another window may have cancelled it
        return cluster_of(latest, transport).state(latest, latest.job) if latest.job is not None else None

    state = RunState(plan_max_steps=run.spec.max_steps)
    return Watch(transport, (run.directory,), probe=probe, state=state)


def watch_directory(transport: Transport, directory: str) -> Watch:
    """Watch a directory of logs that may have been written by anything."""
    return Watch(transport, (directory,))


def watch_logs(transport: Transport, logs: Sequence[tuple[Role | None, str]]) -> Watch:
    """Watch single files; a role that is not given is told by the file's name, else it is a driver's."""
    files = [
        LogFile(Path(path).name if _unique(path, logs) else path, path, role or role_of(path) or Role.DRIVER)
        for role, path in logs
    ]
    return Watch(transport, files=tuple(files))


def _unique(path: str, logs: Sequence[tuple[Role | None, str]]) -> bool:
    return sum(Path(other).name == Path(path).name for _, other in logs) == 1


def summary_of(transport: Transport, run: Run) -> Mapping[str, Any]:
    """Return a run's state as JSON: as kept at its end, else from its logs (and kept if it ended)."""
    kept = load_summary(transport, run)
    if kept is not None:
        return kept
    watch = watch_run(transport, run)
    watch.catch_up()
    summary = state_json(run.spec.id, watch.state)
    if watch.state.state.ended and not watch.problem:
        save_summary(transport, run, summary)
    return summary
