"""Jobs that something else submitted, as accounting tells of them: with commands that answer in our stead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.external_jobs import ExternalJob, ExternalJobLogs, describe
from launcher.errors import InputError
from launcher.logs.roles import holds_job_id
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


def test_the_logs_of_other_launchers_are_found_by_the_job_s_id(tmp_path: Path) -> None:
    for name in ("run_14/ray-driver", "run_142/ray-driver.log", "logs/14.d/ray-head.log", "logs/other/x.log"):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text("x\n")
    for name in ("distill-14.out", "distill-142.out", "14.sh"):
        (tmp_path / name).write_text("x\n")
    find = ExternalJobLogs(LocalTransport(), ExternalJob("14", "me", str(tmp_path)), {})
    locations = find()
    assert locations.directories == {f"{tmp_path}/run_14": "run_14/", f"{tmp_path}/logs/14.d": "14.d/"}
    assert [(log.name, log.role.value) for log in locations.files] == [("distill-14.out", "slurm")]
    assert (locations.missing, locations.working_directory) == ((), str(tmp_path))
    (tmp_path / "run_14b").mkdir()
    os.utime(tmp_path, (1, 1))  # it has changed: listed again
    assert f"{tmp_path}/run_14b" in find().directories
    # Where the usual directory is, nothing else is looked for.
    (tmp_path / "14-logs").mkdir()
    assert list(find().directories) == [f"{tmp_path}/14-logs"]


@pytest.mark.parametrize(
    ("name", "held"),
    [("14-logs", True), ("run_14", True), ("x.14.1", True), ("142", False), ("214", False), ("a14b", True)],
)
def test_a_name_with_the_id_of_a_job(name: str, held: bool) -> None:
    assert holds_job_id(name, "14") is held
