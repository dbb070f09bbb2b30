"""Stopping the jobs of runs: once, waited for, and only what is theirs."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.clusters.slurm.stopping import scancel_command
from launcher.errors import LaunchError, RefusedError, UnreachableError
from launcher.job_records import StopRequestedError, record_intent, refreshed, request_stop
from launcher.transports.base import Completed
from tests.slurm.records import job, user_environment
from tests.slurm.scripted_machine import (
    DOWN,
    SILENT,
    Clock,
    Machine,
    at,
    listed,
    new,
    plan_of,
    printed,
    recorded,
)


def queue_of(*states: tuple[str, str]) -> Completed:
    """Return squeue's list of the run's jobs, each with its token."""
    return printed("".join(f"{number}|{state}|1|1|1|n|None|dt-{number}\n" for number, state in states))


RUNNING = queue_of(("5", "RUNNING"))


def test_all_jobs_of_a_run_are_stopped_and_waited_for(tmp_path: Path, clock: Clock) -> None:
    running = queue_of(("5", "RUNNING"), ("6", "PENDING"))
    half = queue_of(("5", "CANCELLED"), ("6", "PENDING"))
    over = queue_of(("5", "CANCELLED"))
    machine = Machine(squeue=[running, running, DOWN, half, over])
    refused = job("7", "dt-7").model_copy(update={"refused": "no"})
    run = new(tmp_path, machine, job("5", "dt-5"), job("6", "dt-6"), refused)
    stopped = at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert ("scancel", "--", "5", "6") in machine.asked
    assert machine.count("scancel") == 1
    assert [one.cancel_requested is not None for one in stopped.jobs] == [True, True, False]
    assert all(
        one.cancel_requested.utcoffset() == timedelta(0) for one in stopped.jobs if one.cancel_requested
    )
    assert recorded(run) == stopped.jobs
    assert clock.slept == [2.0] * 3


def test_no_answer_is_not_that_a_job_has_ended(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[RUNNING, DOWN, DOWN, printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert clock.slept == [2.0] * 2


def test_a_job_that_is_known_by_its_token_alone_is_looked_for_and_stopped(
    tmp_path: Path, clock: Clock
) -> None:
    machine = Machine(squeue=[listed("9", "dt-x"), printed("")])
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert ("scancel", "--", "9") in machine.asked


def test_nothing_to_stop(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    assert at(tmp_path, machine, clock).cancel(run, run.jobs[0]).jobs == run.jobs
    assert machine.count("scancel") == 0


def test_without_an_answer_to_scancel_nothing_is_recorded(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(scancel=[DOWN], squeue=[RUNNING])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(UnreachableError, match="no answer to scancel"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert recorded(run)[0].cancel_requested is None
    machine.answers["scancel"] = [SILENT]
    with pytest.raises(UnreachableError, match="scancel: no message, exit code 1"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])


def test_what_scancel_refuses_is_told(tmp_path: Path, clock: Clock) -> None:
    denied = Completed(1, "", "scancel: error: Kill job error: Access denied")
    machine = Machine(scancel=[denied], squeue=[RUNNING])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(RefusedError, match="Access denied"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])


def test_an_interrupt_waits_until_the_stop_is_recorded(tmp_path: Path, clock: Clock) -> None:
    def scancel(argv: Sequence[str]) -> Completed:
        signal.raise_signal(signal.SIGINT)
        return printed("")

    machine = Machine(scancel=[scancel], squeue=[RUNNING, printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(KeyboardInterrupt):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert recorded(run)[0].cancel_requested is not None


def test_a_job_that_does_not_end(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[queue_of(("5", "RUNNING"), ("6", "COMPLETING"))])
    run = new(tmp_path, machine, job("5", "dt-5"), job("6", "dt-6"))
    with pytest.raises(LaunchError) as raised:
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert raised.value.what == "job 5, 6 did not end within 90 s of scancel"
    assert raised.value.where == Path(run.directory)
    assert "squeue" in raised.value.fix
    assert clock.slept == [2.0] * 46


def test_a_submission_that_is_under_way_is_waited_for_and_its_job_stopped(
    tmp_path: Path, clock: Clock
) -> None:
    """Until sbatch has answered, Slurm's list without the job says nothing."""
    none, late = printed(""), listed("9", "dt-x", "RUNNING")
    machine = Machine(squeue=[none, none, none, late, none])
    intent = job("dt-x", "dt-x").model_copy(update={"submitted": datetime.now(UTC)})
    run = new(tmp_path, machine, intent)
    stopped = at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert machine.asked.count(("scancel", "--", "9")) == 1
    assert [one.id for one in stopped.jobs] == ["9"]
    assert clock.slept == [2.0] * 3


