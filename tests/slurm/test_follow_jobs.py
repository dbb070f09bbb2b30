"""Following the jobs of runs: which questions Slurm is asked, and what its answers are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import ValidationError

from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.logs.events import JobState
from launcher.runs import SUMMARY, Job
from tests.slurm.records import job
from tests.slurm.scripted_machine import (
    DOWN,
    Clock,
    Machine,
    at,
    listed,
    new,
    printed,
    recorded,
)


def test_a_run_whose_jobs_were_all_refused(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine, job("dt-1").model_copy(update={"refused": "no"}))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.reason) == (JobState.FAILED, "no")


def test_a_run_without_a_job(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine)
    assert at(tmp_path, machine, clock).state(run, job("1")) is None
    assert at(tmp_path, machine, clock).state(run, job("1")) is None


def test_a_refused_link_does_not_count(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[listed("1", "dt-a", "RUNNING")])
    refused = job("dt-b", "dt-b").model_copy(update={"refused": "no"})
    run = new(tmp_path, machine, job("1", "dt-a"), refused)
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.job) == (JobState.RUNNING, "1")
    assert machine.count("sacct") == 0


def test_a_token_is_taken_for_its_job_only(tmp_path: Path, clock: Clock) -> None:
    """Neither a number that is known nor what was refused is given another number."""
    machine = Machine(squeue=[printed("9|RUNNING|1|1|1|n|None|dt-a dt-b dt-c\n")])
    refused = job("dt-b", "dt-b").model_copy(update={"refused": "no"})
    old = job("5", "dt-a")
    run = new(tmp_path, machine, old, refused, job("dt-c", "dt-c"))
    at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert [one.id for one in recorded(run)] == ["5", "dt-b", "9"]
    with pytest.raises(ValidationError, match="id"):  # a record without an id is damaged
        job("", "")


def test_accounting_is_asked_for_what_left_the_queue_of_every_open_run(tmp_path: Path, clock: Clock) -> None:
    rows = "5|TIMEOUT|1|1|9|n1|0:0|sbatch\n6|COMPLETED|1|1|9|n1|0:0|sbatch\n"
    machine = Machine(squeue=[printed("8|RUNNING|1|1|1|n|None|x\n")], sacct=[printed(rows)])
    run = new(tmp_path, machine, job("5", "dt-5"), name="one")
    new(tmp_path, machine, job("6", "dt-6"), name="two")
    new(tmp_path, machine, job("8", "dt-8"), name="running")
    new(tmp_path, machine, job("dt-7", "dt-7").model_copy(update={"refused": "no"}), name="refused")
    done = new(tmp_path, machine, job("9", "dt-9"), name="done")
    Path(done.directory, SUMMARY).write_text("{}")
    for name in ("a-done", "zz-done"):
        again = new(tmp_path, machine, job("9", "dt-9"), name=name)
        Path(again.directory, SUMMARY).write_text("{}")
    broken = new(tmp_path, machine, job("11", "dt-11"), name="broken")
    Path(broken.directory, "run.json").write_text("{")
    local = new(tmp_path, machine, job("10", "dt-10"), name="local")
    text = Path(local.directory, "run.json").read_text()
    Path(local.directory, "run.json").write_text(text.replace('"slurm"', '"local"', 1))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.word) == (JobState.FAILED, "TIMEOUT")
    (asked,) = [argv for argv in machine.asked if argv[0] == "sacct"]
    assert sorted(asked[asked.index("-j") + 1].split(",")) == ["5", "6"]


def test_a_run_whose_jobs_are_listed_is_no_reason_to_ask_accounting(tmp_path: Path, clock: Clock) -> None:
    """Also where another run has jobs that left the queue: who looks at that one asks."""
    machine = Machine(squeue=[printed("8|RUNNING|1|1|1|n|None|x\n")])
    new(tmp_path, machine, job("5", "dt-5"), name="left")
    run = new(tmp_path, machine, job("8", "dt-8"), name="running")
    at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert machine.count("sacct") == 0


def test_a_run_that_has_a_summary_is_asked_for_when_it_is_looked_at(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[printed("")], sacct=[printed("5|FAILED|1|1|9|n1|3:0|sbatch\n")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    Path(run.directory, SUMMARY).write_text("{}")
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert answer.exit_code == "3:0"


def test_accounting_finds_a_token_that_left_the_queue(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(
        squeue=[printed("")], sacct=[printed("5|COMPLETED|1|1|9|n1|0:0|sbatch --comment=distill-tui dt-x\n")]
    )
    lost = Job(id="dt-x", token="dt-x", submitted=datetime.now(UTC))
    run = new(tmp_path, machine, lost)
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.job) == (JobState.COMPLETED, "5")
    assert recorded(run)[0].id == "5"


def test_accounting_that_is_down_does_not_make_a_lost_submission_a_failure(
    tmp_path: Path, clock: Clock
) -> None:
    """Submitting once depends on it: the job may be there all the same."""
    machine = Machine(squeue=[printed("")], sacct=[DOWN])
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.over) == (JobState.UNKNOWN, False)


def test_a_controller_without_an_answer_is_no_reason_to_ask_accounting(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[DOWN])
    run = new(tmp_path, machine, job("5", "dt-5"))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert answer.state is JobState.UNKNOWN
    assert machine.count("sacct") == 0


def test_what_was_submitted_after_the_last_question_is_asked_for_at_once(
    tmp_path: Path, clock: Clock
) -> None:
    machine = Machine(squeue=[printed(""), listed("6", "dt-6")])
    slurm = at(tmp_path, machine, clock)
    first = new(tmp_path, machine, job("5", "dt-5"), name="first")
    slurm.state(first, first.jobs[0])
    later = Job(id="6", token="dt-6", submitted=datetime.now(UTC))
    second = new(tmp_path, machine, job("5", "dt-5"), later, name="second")
    answer = slurm.state(second, second.jobs[0])
    assert answer is not None
    assert (answer.state, answer.job) == (JobState.QUEUED, "6")
    slurm.state(first, first.jobs[0])
    assert machine.count("squeue") == 2


def test_how_often_slurm_is_asked_is_told_to_the_queue(tmp_path: Path) -> None:
    slurm = SlurmCluster(Machine(), str(tmp_path), {"USER": "someone"}, every_s=15.0)
    assert (slurm.queue.every_s, slurm.queue.root) == (15.0, str(tmp_path))
    assert (slurm.client.user, slurm.client.transport) == ("someone", slurm.transport)
    assert SlurmCluster(Machine(), str(tmp_path)).every_s == 30.0
