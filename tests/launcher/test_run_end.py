"""What a run is doing and how it ended, from its events."""

from __future__ import annotations

from typing import Any

import pytest

from launcher.logs.events import (
    DriverEnded,
    Event,
    JobState,
    LauncherEnded,
    NoticesChanged,
    StepBegan,
)
from launcher.monitor.run_status import INTERRUPTED
from tests.launcher.run_events import (
    BY_SIGTERM,
    CANCELLED,
    COMPLETED,
    FAILED,
    QUEUED,
    RUNNING,
    STARTING,
    UNKNOWN,
    WORKER,
    at,
    finding,
    ids,
    job,
    milestone,
    raised,
    state,
    what,
)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], (UNKNOWN, "no information on whether it still runs")),
        ([job(QUEUED)], (QUEUED, "because")),
        ([job(UNKNOWN)], (UNKNOWN, "because")),
        ([job(RUNNING)], (STARTING, "because")),
        ([job(STARTING)], (STARTING, "because")),
        ([job(RUNNING), milestone("data-loaded")], (STARTING, "because")),
        ([job(RUNNING), milestone("setup-complete")], (RUNNING, "because")),
        ([job(STARTING), StepBegan(1, at(5))], (RUNNING, "because")),
        ([job(QUEUED), StepBegan(1, at(5))], (QUEUED, "because")),
        ([job(COMPLETED)], (COMPLETED, "because")),
        ([job(CANCELLED)], (CANCELLED, "because")),
        ([job(FAILED)], (FAILED, "because")),
        ([job(FAILED), finding()], (FAILED, "Out of memory: it happened")),
        ([job(COMPLETED), finding()], (COMPLETED, "because")),
        ([job(RUNNING), finding()], (STARTING, "because")),
        ([job(UNKNOWN), finding()], (FAILED, "Out of memory: it happened")),
        ([finding(tier=2)], (FAILED, "Out of memory: it happened")),
        ([finding(tier=3)], (UNKNOWN, "no information on whether it still runs")),
        ([job(UNKNOWN, over=True)], (FAILED, "because")),
        ([job(UNKNOWN, over=True), finding()], (FAILED, "Out of memory: it happened")),
        ([job(UNKNOWN, over=True), milestone("completed")], (COMPLETED, "")),
        ([milestone("completed")], (COMPLETED, "")),
        ([milestone("completed"), job(RUNNING)], (COMPLETED, "")),
        ([milestone("completed"), job(FAILED)], (FAILED, "because")),
        ([raised()], (FAILED, "ValueError: x")),
        ([raised(), job(RUNNING)], (FAILED, "ValueError: x")),
        ([raised(message="KeyboardInterrupt")], (CANCELLED, "interrupted")),
        ([raised(message="KeyboardInterrupt"), job(RUNNING)], (CANCELLED, "interrupted")),
        ([DriverEnded(0, at(9))], (COMPLETED, "")),
        ([DriverEnded(0, at(9)), job(CANCELLED)], (COMPLETED, "")),
        ([DriverEnded(1, at(9)), job(CANCELLED)], (CANCELLED, "because")),
        ([DriverEnded(143, at(9)), job(CANCELLED)], (CANCELLED, "because")),
        ([DriverEnded(7, at(9))], (FAILED, "the driver exited with 7")),
        ([LauncherEnded(7, at(9))], (FAILED, "the launcher exited with 7")),
        ([LauncherEnded(7, at(9)), DriverEnded(0, at(9))], (COMPLETED, "")),
        ([LauncherEnded(0, at(9)), DriverEnded(3, at(9))], (FAILED, "the driver exited with 3")),
        ([DriverEnded(7, at(9)), finding()], (FAILED, "Out of memory: it happened")),
        ([DriverEnded(7, at(9)), job(COMPLETED)], (FAILED, "the driver exited with 7")),
        ([DriverEnded(7, at(9)), raised(message="KeyboardInterrupt")], (FAILED, "KeyboardInterrupt")),
        ([DriverEnded(130, at(9))], (CANCELLED, "stopped by SIGINT")),
        ([DriverEnded(143, at(9))], (CANCELLED, BY_SIGTERM)),
        ([DriverEnded(143, at(9)), finding()], (FAILED, "Out of memory: it happened")),
        (
            [DriverEnded(143, at(9)), finding(name="ray-node-dead", tier=2)],
            (CANCELLED, BY_SIGTERM),
        ),
        ([DriverEnded(143, at(9)), finding(name="ray-gcs", tier=2)], (CANCELLED, BY_SIGTERM)),
        ([DriverEnded(143, at(9)), finding(name="ray-register", tier=2)], (CANCELLED, BY_SIGTERM)),
        ([DriverEnded(143, at(9)), raised()], (CANCELLED, BY_SIGTERM)),
        (
            [DriverEnded(137, at(9))],
            (FAILED, "the driver exited with 137 (SIGKILL: mostly the node's memory was full)"),
        ),
    ],
)
def test_what_a_run_is_doing(events: list[Event], expected: tuple[JobState, str]) -> None:
    assert what(state(*events)) == expected
    assert what(state(*reversed(events))) == expected
    assert INTERRUPTED == (130, 143)


