"""From events to the state of a run: what each event changes, what overcomes a failure, what ends a run."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from launcher.logs.events import (
    MILESTONES,
    CheckpointSaving,
    DriverEnded,
    Event,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
    LogChanged,
    LogRestarted,
    MetricRecorded,
    MilestoneReached,
    NoticesChanged,
    PlanSeen,
    Recovered,
    Role,
    RootFindingChanged,
    Source,
    StepBegan,
    TrackerDirFound,
    TrackerFound,
    UnitsOnline,
)
from launcher.monitor.attempts import NONE, SlurmRunState, attempt_of
from launcher.monitor.run_status import INTERRUPTED
from launcher.monitor.state import RunState

DRIVER, HEAD, WORKER, SLURM = Role.DRIVER, Role.HEAD, Role.WORKER, Role.SLURM
QUEUED, STARTING, RUNNING = JobState.QUEUED, JobState.STARTING, JobState.RUNNING
COMPLETED, FAILED, CANCELLED, UNKNOWN = (
    JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN,
)  # fmt: skip

BY_SIGTERM = (
    "stopped by SIGTERM, and no log says who sent it: "
    "the time limit, scancel, a preemption, or its node may have"
)


def at(line: int, log: str = "d", role: Role = DRIVER) -> Source:
    return Source(log, role, line)


def state(*events: Event) -> RunState:
    one = RunState()
    for event in events:
        one.apply(event)
    return one


def chain(*events: Event, links: int = 1) -> SlurmRunState:
    one = SlurmRunState(links=links)
    for event in events:
        one.apply(event)
    return one


def finding(
    line: int = 10, name: str = "cuda-oom", log: str = "d", role: Role = DRIVER, **more: Any
) -> FindingSeen:
    details: dict[str, Any] = {
        "tier": 1,
        "title": "Out of memory",
        "severity": "fatal",
        "text": "it happened",
        **more,
    }
    return FindingSeen(id=name, source=at(line, log, role), **details)


def raised(line: int = 10, message: str = "ValueError: x", log: str = "d", **more: object) -> ExceptionSeen:
    details = {"own": True, "wrapper": False, "role": DRIVER, **more}
    source = at(line, log, details.pop("role"))  # type: ignore[arg-type]
    return ExceptionSeen(message, source, line - 2, **details)  # type: ignore[arg-type]


def milestone(name: str, line: int = 5, log: str = "d", role: Role = DRIVER) -> MilestoneReached:
    return MilestoneReached(name, at(line, log, role))


def job(what: JobState, reason: str = "because", **more: object) -> JobChanged:
    return JobChanged(what, reason, **more)  # type: ignore[arg-type]


def what(one: RunState) -> tuple[JobState, str]:
    return one.state, one.reason


# ---------------------------------------------------------------- events that are kept


def test_what_is_kept_of_each_event() -> None:
    step, saving = StepBegan(3, at(1), 9.0), CheckpointSaving(2, at(1))
    log, notice, changed = (
        LogChanged("d", DRIVER, 1, 1),
        finding(severity="warning"),
        job(RUNNING, deadline=7.0),
    )
    one = state(
        step, saving, log, NoticesChanged((notice,)), changed, TrackerFound("tensorboard", "/t"),
        TrackerDirFound("/dir", at(1)), RootFindingChanged(None, None), MetricRecorded("loss", 4, 0.5, at(1)),
        MetricRecorded("loss", 5, 0.4, at(1)), MetricRecorded("loss", 5, 0.3, at(2)),
        DriverEnded(0, at(1)), LauncherEnded(1, at(1, "l", SLURM)),
    )  # fmt: skip
    assert (one.current, one.checkpoints, one.logs) == (step, {2: saving}, {"d": log})
    assert (one.notices, one.job, one.deadline) == ((notice,), changed, 7.0)
    assert (one.trackers, one.tracked) == ({"/t": "tensorboard"}, {"/dir"})
    assert one.metrics == {"loss": {4: 0.5, 5: 0.3}}
    assert (one.step, state().step, state(MetricRecorded("x", 9, 1.0, at(1))).step) == (5, 0, 0)
    assert one.driver_ended == DriverEnded(0, at(1))
    assert one.launcher_ended == LauncherEnded(1, at(1, "l", SLURM))


def test_since_when_so_many_workers_are_there() -> None:
    def units(online: int, time: float) -> UnitsOnline:
        return UnitsOnline(online, 4, at(1), time)

    one = state(units(1, 10.0), units(1, 11.0))
    assert (one.units, one.units_since) == (units(1, 11.0), 10.0)
    one.apply(units(2, 12.0))
    one.apply(units(2, 13.0))
    assert (one.units, one.units_since) == (units(2, 13.0), 12.0)


def test_workers_that_joined() -> None:
    one = state(Recovered(at(3, "w", WORKER)), Recovered(at(3, "h", HEAD)), Recovered(at(3)))
    assert one.joined == {"w"}
    one.apply(LogRestarted(at(0, "w", WORKER)))
    assert one.joined == set()


@pytest.mark.parametrize(("first", "second"), [(5, 9), (9, 5)])
def test_a_milestone_is_where_it_was_reached_first(first: int, second: int) -> None:
    one = state(milestone("data-loaded", first), milestone("data-loaded", second))
    assert one.milestones["data-loaded"].source.line == 5


def test_a_milestone_that_is_told_again_at_the_same_place_is_renewed() -> None:
    again = MilestoneReached("data-loaded", at(5), 99.0)
    assert state(milestone("data-loaded", 5), again).milestones["data-loaded"] is again


def test_the_next_milestone() -> None:
    names = [kind.id for kind in MILESTONES]
    assert state().awaited is MILESTONES[0]
    for number, name in enumerate(names[:-1]):
        assert state(milestone(name)).awaited is MILESTONES[number + 1]
    assert state(milestone(names[3]), milestone(names[1])).awaited is MILESTONES[4]
    assert state(milestone("completed")).awaited is None
    assert state(milestone(names[3]), DriverEnded(1, at(9))).awaited is None


# ---------------------------------------------------------------- how far a run goes


def test_steps_of_the_plan() -> None:
    one = state(PlanSeen(at(1), steps_per_epoch=10, epochs=3, batch=4, samples=40))
    assert (one.steps_per_epoch, one.epochs, one.batch, one.samples) == (10, 3, 4, 40)
    one.apply(PlanSeen(at(2)))
    assert (one.steps_per_epoch, one.epochs, one.batch, one.samples) == (10, 3, 4, 40)
    one.apply(PlanSeen(at(2), steps_per_epoch=11, epochs=4, batch=5, samples=50))
    assert (one.steps_per_epoch, one.epochs, one.batch, one.samples) == (11, 4, 5, 50)


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        (PlanSeen(at(1)), None),
        (PlanSeen(at(1), steps_per_epoch=10), 10),
        (PlanSeen(at(1), steps_per_epoch=10, epochs=3), 10),
        (PlanSeen(at(1), 10, 3, 4, 40), 30),
        (PlanSeen(at(1), 10, 3, 4, 43), 30),
        (PlanSeen(at(1), 10, None, 4, 40), 10),
        (PlanSeen(at(1), 10, 3, 4, 400), 10),
        (PlanSeen(at(1), 10, 3, 4), 10),
        (PlanSeen(at(1), 10, 3, None, 40), 10),
    ],
)
def test_how_many_steps_there_are_at_most(plan: PlanSeen, steps: int | None) -> None:
    assert state(plan).max_steps == steps
    recipe = RunState(plan_max_steps=7)
    recipe.apply(plan)
    assert recipe.max_steps == 7


def test_steps_that_were_done_are_no_fewer_than_the_most() -> None:
    loss = MetricRecorded("loss", 12, 0.5, at(1))
    assert state(PlanSeen(at(1), steps_per_epoch=10), loss).max_steps == 12
    assert state(PlanSeen(at(1), 50, 3), loss, milestone("completed")).max_steps == 12
    assert state(PlanSeen(at(1), 50), milestone("completed")).max_steps == 50
    assert state(loss).max_steps is None


# ---------------------------------------------------------------- what overcomes a failure


def ids(one: RunState) -> list[str]:
    return [item.id for item in one.findings]


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


@pytest.mark.parametrize(("line", "taken"), [(11, True), (13, True), (14, False)])
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
    assert len(one._exceptions) == 1


def test_the_exception_that_ended_the_driver() -> None:
    inner, wrapped = raised(30, "ValueError: inner"), raised(10, "RayTaskError: x", wrapper=True)
    assert state(wrapped, inner).traceback == inner
    assert state(wrapped).traceback == wrapped
    assert state(raised(10, own=False), raised(10, role=WORKER, log="w")).traceback is None
    assert state(inner, raised(20, "ValueError: first")).traceback == raised(20, "ValueError: first")
    assert state(inner, raised(31, log="a")).traceback == raised(31, log="a")


# ---------------------------------------------------------------- what a run is doing


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
        ([DriverEnded(137, at(9))], (FAILED, "the driver exited with 137")),
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


# ---------------------------------------------------------------- attempts of a job

OLD, NEW, NEXT = "logs/9-logs/", "logs/9-1-logs/", "logs/10-logs/"


@pytest.mark.parametrize(
    ("log", "attempt"),
    [
        ("9-logs/x", (9, 0)), ("9-2-logs/x", (9, 2)), ("a/9-2-logs/b/x", (9, 2)), ("slurm-9.out", (9, 0)),
        ("logs/slurm-12.out", (12, 0)), ("slurm-9.out.old", NONE), ("myslurm-9.out", NONE),
        ("x9-logs/x", NONE),
        ("9-logs", NONE), ("9-a-logs/x", NONE), ("", NONE), ("slurm-9xout", NONE),
    ],
)  # fmt: skip
def test_the_attempt_of_a_log(log: str, attempt: tuple[int, int]) -> None:
    assert attempt_of(log) == attempt
    assert NONE == (0, 0)


def of(attempt: str, line: int = 5, name: str = "ray-driver.log", role: Role = DRIVER) -> Source:
    return Source(f"{attempt}{name}", role, line)


EVIDENCE: list[Event] = [
    MilestoneReached("data-loaded", of(OLD)),
    StepBegan(3, of(OLD)),
    UnitsOnline(1, 2, of(OLD)),
    FindingSeen("cuda-oom", "Out of memory", "fatal", "x", of(OLD, 90), tier=1),
    ExceptionSeen("ValueError: x", of(OLD, 91), 80, own=True, wrapper=False),
    DriverEnded(1, of(OLD)),
    LauncherEnded(1, of(OLD)),
]


def evidence(one: RunState) -> tuple[object, ...]:
    return (
        dict(one.milestones), one.current, one.units, ids(one), one.traceback, one.driver_ended,
        one.launcher_ended,
    )  # fmt: skip


@pytest.mark.parametrize("new", [NEW, NEXT])
@pytest.mark.parametrize("event", EVIDENCE, ids=lambda event: type(event).__name__)
def test_a_later_attempt_takes_away_what_an_earlier_one_said_of_itself(event: Event, new: str) -> None:
    begun = LogChanged(f"{new}ray-driver.log", DRIVER, 1, 1)
    assert evidence(chain(event)) != evidence(chain())
    assert evidence(chain(event, begun)) == evidence(chain())
    assert evidence(chain(begun, event)) == evidence(chain())
    # It stays while only its own logs, or logs that belong to no attempt, are written.
    for same in (f"{OLD}ray-head.log", "logs/slurm-9.out", "ray-driver.log", "logs/8-logs/ray-driver.log"):
        log = LogChanged(same, DRIVER, 1, 1)
        assert evidence(chain(event, log)) == evidence(chain(log, event)) == evidence(chain(event))


@pytest.mark.parametrize("event", EVIDENCE, ids=lambda event: type(event).__name__)
def test_an_event_of_a_later_attempt_begins_it(event: Event) -> None:
    one = chain(MilestoneReached("ray-attached", of("logs/7-logs/")), event)
    assert one.attempt == (9, 0)
    assert "ray-attached" not in one.milestones


@pytest.mark.parametrize("event", EVIDENCE, ids=lambda event: type(event).__name__)
def test_what_belongs_to_no_attempt_stays(event: Event) -> None:
    loose = replace(event, source=at(5, "ray-driver.log"))  # type: ignore[arg-type]
    begun = LogChanged(f"{NEW}ray-driver.log", DRIVER, 1, 1)
    assert evidence(chain(loose, begun)) == evidence(chain(begun, loose)) == evidence(chain(loose))


def test_losses_and_checkpoints_of_all_attempts_add_up() -> None:
    added: list[Event] = [
        MetricRecorded("loss", 1, 0.9, of(OLD)),
        MetricRecorded("loss", 2, 0.8, of(OLD)),
        MetricRecorded("loss", 2, 0.7, of(NEW)),
        MetricRecorded("other", 2, 0.1, of(OLD)),
        CheckpointSaving(2, of(OLD)),
        CheckpointSaving(2, of(NEW)),
    ]
    for events in itertools.permutations(added):
        one = chain(*events, CheckpointSaving(1, of(OLD)))
        assert one.metrics == {"loss": {1: 0.9, 2: 0.7}, "other": {2: 0.1}}
        assert {step: item.source.log for step, item in one.checkpoints.items()} == {
            1: f"{OLD}ray-driver.log", 2: f"{NEW}ray-driver.log",
        }  # fmt: skip
    renewed = chain(*[MetricRecorded("loss", 2, value, of(NEW)) for value in (0.7, 0.6)])
    assert renewed.metrics["loss"] == {2: 0.6}
    saved = [CheckpointSaving(2, of(NEW, line)) for line in (3, 4)]
    assert chain(*saved).checkpoints[2].source.line == 4


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([DriverEnded(1, of(OLD))], (FAILED, "the driver exited with 1")),
        ([job(RUNNING, job="9")], (STARTING, "because")),
        ([DriverEnded(143, of(OLD)), job(FAILED, job="9")], (FAILED, "because")),
        ([DriverEnded(130, of(OLD)), job(FAILED, job="9")], (FAILED, "because")),
        ([DriverEnded(1, of(OLD)), job(FAILED, job="9")], (FAILED, "the driver exited with 1")),
        ([LauncherEnded(143, of(OLD)), job(FAILED, job="9")], (FAILED, "because")),
        ([job(FAILED, job="9")], (FAILED, "because")),
        ([DriverEnded(143, of(OLD)), job(COMPLETED, job="9")], (CANCELLED, BY_SIGTERM)),
        ([DriverEnded(143, of(OLD)), job(CANCELLED, job="9")], (CANCELLED, "because")),
        ([DriverEnded(1, of(OLD)), job(QUEUED, job="9")], (QUEUED, "because")),
        # The next job of the chain has begun, and has written nothing yet.
        ([DriverEnded(1, of(OLD)), job(RUNNING, job="10")], (STARTING, "because")),
        ([DriverEnded(1, of(OLD)), job(RUNNING, job="9")], (FAILED, "the driver exited with 1")),
        ([DriverEnded(1, of(OLD)), job(RUNNING, job="8")], (FAILED, "the driver exited with 1")),
        ([DriverEnded(1, of(OLD)), job(RUNNING, job="x")], (FAILED, "the driver exited with 1")),
        (
            [DriverEnded(1, at(5, "ray-driver.log")), job(RUNNING, job="9")],
            (FAILED, "the driver exited with 1"),
        ),
        # Slurm stops a job at its limit, to requeue it, to preempt it: it says which.
        ([DriverEnded(143, of(OLD)), job(RUNNING, job="9")], (RUNNING, "because")),
        (
            [DriverEnded(143, of(OLD)), job(RUNNING, "", job="9")],
            (RUNNING, "its driver has ended; Slurm has not reported the job's end"),
        ),
        ([DriverEnded(143, of(OLD)), job(UNKNOWN, job="9", over=True)], (CANCELLED, BY_SIGTERM)),
        ([DriverEnded(0, of(OLD)), job(RUNNING, job="9")], (COMPLETED, "")),
    ],
)
def test_what_a_run_of_slurm_jobs_is_doing(events: list[Event], expected: tuple[JobState, str]) -> None:
    assert what(chain(*events)) == expected


def test_the_end_of_one_job_of_a_chain_is_not_the_end_of_the_run() -> None:
    ended = DriverEnded(0, of(OLD))
    assert what(chain(ended, job(RUNNING, job="9"), links=2)) == (RUNNING, "because")
    assert what(chain(ended, job(UNKNOWN, job="9", over=True), links=2)) == (COMPLETED, "")
    assert what(chain(ended, job(COMPLETED, job="9"), links=2)) == (COMPLETED, "")
    assert SlurmRunState().links == 1


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


def test_what_the_cluster_says_of_a_job_counts_more_than_what_a_log_reports() -> None:
    assert what(state(job(QUEUED), finding())) == (QUEUED, "because")
    assert what(state(job(COMPLETED), raised())) == (COMPLETED, "because")
