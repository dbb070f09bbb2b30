"""Submitting, following, stopping without a Slurm: whatever the answer, a job is sent once, none is lost."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from launcher.clusters.slurm.client import SUBMIT_TIMEOUT_S
from launcher.errors import RefusedError, TransportError, UnreachableError
from launcher.transports.base import Completed
from tests.slurm.scripted_machine import (
    DOWN,
    DOWN_WITH_A_HINT,
    REFUSED,
    SILENT,
    STRANGE,
    TIMES_OUT,
    Answer,
    Clock,
    Machine,
    at,
    listed,
    new,
    plan_of,
    printed,
    recorded,
)


def test_a_job_that_is_taken_is_recorded_before_and_after(tmp_path: Path, clock: Clock) -> None:
    begun = datetime.now(UTC)

    def sbatch(argv: Sequence[str]) -> Completed:
        (intent,) = recorded(run)
        assert (intent.id, intent.token, intent.link, intent.refused) == ("dt-abc", "dt-abc", 1, "")
        return printed("4711;cluster\n")

    machine = Machine(sbatch=[sbatch])
    run = new(tmp_path, machine)
    plan = plan_of(run)
    submitted = at(tmp_path, machine, clock).submit(run, plan)
    (one,) = submitted.jobs
    assert recorded(run) == (one,)
    assert (one.id, one.token, one.link, one.refused) == ("4711", "dt-abc", 1, "")
    assert begun <= one.submitted <= datetime.now(UTC)
    assert machine.asked == [plan.argv]
    assert machine.with_environment == [{"A": "1"}]
    assert machine.limits["sbatch"] == SUBMIT_TIMEOUT_S
    assert machine.directories["sbatch"] == run.directory
    assert clock.slept == []


def test_links_of_a_chain_are_counted(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[printed("1\n"), printed("2\n")])
    run = new(tmp_path, machine)
    for token in ("dt-a", "dt-b"):
        run = at(tmp_path, machine, clock).submit(run, plan_of(run, token))
    assert [(one.id, one.link, one.token) for one in run.jobs] == [("1", 1, "dt-a"), ("2", 2, "dt-b")]


def test_an_interrupt_waits_until_the_answer_is_recorded(tmp_path: Path, clock: Clock) -> None:
    def sbatch(argv: Sequence[str]) -> Completed:
        signal.raise_signal(signal.SIGINT)
        return printed("4711\n")

    machine = Machine(sbatch=[sbatch])
    run = new(tmp_path, machine)
    with pytest.raises(KeyboardInterrupt):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert [one.id for one in recorded(run)] == ["4711"]


@pytest.mark.parametrize(
    "answer", [DOWN, DOWN_WITH_A_HINT, SILENT, STRANGE, TIMES_OUT, printed("hm\n"), printed("")]
)
@pytest.mark.parametrize("after", [0, 1, 5])
def test_after_an_unclear_answer_the_job_is_found_by_its_token(
    tmp_path: Path, clock: Clock, answer: Answer, after: int
) -> None:
    """It is found however often the controller gives no answer before it does."""
    machine = Machine(sbatch=[answer], squeue=[*[DOWN] * after, listed("4711")])
    run = new(tmp_path, machine)
    submitted = at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert [(one.id, one.token) for one in submitted.jobs] == [("4711", "dt-abc")]
    assert recorded(run) == submitted.jobs
    assert (machine.count("sbatch"), machine.count("squeue")) == (1, after + 1)
    assert clock.slept == [3.0] * after


def test_a_job_that_is_listed_a_little_later_is_found(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[TIMES_OUT], squeue=[listed("1", "dt-other"), listed("4711")])
    run = new(tmp_path, machine)
    assert at(tmp_path, machine, clock).submit(run, plan_of(run)).jobs[0].id == "4711"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (DOWN, "Slurm gave no answer to sbatch: Unable to contact slurm controller (connect failure)"),
        (SILENT, "Slurm gave no answer to sbatch: no message, exit code 1"),
        (TIMES_OUT, "sbatch gave no clear answer"),
        (printed("hm\n"), "sbatch gave no clear answer"),
    ],
)
def test_what_stays_unclear_is_an_intent_not_a_failure(
    tmp_path: Path, clock: Clock, answer: Answer, says: str
) -> None:
    machine = Machine(sbatch=[answer], squeue=[printed("")])
    run = new(tmp_path, machine)
    with pytest.raises(UnreachableError) as raised:
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert raised.value.what == f"it is not clear whether Slurm accepted the job: {says}"
    assert raised.value.where == Path(run.directory)
    assert raised.value.fix == "Do not submit again: `distill-tui watch r` shows whether it runs."
    (one,) = recorded(run)
    assert (one.id, one.token, one.refused) == ("dt-abc", "dt-abc", "")
    assert machine.count("sbatch") == 1
    assert clock.slept == [3.0, 3.0]  # told twice that there is none


def test_a_controller_that_never_answers_is_not_waited_for_for_ever(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[DOWN], squeue=[DOWN])
    run = new(tmp_path, machine)
    with pytest.raises(UnreachableError):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert clock.slept == [3.0] * 15  # 45 s
    assert machine.count("sbatch") == 1


def test_one_answer_that_there_is_none_is_not_enough(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[DOWN], squeue=[printed(""), DOWN, DOWN, printed("")])
    run = new(tmp_path, machine)
    with pytest.raises(UnreachableError):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert machine.count("squeue") == 4


def test_a_clear_refusal_is_recorded_and_not_looked_up(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[REFUSED])
    run = new(tmp_path, machine)
    with pytest.raises(RefusedError) as raised:
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert raised.value.what == "Slurm refused: Invalid qos specification"
    assert "Give a QoS" in raised.value.fix
    assert raised.value.where == Path(run.directory)
    (one,) = recorded(run)
    assert (one.id, one.refused) == ("dt-abc", "Slurm refused: Invalid qos specification")
    assert machine.count("squeue") == 0


def test_a_message_that_nobody_knows_is_a_refusal_once_no_job_is_found(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[STRANGE], squeue=[printed("")])
    run = new(tmp_path, machine)
    with pytest.raises(RefusedError, match="the moon is full"):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert machine.count("squeue") == 2
    assert recorded(run)[0].refused == "Slurm refused: the moon is full"


def test_a_machine_without_sbatch(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=["'sbatch' cannot be run: No such file or directory"])
    run = new(tmp_path, machine)
    with pytest.raises(TransportError, match="cannot be run"):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert machine.count("squeue") == 0
