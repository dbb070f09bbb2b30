"""Jobs that something else submitted, as accounting tells of them: with commands that answer in our stead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.external_jobs import ExternalJob, describe
from launcher.errors import InputError
from launcher.transports.local import LocalTransport


def client(root: Path, *answers: str) -> SlurmClient:
    """Return a client of a Slurm whose controller has forgotten the job, and whose accounting answers so."""
    (root / "asked").touch()
    for number, answer in enumerate(answers):
        (root / f"answer{number}").write_text(answer)
    programs = {
        "scontrol": "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1",
        "sacct": f'n=$(wc -l <"{root}/asked"); echo >>"{root}/asked"; cat "{root}/answer$n"',
    }
    for name, text in programs.items():
        (root / name).write_text(f"#!/bin/bash\n{text}\n")
        (root / name).chmod(0o755)
    environment = {"PATH": f"{root}:{os.environ['PATH']}", "USER": "me"}
    return SlurmClient(LocalTransport(), environment)


def test_accounting_is_asked_again_until_it_knows_the_directory(tmp_path: Path) -> None:
    waited: list[float] = []
    slurm = client(
        tmp_path,
        "COMPLETED|me||\n",
        "COMPLETED|me|/p/scratch/me|sbatch -o out-%j.txt job.sh\n",
    )
    job = describe(slurm, "7", pause=waited.append)
    assert job == ExternalJob("7", "me", "/p/scratch/me", ("/p/scratch/me/out-7.txt",))
    assert waited == [1.0]


def test_what_accounting_never_knows_is_not_waited_for_long(tmp_path: Path) -> None:
    waited: list[float] = []
    job = describe(client(tmp_path, *["COMPLETED|me||\n"] * 3), "7", pause=waited.append)
    assert (job.user, job.directory) == ("me", "")
    assert sum(waited) == 3.0


def test_a_job_that_nobody_knows_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Slurm knows no job 7"):
        describe(client(tmp_path, ""), "7")
