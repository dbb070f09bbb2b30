"""Jobs on a cluster that keeps no accounts, and submissions while Slurm is busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.clusters.slurm.external_jobs import JobProbe, describe
from launcher.errors import InputError, RefusedError, UnreachableError
from launcher.logs.events import JobState
from launcher.plan import LaunchPlan
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from tests.slurm.records import job, run_of, user_environment

DISABLED = Completed(1, "", "Slurm accounting storage is disabled\n")
EMPTY = Completed(0, "", "")
GONE = Completed(1, "", "slurm_load_jobs error: Invalid job id specified\n")


class Answering(LocalTransport):
    """A machine on which Slurm's commands answer as they are told to."""

    def __init__(self, **answers: Completed) -> None:
        super().__init__()
        self.answers = answers

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        return self.answers[argv[0]]


def cluster_of(tmp_path: Path, transport: LocalTransport) -> SlurmCluster:
    return SlurmCluster(transport, str(tmp_path), user_environment(tmp_path), sleep=lambda _: None)


def test_a_vanished_job_is_judged_by_its_logs(tmp_path: Path) -> None:
    transport = Answering(squeue=EMPTY, sacct=DISABLED)
    run = run_of(tmp_path, transport, (job("4711"),))
    answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.over, answer.unanswered) == (JobState.UNKNOWN, True, "")
    assert "keeps no accounts" in answer.reason


def test_accounting_that_gives_no_answer_decides_nothing(tmp_path: Path) -> None:
    down = Completed(1, "", "sacct: error: Problem talking to the database: Connection refused")
    transport = Answering(squeue=EMPTY, sacct=down)
    run = run_of(tmp_path, transport, (job("4711"),))
    answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.over, bool(answer.unanswered)) == (False, True)


def test_a_job_of_others_that_vanished() -> None:
    client = SlurmClient(Answering(squeue=GONE, sacct=DISABLED, scontrol=GONE), {"USER": "u"})
    answer = JobProbe(client, "4711")()
    assert answer is not None
    assert (answer.state, answer.over) == (JobState.UNKNOWN, True)
    with pytest.raises(InputError, match="keeps no accounts"):
        describe(client, "4711")


PLAN = LaunchPlan("dt-2", ("sbatch", "job.sh"), ".", {}, (), "")
AGAIN = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying.\n"
GAVE_UP = AGAIN + "sbatch: error: Batch job submission failed: Resource temporarily unavailable\n"


def test_sbatch_gave_up_and_the_job_is_not_there(tmp_path: Path) -> None:
    transport = Answering(sbatch=Completed(1, "", GAVE_UP), squeue=EMPTY)
    run = run_of(tmp_path, transport, ())
    with pytest.raises(RefusedError, match="takes no jobs at the moment: Resource temporarily") as caught:
        cluster_of(tmp_path, transport).submit(run, PLAN)
    assert "submit again in some minutes" in caught.value.fix


def test_sbatch_gave_up_and_the_job_is_there(tmp_path: Path) -> None:
    row = "99|PENDING|1|1|0||Priority|distill-tui dt-2"
    transport = Answering(sbatch=Completed(1, "", GAVE_UP), squeue=Completed(0, row, ""))
    run = run_of(tmp_path, transport, ())
    assert cluster_of(tmp_path, transport).submit(run, PLAN).jobs[-1].id == "99"


def test_an_end_without_a_verdict_stays_unclear(tmp_path: Path) -> None:
    transport = Answering(sbatch=Completed(1, "", AGAIN), squeue=EMPTY)
    run = run_of(tmp_path, transport, ())
    with pytest.raises(UnreachableError, match="not clear whether"):
        cluster_of(tmp_path, transport).submit(run, PLAN)
