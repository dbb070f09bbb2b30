"""The order to stop a run, for commands and screens alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from launcher.clusters.registry import cluster_of
from launcher.errors import LaunchError
from launcher.job_records import request_stop
from launcher.ownership import require_own
from launcher.runs import Run, load
from launcher.transports.base import Transport


def stop_command(run: Run) -> tuple[str, ...]:
    """Return the command that stops a run's jobs, for showing it."""
    if run.spec.cluster == "slurm":
        ids = [job.id for job in run.jobs if not job.refused and job.id != job.token]
        return ("scancel", "--", *ids)
    pids = [str(job.process.pid) for job in run.jobs[-1:] if job.process is not None]
    return ("kill", "-TERM", "--", *pids)


def stop_run(
    transport: Transport, directory: str, *, trust: bool = False, say: Callable[[str], None] | None = None
) -> bool:
    """Stop a run and wait until Slurm or /proc says that its jobs have ended.

    Args:
        transport: The run's machine.
        directory: The run's directory.
        trust: The user has agreed to an order about a run that others can write.
        say: Gets what a long wait waits for.

    Returns:
        Whether a job was stopped; False where none was left to stop.

    Raises:
        ForeignRunError: the run is another user's, or others can write it.
        LaunchError: it does not stop, or is another user's and none of its jobs is the user's.
        TransportError: its machine gives no answer; it may still run.
    """
    run = load(transport, directory)
    require_own(transport, run, stop_command(run), trust=trust)
    if run.job is None:
        request_stop(transport, run)
        run = load(transport, directory)
        if run.job is None:
            return False
    before = _requests(run)
    run = cluster_of(run, transport, say=say).cancel(run, run.jobs[-1])
    stopped = bool(_requests(run) - before)
    if not stopped:
        _require_none_of_others(transport, run)
    return stopped


def _require_none_of_others(transport: Transport, run: Run) -> None:
    """Refuse to call another user's run stopped: Slurm's list of one's own jobs does not have its jobs."""
    owner = transport.ownership(run.directory)
    if owner is not None and not owner.is_own:
        raise LaunchError(
            f"no job of {run.spec.id} was stopped: none of its jobs is yours",
            where=Path(run.directory),
            fix=f"The directory belongs to {owner.user}, who can stop them.",
        )


def _requests(run: Run) -> set[tuple[str, datetime]]:
    return {
        (job.token or job.id, job.cancel_requested) for job in run.jobs if job.cancel_requested is not None
    }
