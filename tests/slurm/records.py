"""Runs of Slurm jobs, as their directories hold them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from launcher.clusters.slurm.jobs import JobRecord, job_change
from launcher.runs import Job, RecipeRef, Run, RunSpec, RunStore, SlurmRequest
from launcher.transports.base import Transport


def run_of(tmp_path: Path, transport: Transport, jobs: tuple[Job, ...], name: str = "r") -> Run:
    spec = RunSpec(
        id=name, name=name, kind="rehearsal", created=datetime(2026, 1, 1, tzinfo=UTC), user="u", host="h",
        recipe=RecipeRef(source="x"), cluster="slurm", nodes=1, gpus_per_node=4,
        slurm=SlurmRequest(partition="p", time_s=60), schema=1,
    )  # fmt: skip
    run = RunStore(transport, str(tmp_path)).create(spec, {})
    return Run(run.directory, run.spec, jobs)


def job(identity: str, token: str = "dt-1") -> Job:
    return Job(id=identity, token=token, submitted=datetime(2026, 1, 1, tzinfo=UTC))


def user_environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user with a state directory of their own."""
    return {"USER": "u", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def pending_reason(reason: str) -> str:
    """Return the text for a job that waits for a reason."""
    return job_change(JobRecord("7", "PENDING", reason=reason)).reason
