"""Stopping the jobs of runs: once, waited for, and only what is theirs."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest

from launcher.errors import LaunchError, RefusedError, UnreachableError
from launcher.transports.base import Completed
from tests.slurm.records import job
from tests.slurm.scripted_machine import (
    DOWN,
    SILENT,
    Clock,
    Machine,
    at,
    listed,
    new,
    printed,
    recorded,
)


def test_all_jobs_of_a_run_are_stopped_and_waited_for(tmp_path: Path, clock: Clock) -> None:
    running = printed("5|RUNNING|1|1|1|n|None|x\n6|PENDING|1|1|1||None|x\n")
    half = printed("5|CANCELLED|1|1|1|n|None|x\n6|PENDING|1|1|1||None|x\n")
    over = printed("5|CANCELLED|1|1|1|n|None|x\n")
    machine = Machine(squeue=[running, running, DOWN, half, over])
    refused = job("7", "dt-7").model_copy(update={"refused": "no"})
    run = new(tmp_path, machine, job("5", "dt-5"), job("6", "dt-6"), refused)
    stopped = at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert ("scancel", "5", "6") in machine.asked
    assert machine.count("scancel") == 1
    assert [one.cancel_requested is not None for one in stopped.jobs] == [True, True, False]
    assert all(one.cancel_requested.tzinfo is UTC for one in stopped.jobs if one.cancel_requested)
    assert recorded(run) == stopped.jobs
    assert clock.slept == [2.0] * 3


def test_no_answer_is_not_that_a_job_has_ended(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[DOWN, DOWN, DOWN, printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert clock.slept == [2.0] * 2


def test_a_job_that_is_known_by_its_token_alone_is_looked_for_and_stopped(
    tmp_path: Path, clock: Clock
) -> None:
    machine = Machine(squeue=[listed("9", "dt-x"), printed("")])
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert ("scancel", "9") in machine.asked


def test_nothing_to_stop(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    assert at(tmp_path, machine, clock).cancel(run, run.jobs[0]).jobs == run.jobs
    assert machine.count("scancel") == 0


def test_without_an_answer_to_scancel_nothing_is_recorded(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(scancel=[DOWN])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(UnreachableError, match="no answer to scancel"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert recorded(run)[0].cancel_requested is None
    machine.answers["scancel"] = [SILENT]
    with pytest.raises(UnreachableError, match="scancel: no message, exit code 1"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])


def test_what_scancel_refuses_is_told(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(scancel=[Completed(1, "", "scancel: error: Kill job error: Access denied")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(RefusedError, match="Access denied"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])


def test_an_interrupt_waits_until_the_stop_is_recorded(tmp_path: Path, clock: Clock) -> None:
    def scancel(argv: Sequence[str]) -> Completed:
        signal.raise_signal(signal.SIGINT)
        return printed("")

    machine = Machine(scancel=[scancel], squeue=[printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(KeyboardInterrupt):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert recorded(run)[0].cancel_requested is not None


def test_a_job_that_does_not_end(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[printed("5|RUNNING|1|1|1|n|None|x\n6|COMPLETING|1|1|1|n|None|x\n")])
    run = new(tmp_path, machine, job("5", "dt-5"), job("6", "dt-6"))
    with pytest.raises(LaunchError) as raised:
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert raised.value.what == "job 5, 6 did not end within 90 s of scancel"
    assert raised.value.where == Path(run.directory)
    assert "squeue" in raised.value.fix
    assert clock.slept == [2.0] * 46
