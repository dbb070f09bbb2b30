"""Watching a run by its directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.clusters.base import Cluster
from launcher.clusters.local import LocalCluster
from launcher.logs.events import JobChanged
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
        case "slurm":
            from launcher.clusters.slurm.cluster import SlurmCluster

            return SlurmCluster(transport, str(Path(run.directory).parent))


def watch_run(transport: Transport, run: Run) -> Watch:
    """Watch a run by its directory: its logs, and its cluster where that can be asked."""

    def probe() -> JobChanged | None:
        latest = load(transport, run.directory)  # another window may have cancelled it
        return cluster_of(latest, transport).state(latest, latest.job) if latest.job is not None else None

    state = _state_of(run)
    return Watch(transport, (run.directory,), probe=probe, state=state)


def _state_of(run: Run) -> RunState:
    if run.spec.cluster == "slurm":
        from launcher.clusters.slurm.verdict import SlurmRunState

        links = run.spec.slurm.chain if run.spec.slurm is not None else 1
        return SlurmRunState(plan_max_steps=run.spec.max_steps, links=links)
    return RunState(plan_max_steps=run.spec.max_steps)


def summary_of(transport: Transport, run: Run) -> Mapping[str, Any]:
    """Return a run's state as JSON: as kept at its end, else from its logs (and kept if it ended)."""
    kept = load_summary(transport, run)
    if kept is not None:
        return kept
    watch = watch_run(transport, run)
    watch.catch_up()
    return summarise(transport, run, watch)


def summarise(transport: Transport, run: Run, watch: Watch) -> dict[str, Any]:
    """Return what a watch has found out as JSON; that of a run that ended is kept beside it."""
    summary = state_json(run.spec.id, watch.state)
    if watch.state.state.ended and not watch.problem:
        save_summary(transport, run, summary)
    return summary
