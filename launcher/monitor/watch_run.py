"""Watches of runs and of external jobs: their logs, with the cluster that has their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.clusters.registry import FRONT_S, cluster_of, external_job
from launcher.errors import TransportError
from launcher.logs.events import JobChanged
from launcher.logs.gpu_samples import peak_of_table
from launcher.monitor.state import RunState
from launcher.monitor.summary import state_json
from launcher.monitor.watch import Watch
from launcher.runs import Run, load
from launcher.saved_summary import load_summary, save_summary
from launcher.transports.base import Transport

_TABLE_BYTES = 64 * 1024 * 1024
"""Bytes of tables of GPU use that are read at the end of a run: 24 days of a node with eight GPUs."""


def watch_run(transport: Transport, run: Run) -> Watch:
    """Watch a run by its directory: its logs, and its cluster where that can be asked."""
    intervals = _PollIntervals(transport)

    def probe() -> JobChanged | None:
        latest = load(transport, run.directory)  # another window may have cancelled it
        if latest.job is None:
            return None
        every_s = FRONT_S if run.spec.cluster == "local" else intervals.every_s(in_front=watch.in_front)
        return cluster_of(latest, transport, every_s).state(latest, latest.job)

    # A rehearsal, which has no checkout, runs in its own directory.
    working_directory = run.spec.checkout or run.directory
    watch = Watch(
        transport,
        (run.directory,),
        probe=probe,
        state=_state_of(run),
        working_directories=(working_directory,),
    )
    return watch


def watch_job(transport: Transport, identity: str) -> Watch:
    """Watch a Slurm job that something else submitted, possibly another user's.

    Raises:
        InputError: there is no such job.
        TransportError: Slurm does not answer, or is not installed.
    """
    from launcher.monitor.attempts import SlurmRunState

    job, intervals = external_job(transport, transport.environment(), identity), _PollIntervals(transport)

    def probe() -> JobChanged | None:
        return job.probe(intervals.every_s(in_front=watch.in_front))

    watch = Watch(transport, locate=job.locations, probe=probe, state=SlurmRunState())
    return watch


@dataclass(slots=True)
class _PollIntervals:
    """Intervals of queries that the site allows; looked up on first use."""

    transport: Transport
    cached: tuple[float, float] | None = None

    def every_s(self, *, in_front: bool) -> float:
        """Return the seconds between two queries."""
        if self.cached is None:
            from launcher.sites import site_here

            site = site_here(self.transport, self.transport.environment())
            self.cached = (site.front_s, site.behind_s)
        return self.cached[0 if in_front else 1]


def _state_of(run: Run) -> RunState:
    state = _empty_state(run)
    if run.spec.cluster == "slurm":
        state.resume_hint = f"`distill-tui resume {run.spec.id}` continues there"
    return state


def _empty_state(run: Run) -> RunState:
    if run.spec.cluster == "slurm":
        from launcher.monitor.attempts import SlurmRunState

        links = run.spec.slurm.chain if run.spec.slurm is not None else 1
        return SlurmRunState(plan_max_steps=run.spec.max_steps, links=links)
    return RunState(plan_max_steps=run.spec.max_steps)


def summary_of(transport: Transport, run: Run) -> Mapping[str, Any]:
    """Return a run's state as JSON: as saved at its end, else from its logs (and saved if it has ended)."""
    saved = load_summary(transport, run)
    if saved is not None:
        return saved
    watch = watch_run(transport, run)
    watch.catch_up()
    return summarise(transport, run, watch)


def _gpu_memory(transport: Transport, watch: Watch) -> dict[str, float] | None:
    """Return the largest memory in use on a GPU of a run; None where its tables say nothing."""
    peaks, left = [], _TABLE_BYTES
    for path, entry in watch.gpu_tables():
        left -= entry.size
        if left < 0:
            break
        try:
            peaks.append(peak_of_table(transport.read(path).decode(errors="replace")))
        except TransportError:
            continue
    peak = max(filter(None, peaks), default=None)
    return {"peak_gib": round(peak[0], 2), "total_gib": round(peak[1], 2)} if peak is not None else None


def summarise(transport: Transport, run: Run, watch: Watch) -> dict[str, Any]:
    """Return a watched run's state as JSON; that of a run that has ended is saved in its directory."""
    summary = state_json(run.spec.id, watch.state)
    if watch.state.settled and not watch.problem:
        summary["gpu_memory"] = _gpu_memory(transport, watch)
        save_summary(transport, run, summary)
    return summary
