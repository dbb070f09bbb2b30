"""Watching a run by its directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.clusters.base import Cluster
from launcher.clusters.local import LocalCluster
from launcher.logs.events import JobChanged
from launcher.monitor.state import RunState
from launcher.monitor.summary import state_json
from launcher.monitor.watch import Watch
from launcher.runs import Run, load, load_summary, save_summary
from launcher.transports.base import Transport

FRONT_S = 30.0
"""Seconds between two questions to a controller, where no site says otherwise."""


def cluster_of(run: Run, transport: Transport, every_s: float = FRONT_S) -> Cluster:
    """Return the cluster that has a run's jobs; `every_s`: seconds between two questions to it."""
    match run.spec.cluster:
        case "local":
            return LocalCluster(transport)
        case "slurm":
            from launcher.clusters.slurm.cluster import SlurmCluster

            return SlurmCluster(transport, str(Path(run.directory).parent), every_s=every_s)


def watch_run(transport: Transport, run: Run) -> Watch:
    """Watch a run by its directory: its logs, and its cluster where that can be asked."""
    paces = _Paces(transport)

    def probe() -> JobChanged | None:
        latest = load(transport, run.directory)  # another window may have cancelled it
        if latest.job is None:
            return None
        every_s = FRONT_S if run.spec.cluster == "local" else paces.every_s(in_front=watch.in_front)
        return cluster_of(latest, transport, every_s).state(latest, latest.job)

    watch = Watch(transport, (run.directory,), probe=probe, state=_state_of(run))
    return watch


def watch_job(transport: Transport, identity: str) -> Watch:
    """Watch a job of Slurm that something else submitted, perhaps for somebody else.

    Raises:
        InputError: there is no such job.
        TransportError: Slurm gave no answer, or is not here.
    """
    from launcher.clusters.slurm.client import SlurmClient
    from launcher.clusters.slurm.external_jobs import ExternalJobLogs, JobProbe, describe
    from launcher.monitor.attempts import SlurmRunState

    client = SlurmClient(transport, os.environ)
    places = ExternalJobLogs(transport, describe(client, identity), os.environ)
    asking, paces = JobProbe(client, identity), _Paces(transport)

    def probe() -> JobChanged | None:
        asking.every_s = paces.every_s(in_front=watch.in_front)
        return asking()

    watch = Watch(transport, places=places, probe=probe, state=SlurmRunState())
    return watch


@dataclass(slots=True)
class _Paces:
    """How often the site's controller may be asked; looked up when it is asked for the first time."""

    transport: Transport
    known: tuple[float, float] | None = None

    def every_s(self, *, in_front: bool) -> float:
        """Return the seconds between two questions."""
        if self.known is None:
            from launcher.sites import site_here

            site = site_here(self.transport, os.environ)
            self.known = (site.front_s, site.behind_s)
        return self.known[0 if in_front else 1]


def _state_of(run: Run) -> RunState:
    if run.spec.cluster == "slurm":
        from launcher.monitor.attempts import SlurmRunState

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
    if watch.state.settled and not watch.problem:
        save_summary(transport, run, summary)
    return summary
