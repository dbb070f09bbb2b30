"""How Slurm's answers become the state of a run: every branch, and what must never be concluded."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.clusters.slurm.job_status import SETTLED_S, job_status, refused
from launcher.clusters.slurm.jobs import (
    _SIGTERM_REASON,
    JobRecord,
    base_state,
    job_change,
    read_queue,
)
from launcher.clusters.slurm.queue import Snapshot
from launcher.errors import TransportError
from launcher.logs.events import JobChanged, JobState
from launcher.runs import Job

SUBMITTED = datetime(2026, 1, 1, tzinfo=UTC)
AT = SUBMITTED.timestamp()
QUEUED, STARTING, RUNNING = JobState.QUEUED, JobState.STARTING, JobState.RUNNING
COMPLETED, FAILED, CANCELLED, UNKNOWN = (
    JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN,
)  # fmt: skip
EVERY_STATE = {
    "COMPLETED": (COMPLETED, ""),
    "CANCELLED": (CANCELLED, "cancelled"),
    "FAILED": (FAILED, "the job failed"),
    "TIMEOUT": (FAILED, "time limit"),
    "OUT_OF_MEMORY": (FAILED, "ran out of memory"),
    "NODE_FAIL": (FAILED, "a node failed"),
    "PREEMPTED": (FAILED, "preempted"),
    "DEADLINE": (FAILED, "deadline"),
    "BOOT_FAIL": (FAILED, "boot"),
    "REVOKED": (CANCELLED, "another cluster"),
    "LAUNCH_FAILED": (FAILED, "launch"),
    "PENDING": (QUEUED, "waiting"),
    "CONFIGURING": (STARTING, "prepared"),
    "RUNNING": (RUNNING, ""),
    "COMPLETING": (RUNNING, "ending"),
    "STAGE_OUT": (RUNNING, "staged"),
    "SIGNALING": (RUNNING, "signal"),
    "STOPPED": (RUNNING, "stopped"),
    "SUSPENDED": (RUNNING, "suspended"),
    "RESIZING": (RUNNING, "size"),
    "REQUEUED": (QUEUED, "requeued"),
    "REQUEUE_FED": (QUEUED, "requeued"),
    "REQUEUE_HOLD": (QUEUED, "held"),
    "RESV_DEL_HOLD": (QUEUED, "reservation"),
    "SPECIAL_EXIT": (QUEUED, "special exit"),
}
OVER = [name for name, (state, _) in EVERY_STATE.items() if state in (COMPLETED, FAILED, CANCELLED)]


def job(identity: str, token: str = "dt-1", **changes: object) -> Job:
    return Job(id=identity, token=token, submitted=SUBMITTED).model_copy(update=changes)


def asked(after_s: float, **changes: object) -> Snapshot:
    """Return what is known when both squeue and sacct were asked so long after the submission."""
    return replace(Snapshot(asked=AT + after_s, sacct_asked=AT + after_s), **changes)  # type: ignore[arg-type]


LOST = job("dt-1")
"""A job whose submission had no clear answer."""


def test_what_was_never_listed_is_given_up_when_both_were_asked_long_enough_after() -> None:
    answer = job_status([(LOST, None)], asked(SETTLED_S + 1))
    assert answer == JobChanged(FAILED, "the job never reached Slurm; submit it again", over=True)


@pytest.mark.parametrize(
    "snapshot",
    [
        asked(SETTLED_S),
        asked(1),
        asked(-1),
        asked(SETTLED_S + 1, sacct_asked=0.0),
        asked(SETTLED_S + 1, asked=AT + 1),
        asked(SETTLED_S + 1000, sacct_problem="Connection refused"),
    ],
)
def test_while_that_is_not_clear_nobody_is_told_to_submit_again(snapshot: Snapshot) -> None:
    answer = job_status([(LOST, None)], snapshot)
    assert answer == JobChanged(
        UNKNOWN, "it is not yet clear whether Slurm accepted the job; looking it up by its token"
    )


def test_two_minutes_settle_it() -> None:
    assert SETTLED_S == 120.0


@given(st.floats(-1e6, 1e9), st.floats(-1e6, 1e9), st.booleans(), st.integers(0, 3), st.booleans())
def test_an_unclear_submission_is_failed_only_on_two_clear_answers(
    squeue_s: float, sacct_s: float, accounting_down: bool, failures: int, by_number: bool
) -> None:
    snapshot = Snapshot(
        asked=AT + squeue_s,
        sacct_asked=AT + sacct_s,
        failures=failures,
        problem="no controller" if failures else "",
        sacct_problem="no database" if accounting_down else "",
    )
    answer = job_status([(job("7") if by_number else LOST, None)], snapshot)
    given_up = answer.state.ended
    assert given_up == (
        not by_number
        and not failures
        and not accounting_down
        and min(snapshot.asked, snapshot.sacct_asked) - AT > SETTLED_S
    )


def test_no_answer_at_all() -> None:
    answer = job_status([(LOST, None)], asked(1e6, failures=1, problem="Socket timed out"))
    assert answer == JobChanged(
        UNKNOWN, "the cluster does not answer: Socket timed out", unanswered="Socket timed out"
    )


def test_what_was_submitted_after_the_last_question_waits() -> None:
    assert job_status([(job("7"), None)], asked(-0.5)) == JobChanged(QUEUED, "just submitted", job="7")
    assert job_status([(job("7"), None)], asked(0)).state is UNKNOWN


def test_what_left_the_queue_while_accounting_is_down() -> None:
    answer = job_status([(job("7"), None)], asked(500, sacct_problem="no database", missed={"7": AT}))
    assert answer == JobChanged(
        UNKNOWN,
        "it left the queue; accounting gives no answer: no database",
        job="7",
        unanswered="no database",
    )


@pytest.mark.parametrize(
    ("missed", "over"),
    [({}, False), ({"8": 0.0}, False), ({"7": AT + 380}, False), ({"7": AT + 379}, True), ({"7": AT}, True)],
)
def test_what_left_the_queue_and_is_not_in_accounting(missed: dict[str, float], over: bool) -> None:
    answer = job_status([(job("7"), None)], asked(500, missed=missed))
    yet = "it left the queue; accounting has no record of its end yet"
    never = "it left the queue without a record in accounting, and its logs do not show an end"
    assert answer == JobChanged(UNKNOWN, never if over else yet, over=over, job="7")


def test_of_several_that_are_not_listed_the_last_is_told_of() -> None:
    assert job_status([(job("7"), None), (job("8"), None)], asked(500)).job == "8"


def test_the_one_that_runs_counts_before_the_ones_that_wait_and_those_that_ended() -> None:
    records = [
        (job("1"), JobRecord("1", "TIMEOUT")),
        (job("2"), JobRecord("2", "PENDING", reason="Dependency")),
        (job("3"), JobRecord("3", "RUNNING")),
        (job("4"), None),
    ]
    assert job_status(records, asked(9)).job == "3"
    assert job_status([records[0], records[1], records[3]], asked(9)).job == "2"
    assert job_status([records[1], (job("5"), JobRecord("5", "PENDING"))], asked(9)).job == "2"
    assert job_status([records[0], records[3]], asked(9)).job == "4"


def test_a_running_job_without_an_answer_is_as_it_was() -> None:
    records = [(job("3"), JobRecord("3", "RUNNING", started=5.0, ended=9.0))]
    answer = job_status(records, asked(9, failures=2, problem="Socket timed out"))
    assert (answer.state, answer.job, answer.deadline, answer.unanswered) == (
        RUNNING, "3", 9.0, "Socket timed out",
    )  # fmt: skip
    assert "Socket timed out" in answer.reason
    listed = job_change(JobRecord("3", "RUNNING", started=5.0, ended=9.0))
    assert job_status(records, asked(9)) == replace(listed, jobs=(listed,))


def ended(*states: str, cancelled: int | None = None) -> JobChanged:
    """Return how a chain ended; `cancelled` counts jobs from 0."""
    records = [
        (
            job(str(number), cancel_requested=SUBMITTED + timedelta(1) if number == cancelled else None),
            JobRecord(str(number), state, exit_code="2:0"),
        )
        for number, state in enumerate(states)
    ]
    return job_status(records, asked(9))


def test_how_a_chain_ended() -> None:
    assert (ended("TIMEOUT", "FAILED").job, ended("TIMEOUT", "FAILED").word) == ("1", "FAILED")
    # What a finished chain did not need any more was cancelled from within it.
    assert (ended("TIMEOUT", "COMPLETED", "CANCELLED").job) == "1"
    assert ended("TIMEOUT", "TIMEOUT", "TIMEOUT", "FAILED").job == "3"
    assert ended("CANCELLED", "CANCELLED by 5").reason == "cancelled by user 5"
    assert ended("CANCELLED", "CANCELLED by 5").job == "1"


def test_a_resumed_run_is_what_its_last_job_became() -> None:
    failed = (job("9"), JobRecord("9", "FAILED", 1.0, 2.0, 30.0, exit_code="1:0", nodes="n1"))
    for nodes in ("n1", ""):  # cancelled while it ran, or while it waited
        again = (job("10"), JobRecord("10", "CANCELLED by 7", 40.0, 41.0, 50.0, nodes=nodes))
        answer = job_status([failed, again], asked(60))
        assert (answer.state, answer.job, answer.reason) == (CANCELLED, "10", "cancelled by user 7")
        assert [(one.job, one.state) for one in answer.jobs] == [("9", FAILED), ("10", CANCELLED)]
    # A link of a chain was submitted with the first one, and is no attempt where it never ran.
    link = (job("10"), JobRecord("10", "CANCELLED by 7", 1.0, None, 31.0))
    answer = job_status([failed, link], asked(60))
    assert (answer.job, [one.job for one in answer.jobs]) == ("9", ["9"])
    waiting = (job("11"), JobRecord("11", "PENDING", 1.0, reason="Dependency"))
    running = (job("10"), JobRecord("10", "RUNNING", 1.0, 31.0, nodes="n1"))
    answer = job_status([failed, running, waiting], asked(60))
    assert (answer.job, [one.job for one in answer.jobs]) == ("10", ["9", "10"])


def test_a_cancel_of_an_earlier_job_is_not_that_of_a_later_one() -> None:
    stopped = (
        job("9", cancel_requested=SUBMITTED),
        JobRecord("9", "CANCELLED by 7", 1.0, 2.0, 3.0, nodes="n1"),
    )
    later = job("10", submitted=SUBMITTED + timedelta(1))
    answer = job_status([stopped, (later, JobRecord("10", "CANCELLED by 7", 9.0, nodes="n1"))], asked(60))
    assert [one.reason for one in answer.jobs] == ["cancelled by you", "cancelled by user 7"]


def test_what_the_user_cancelled() -> None:
    for place in (0, 1):
        answer = ended("CANCELLED by 1001", "CANCELLED by 1001", cancelled=place)
        assert (answer.state, answer.reason, answer.job) == (CANCELLED, "cancelled by you", "1")
    assert ended("TIMEOUT", "CANCELLED", "CANCELLED", cancelled=1).job == "2"
    late = ended("TIMEOUT", "COMPLETED", cancelled=1)
    assert (late.state, late.reason) == (COMPLETED, "")
    # Unlike a chain that went to its end, it is the last job that was stopped, also where an earlier one ran.
    assert ended("TIMEOUT", "CANCELLED", cancelled=1).reason == "cancelled by you"


def test_a_submission_that_was_refused() -> None:
    answer = refused(job("dt-1", refused="Slurm refused: Invalid qos"))
    assert answer == JobChanged(FAILED, "Slurm refused: Invalid qos", AT)


@pytest.mark.parametrize("name", EVERY_STATE)
def test_every_state_of_slurm(name: str) -> None:
    state, words = EVERY_STATE[name]
    record = JobRecord("7", name, 1.0, 2.0, 3.0, "(WeirdX)", "", "0:0", "n[1-2]")
    answer = job_change(record)
    assert (answer.state, answer.word, answer.job) == (state, name, "7")
    assert (answer.nodes, answer.submitted) == ("n[1-2]", 1.0)
    assert words in answer.reason
    assert bool(answer.reason) == bool(words)
    assert record.over == (name in OVER)
    if record.over:
        assert (answer.time, answer.began, answer.exit_code) == (3.0, 2.0, "0:0")
        assert (answer.starts, answer.deadline, answer.waits_for) == (None, None, "")
    elif state is QUEUED:
        assert (answer.starts, answer.waits_for) == (2.0, "WeirdX")
        assert (answer.time, answer.began, answer.deadline) == (None, None, None)
        assert ("WeirdX" in answer.reason) == (name == "PENDING")
    else:
        assert (answer.began, answer.deadline) == (2.0, 3.0)
        assert (answer.time, answer.starts, answer.exit_code) == (None, None, "")


def test_a_state_that_nobody_has_heard_of_is_neither_over_nor_live() -> None:
    record = JobRecord("7", "MOONSTRUCK by 3", 1.0, 2.0, 3.0)
    answer = job_change(record)
    assert (answer.state, answer.word, record.over) == (UNKNOWN, "MOONSTRUCK", False)
    assert answer.reason == "unknown Slurm state MOONSTRUCK by 3"


@pytest.mark.parametrize(
    ("state", "code", "reason"),
    [
        ("FAILED", "3:0", "the job ended with exit code 3"),
        ("FAILED", "3", "the job ended with exit code 3"),
        ("FAILED", "0:9", "ended by signal 9"),
        ("FAILED", "0:15", _SIGTERM_REASON),
        ("FAILED", "143:0", _SIGTERM_REASON),
        ("FAILED", "0:53", "Slurm could not open its output file or directory"),
        ("FAILED", "", "the job failed"),
        ("FAILED", "0:0", "the job failed"),
        ("TIMEOUT", "3:0", "the time limit was reached"),
        ("CANCELLED by 1001", "0:15", "cancelled by user 1001"),
        ("CANCELLED", "0:15", "cancelled"),
        ("TIMEOUT by 3", "", "the time limit was reached"),
    ],
)
def test_how_a_job_failed(state: str, code: str, reason: str) -> None:
    answer = job_change(JobRecord("7", state, exit_code=code))
    assert answer.reason == reason
    assert answer.exit_code == code


@pytest.mark.parametrize(
    ("state", "base"),
    [
        ("", ""),
        ("  ", ""),
        ("RUNNING", "RUNNING"),
        ("CANCELLED by 1001", "CANCELLED"),
        ("CANCELLED+", "CANCELLED"),
        ("OUT_OF_ME+", "OUT_OF_MEMORY"),
        ("COMPLETI+", "COMPLETING"),
        ("REQUEUE_H+", "REQUEUE_HOLD"),
        ("MOONST+", "MOONST"),
    ],
)
def test_states_that_are_cut_or_have_something_after_them(state: str, base: str) -> None:
    assert base_state(state) == base


def test_rows_of_squeue() -> None:
    text = "7|RUNNING|10|20|30|n1|None|distill-tui dt-1|x\n8|PENDING|10|N/A|0|(null)|Priority|c\n"
    running, pending = read_queue(text)[0]
    assert running == JobRecord("7", "RUNNING", 10.0, 20.0, 30.0, "None", "distill-tui dt-1|x", "", "n1")
    assert pending == JobRecord("8", "PENDING", 10.0, None, None, "Priority", "c", "", "")


def test_rows_of_sacct() -> None:
    from launcher.clusters.slurm.jobs import SACCT_COLUMNS

    (record,), _ = read_queue(
        "7|FAILED|10|Unknown|30|None assigned|1:0|sbatch --comment=dt-1\n", SACCT_COLUMNS
    )
    assert record == JobRecord("7", "FAILED", 10.0, None, 30.0, "", "sbatch --comment=dt-1", "1:0", "")


def test_rows_with_a_header_that_lacks_columns() -> None:
    (record,), _ = read_queue("JobID|State\n7|RUNNING\n", None)
    assert record == JobRecord("7", "RUNNING")
    (record,), _ = read_queue("JobID|Reason\n7|None\n", None)
    assert record == JobRecord("7", "", reason="None")
    assert job_change(JobRecord("7", "SUSPENDED")).reason == "suspended"
    assert job_change(JobRecord("7", "REQUEUED")).reason == "requeued"
    assert job_change(JobRecord("7", "REQUEUE_FED")).reason == "requeued"


def test_what_is_no_list_of_jobs_is_named() -> None:
    with pytest.raises(TransportError, match="cannot read this list of jobs: 'squeue: oh'"):
        read_queue("squeue: oh\n", None)


def test_names_of_nodes_and_control_characters() -> None:
    (record,), _ = read_queue("7|RUNNING|10|20|30|N/A|None|\x1b[31mred\n")
    assert (record.nodes, "\x1b" in record.comment) == ("", False)


def test_the_questions_ask_for_what_is_read() -> None:
    from launcher.clusters.slurm import jobs

    # squeue(1): id, state, submit, start, end, nodes, reason, comment; partition, number of nodes, name.
    assert jobs.QUEUE_FORMAT == "%i|%T|%V|%S|%e|%N|%r|%k||%P|%D|%j"
    assert jobs.SACCT_FORMAT == "JobID,State,Submit,Start,End,NodeList,ExitCode,SubmitLine"
