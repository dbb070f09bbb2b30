"""The kinds of cluster, by name: the only module that imports a kind."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.clusters.base import Cluster, Scheduler
from launcher.clusters.shell_defaults import environment_of_run
from launcher.runs import Run
from launcher.transports.base import Transport, is_remote

if TYPE_CHECKING:
    from launcher.clusters.inventory import Detection
    from launcher.clusters.job_list import JobListing
    from launcher.logs.events import JobChanged
    from launcher.logs.sources import LogLocations

FRONT_S = 30.0
"""Seconds between two questions to a controller, where no site says otherwise."""


def cluster_of(
    run: Run, transport: Transport, every_s: float = FRONT_S, say: Callable[[str], None] | None = None
) -> Cluster:
    """Return the cluster that has a run's jobs.

    Args:
        run: The run.
        transport: Its machine.
        every_s: Seconds between two questions to the cluster.
        say: Gets what a long wait waits for, as lines of text.
    """
    match run.spec.cluster:
        case "local":
            from launcher.clusters.local import LocalCluster

            return LocalCluster(transport, environment=transport.environment())
        case "slurm":
            from launcher.clusters.slurm.cluster import SlurmCluster

            root = str(Path(run.directory).parent)
            environment = environment_of_run(transport.environment(), run.spec)
            return SlurmCluster(transport, root, environment, every_s=every_s, say=say or (lambda _: None))


def slurm_cluster(transport: Transport, root: str, environment: Mapping[str, str]) -> Scheduler:
    """Return the Slurm cluster that a transport's machine belongs to; `root` is where runs are kept."""
    from launcher.clusters.slurm.cluster import SlurmCluster

    return SlurmCluster(transport, root, environment)


def detect(
    transport: Transport,
    environment: Mapping[str, str],
    cache: Path,
    *,
    refresh: bool = False,
    budgets_s: float | None = None,
) -> Detection:
    """Return what the cluster of a transport's machine offers; answers are cached for hours.

    `budgets_s`: how long what is left of budgets is waited for; None: to its end.

    Raises:
        TransportError: there is no Slurm here.
        InputError: the user's file about the site cannot be read.
    """
    from launcher.clusters.slurm.detect import detect as detect_slurm

    return detect_slurm(transport, environment, cache, refresh=refresh, budgets_s=budgets_s)


def accounting(
    transport: Transport, environment: Mapping[str, str], ids: Sequence[str], *, within_s: float
) -> dict[str, tuple[dict[str, str], ...]]:
    """Return accounting's fields of jobs by id, for each of a job's starts.

    Raises:
        TransportError: accounting gave no answer.
        RefusedError: it refused.
    """
    from launcher.clusters.slurm.accounting import accounted
    from launcher.clusters.slurm.client import SlurmClient

    client = SlurmClient(transport, environment)
    return accounted(client, [job for job in ids if job.isdecimal()], timeout_s=within_s)


@dataclass(frozen=True, slots=True)
class ExternalJobWatch:
    """A job of another program: its logs, and its state."""

    locations: Callable[[], LogLocations]
    probe: Callable[[float], JobChanged | None]
    """Asks the cluster, at most once in so many seconds."""


def external_job(transport: Transport, environment: Mapping[str, str], identity: str) -> ExternalJobWatch:
    """Return the watch of a job by its number.

    Raises:
        InputError: there is no such job.
        TransportError: Slurm gave no answer, or is not here.
    """
    from launcher.clusters.slurm.client import SlurmClient
    from launcher.clusters.slurm.external_jobs import ExternalJobLogs, JobProbe, describe

    client = SlurmClient(transport, environment)
    logs = ExternalJobLogs(transport, describe(client, identity), environment)
    probe = JobProbe(client, identity)

    def ask(every_s: float) -> JobChanged | None:
        probe.every_s = every_s
        return probe()

    return ExternalJobWatch(logs, ask)


def own_jobs(
    transport: Transport,
    root: str,
    environment: Mapping[str, str],
    every_s: float = FRONT_S,
    *,
    refresh: bool = False,
) -> JobListing | None:
    """Return the user's jobs on this machine's cluster; None where there is no scheduler, or none is set up.

    The answer is the one that the followed runs of `root` share: squeue runs once in `every_s` seconds.
    """
    far = is_remote(transport)
    if not far and shutil.which("squeue", path=environment.get("PATH")) is None:
        return None
    from launcher.clusters.slurm.client import SlurmClient
    from launcher.clusters.slurm.messages import NOT_CONFIGURED
    from launcher.clusters.slurm.own_jobs import own_jobs as slurm_jobs
    from launcher.clusters.slurm.queue import Queue

    listing = slurm_jobs(Queue(SlurmClient(transport, environment), root, every_s), refresh=refresh)
    if NOT_CONFIGURED.search(listing.problem) or (far and "cannot be run" in listing.problem):
        return None
    return listing


def cancel_job(transport: Transport, environment: Mapping[str, str], identity: str) -> None:
    """Ask the scheduler to stop a job that another program submitted.

    Raises:
        RefusedError: it refuses.
        TransportError: it gives no answer, or is not here.
    """
    from launcher.clusters.slurm.client import SlurmClient
    from launcher.clusters.slurm.stopping import scancel_command

    SlurmClient(transport, environment).ask(scancel_command([identity]))