@pytest.mark.parametrize("answer", [printed(""), DOWN])
def test_an_unclear_submission_is_never_called_stopped(
    tmp_path: Path, clock: Clock, answer: Completed
) -> None:
    machine = Machine(squeue=[answer])
    intent = job("dt-x", "dt-x").model_copy(update={"submitted": datetime.now(UTC)})
    run = new(tmp_path, machine, intent)
    with pytest.raises(UnreachableError, match="not known to have stopped"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert sum(clock.slept) > 90


def test_a_silent_controller_is_reported_while_it_is_asked_again(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[DOWN])
    run = new(tmp_path, machine, job("5", "dt-5"))
    lines: list[str] = []
    cluster = SlurmCluster(
        machine, str(tmp_path), user_environment(tmp_path), sleep=clock.sleep, say=lines.append
    )
    with pytest.raises(UnreachableError, match="no job got scancel"):
        cluster.cancel(run, run.jobs[0])
    assert "question 2, asking again" in lines[1]


def test_a_line_of_squeue_that_cannot_be_read_is_no_proof_of_an_end(tmp_path: Path, clock: Clock) -> None:
    garbage = printed("5|RUNN\n6|RUNNING|1|1|1|n|None|other\n")
    machine = Machine(squeue=[RUNNING, garbage, garbage, printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert clock.slept == [2.0] * 2


def test_a_job_of_that_number_without_the_token_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[printed("5|RUNNING|1|1|1|n|None|distill-tui dt-55\n")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(LaunchError, match="job 5 was left alone"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert machine.count("scancel") == 0


@pytest.mark.parametrize("text", ["--user=bob", "--me", "--signal=KILL", "4711,4712", "", "5 6", "5\n", "٤"])
def test_what_is_no_job_id_never_reaches_scancel(text: str) -> None:
    with pytest.raises(LaunchError, match="invalid job id"):
        scancel_command(["5", text])


def test_links_of_a_chain_are_not_submitted_after_a_cancel(tmp_path: Path, clock: Clock) -> None:
    """The request stays in the record, whatever the submission writes after it."""

    def cancelled_meanwhile(argv: Sequence[str]) -> Completed:
        request_stop(machine, run)
        return printed("1\n")

    machine = Machine(sbatch=[cancelled_meanwhile])
    run = new(tmp_path, machine)
    with pytest.raises(StopRequestedError, match="job 1 got scancel"):
        at(tmp_path, machine, clock).submit(run, plan_of(run, "dt-a"))
    assert ("scancel", "--", "1") in machine.asked
    (only,) = recorded(run)
    assert only.cancel_requested is not None
    with pytest.raises(StopRequestedError, match="not submitted"):
        at(tmp_path, machine, clock).submit(run, plan_of(run, "dt-b"))
    assert machine.count("sbatch") == 1
    assert refreshed(machine, run).cancel_requested is not None


def test_a_run_that_was_cancelled_before_goes_on(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[printed("2\n")])
    run = request_stop(machine, new(tmp_path, machine, job("1", "dt-1")))
    assert [one.id for one in at(tmp_path, machine, clock).submit(run, plan_of(run)).jobs] == ["1", "2"]


def test_two_windows_lose_no_record(tmp_path: Path) -> None:
    """Each has read the run before the other wrote."""
    machine = Machine()
    run = new(tmp_path, machine)
    record_intent(machine, run, job("dt-a", "dt-a"))
    record_intent(machine, run, job("dt-b", "dt-b"))
    assert [one.id for one in recorded(run)] == ["dt-a", "dt-b"]