def test_a_cause_in_a_few_words() -> None:
    def words(**more: Any) -> str:
        return state(DriverEnded(1, at(99)), finding(**more)).reason

    assert words(text="CUDA out of memory. Tried 2 GiB") == "Out of memory: CUDA out of memory"
    assert words(text="Out of memory on n1. Then more") == "Out of memory"
    assert words(text="x" * 100) == f"Out of memory: {'x' * 100}"
    assert words(text="x" * 101) == f"Out of memory: {'x' * 99}…"
    one = state(DriverEnded(1, at(99)), raised(message="KeyError: 'a. b'"))
    assert one.reason == "KeyError: 'a. b'"
    long = state(DriverEnded(1, at(99)), raised(message="KeyError: " + "x" * 100))
    assert (len(long.reason), long.reason[-1]) == (100, "…")


def test_what_slurm_says_of_a_completed_run_is_no_failure() -> None:
    assert ids(state(finding(), DriverEnded(0, at(99)))) == []
    assert ids(state(finding(), LauncherEnded(0, at(99)))) == []
    assert ids(state(finding(), job(COMPLETED))) == []
    assert ids(state(finding(), milestone("completed", 5, "e"))) == []
    assert ids(state(finding(), milestone("completed", 5, "e"), DriverEnded(1, at(99)))) == ["cuda-oom"]
    assert ids(state(finding(tier=3), job(CANCELLED))) == []
    assert ids(state(finding(tier=3), DriverEnded(143, at(99)))) == []
    assert ids(state(finding(tier=3), DriverEnded(1, at(99)))) == ["cuda-oom"]
    assert ids(state(job(FAILED, word="TIMEOUT"))) == ["slurm-timeout"]


def test_a_workers_exception_counts_once_the_run_is_known_to_have_failed() -> None:
    caught = raised(role=WORKER, log="w", own=False)
    assert ids(state(caught)) == []
    assert ids(state(caught, job(RUNNING))) == []
    assert ids(state(caught, DriverEnded(1, at(99)))) == ["exception"]
    assert ids(state(caught, LauncherEnded(1, at(99)))) == ["exception"]
    assert ids(state(caught, job(FAILED))) == ["exception"]


def test_the_diagnosis_follows_each_event() -> None:
    one = state(finding(10))
    assert one.diagnosis.root is not None
    assert one.diagnosis is one.diagnosis
    one.apply(StepBegan(1, at(20)))
    assert one.diagnosis.root is None


def test_nothing_is_stuck_once_a_run_has_ended() -> None:
    stuck, unreadable = (
        finding(name="stuck-step", severity="warning"),
        finding(name="no-logs", severity="warning"),
    )
    one = state(finding(20, "late", severity="warning"), NoticesChanged((stuck, unreadable)))
    assert ids(one) == ["late", "stuck-step", "no-logs"]
    one.apply(DriverEnded(0, at(99)))
    assert ids(one) == ["late", "no-logs"]


@pytest.mark.parametrize(
    ("events", "settled"),
    [
        ([], False),
        ([job(RUNNING)], False),
        ([DriverEnded(0, at(9))], True),
        ([DriverEnded(1, at(9))], True),
        ([DriverEnded(1, at(9)), job(RUNNING)], True),
        # Slurm has words of its own for how a job ended: they are waited for.
        ([DriverEnded(1, at(9)), job(RUNNING, word="COMPLETING")], False),
        ([DriverEnded(1, at(9)), job(FAILED, word="FAILED")], True),
        ([DriverEnded(1, at(9)), job(UNKNOWN, word="x", over=True)], True),
        ([DriverEnded(0, at(9)), job(RUNNING, word="COMPLETING")], True),
    ],
)
def test_when_all_is_told(events: list[Event], settled: bool) -> None:
    assert state(*events).settled is settled


def test_what_the_cluster_says_of_a_job_counts_more_than_what_a_log_reports() -> None:
    assert what(state(job(QUEUED), finding())) == (QUEUED, "because")
    assert what(state(job(COMPLETED), raised())) == (COMPLETED, "because")
