"""What overcomes a failure, and which line of it counts."""

from __future__ import annotations

import itertools

import pytest

from launcher.logs.events import (
    DriverEnded,
    Event,
    LogRestarted,
    Recovered,
    StepBegan,
)
from tests.launcher.run_events import (
    HEAD,
    WORKER,
    at,
    finding,
    ids,
    milestone,
    raised,
    state,
    what,
)


@pytest.mark.parametrize(
    "overcomes",
    [
        StepBegan(1, at(11)),
        *[milestone(name, 11) for name in ("first-step", "first-validation", "first-checkpoint")],
    ],
)
def test_a_driver_that_trains_on_has_overcome_what_failed_before(overcomes: Event) -> None:
    for events in itertools.permutations([finding(10), raised(10), overcomes]):
        one = state(*events)
        assert (ids(one), one.traceback) == ([], None)
    for events in itertools.permutations([finding(12), raised(12), overcomes]):
        one = state(*events)
        assert (ids(one)[:1], one.traceback is not None) == (["cuda-oom"], True)
    # A line cannot come after itself, and another log's going on says nothing of this one.
    assert ids(state(finding(11), overcomes)) == []
    assert ids(state(finding(10, log="e"), overcomes)) == ["cuda-oom"]


def test_a_warning_stays_when_the_run_goes_on() -> None:
    assert ids(state(finding(10, severity="warning"), StepBegan(1, at(11)))) == ["cuda-oom"]


def test_steps_of_the_set_up_overcome_only_what_is_tried_again() -> None:
    assert ids(state(finding(10, retried=True), milestone("data-loaded", 11))) == []
    assert ids(state(finding(10), milestone("data-loaded", 11))) == ["cuda-oom"]
    assert ids(state(finding(10, retried=True), milestone("driver-started", 11))) == ["cuda-oom"]
    assert ids(state(finding(10, retried=True), Recovered(at(11)))) == []
    assert ids(state(finding(12, retried=True), Recovered(at(11)))) == ["cuda-oom"]
    assert ids(state(finding(11, retried=True), Recovered(at(11)))) == []
    assert ids(state(finding(10), Recovered(at(11)))) == ["cuda-oom"]


def test_what_was_seen_last_counts_also_where_lines_are_told_in_another_order() -> None:
    one = state(Recovered(at(20)), Recovered(at(5)), finding(15, retried=True))
    assert ids(one) == []
    one = state(StepBegan(9, at(20)), StepBegan(1, at(5)), finding(15))
    assert ids(one) == []


def test_heads_and_workers_overcome_theirs() -> None:
    for role in (HEAD, WORKER):
        assert ids(state(finding(10, log="x", role=role), Recovered(at(11, "x", role)))) == []
    head = finding(10, log="x", role=HEAD)
    assert ids(state(head, milestone("head-up", 11, "x", HEAD))) == []
    assert ids(state(head, milestone("ray-attached", 11, "x", HEAD))) == ["cuda-oom"]
    worker = finding(10, log="x", role=WORKER)
    assert ids(state(worker, milestone("head-up", 11, "x", WORKER))) == ["cuda-oom"]
    # A driver's log that tells of a head is no head.
    assert ids(state(finding(10), milestone("head-up", 11))) == ["cuda-oom"]
    retried = finding(10, log="x", role=HEAD, retried=True)
    assert ids(state(retried, milestone("data-loaded", 11, "x", HEAD))) == ["cuda-oom"]


def test_a_log_that_begins_anew_takes_its_evidence_with_it() -> None:
    before: list[Event] = [finding(10), finding(10, "nccl-timeout", log="e"), raised(10), raised(10, log="e")]
    one = state(*before, StepBegan(1, at(50)), Recovered(at(50)), LogRestarted(at(0)))
    assert ids(one) == ["nccl-timeout"]
    assert one.traceback is not None
    assert one.traceback.source.log == "e"
    # What the former file overcame says nothing of the new one.
    one.apply(finding(20, "host-oom"))
    one.apply(finding(21, "retry", retried=True))
    assert {"host-oom", "retry"} <= set(ids(one))


def test_of_a_failure_the_first_line_counts() -> None:
    for lines in ((10, 30), (30, 10)):
        one = state(*[finding(line, text=f"line {line}") for line in lines])
        assert [(item.id, item.source.line) for item in one.findings] == [("cuda-oom", 10)]
    # One that was overcome makes way for the one that was not.
    one = state(finding(10), StepBegan(1, at(20)), finding(30), finding(40))
    assert [item.source.line for item in one.findings] == [30]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ((10, 100.0), (30, 98.0), 30),  # said later, happened earlier
        ((10, 100.0), (30, 99.0), 10),  # about the same time: the line counts
        ((10, 100.0), (30, 102.0), 10),
        ((30, 98.0), (10, 100.0), 30),
        ((30, 99.5), (10, 100.0), 10),
        ((10, None), (30, 1.0), 10),
        ((30, 1.0), (10, None), 10),
        ((10, 0.0), (30, -5.0), 30),
    ],
)
def test_the_time_that_lines_tell_counts_more_than_their_place(
    first: tuple[int, float | None], second: tuple[int, float | None], kept: int
) -> None:
    one = state(*[finding(line, stamp=stamp) for line, stamp in (first, second)])
    assert [item.source.line for item in one.findings] == [kept]


@pytest.mark.parametrize(("line", "taken"), [(11, True), (16, True), (17, False)])
def test_a_node_that_is_told_just_after_belongs_to_the_failure(line: int, taken: bool) -> None:
    later = finding(line, node="n7", rank=3, pid=4)
    (one,) = state(finding(10), later).findings
    assert (one.source.line, one.node, one.rank, one.pid) == (
        (10, "n7", 3, 4) if taken else (10, None, None, None)
    )
    (one,) = state(finding(10, node="n1"), later).findings
    assert one.node == "n1"
    (one,) = state(finding(10, rank=8), finding(11, rank=9)).findings
    assert one.rank == 8


def test_an_exception_that_is_told_twice_is_one() -> None:
    one = state(raised(), raised())
    assert len(one._evidence_of_logs.exceptions()) == 1


def test_the_exception_that_ended_the_driver() -> None:
    inner, wrapped = raised(30, "ValueError: inner"), raised(10, "RayTaskError: x", wrapper=True)
    assert state(wrapped, inner).traceback == inner
    assert state(wrapped).traceback == wrapped
    assert state(raised(10, own=False), raised(10, role=WORKER, log="w")).traceback is None
    assert state(inner, raised(20, "ValueError: first")).traceback == raised(20, "ValueError: first")
    assert state(inner, raised(31, log="a")).traceback == raised(31, log="a")


def test_the_first_line_of_a_log_counts() -> None:
    assert ids(state(finding(1))) == ids(state(finding(1, retried=True))) == ["cuda-oom"]
    assert state(raised(1)).traceback == raised(1)


def test_what_a_step_told_in_the_same_line_has_overcome() -> None:
    assert state(raised(11), StepBegan(1, at(11))).traceback is None
    assert ids(state(finding(10), milestone("completed", 11), DriverEnded(1, at(99)))) == []


def test_a_log_that_begins_anew_before_it_told_anything() -> None:
    assert what(state(LogRestarted(at(0, "z")))) == what(state())


def test_a_line_that_is_told_again_is_the_same() -> None:
    assert [item.text for item in state(finding(text="a"), finding(text="b")).findings] == ["a"]
