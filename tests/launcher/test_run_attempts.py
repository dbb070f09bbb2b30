"""Runs of several attempts: the latest counts, losses and checkpoints of all add up."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from launcher.logs.events import (
    CheckpointSaving,
    DriverEnded,
    Event,
    ExceptionSeen,
    FindingSeen,
    JobState,
    LauncherEnded,
    LogChanged,
    MetricRecorded,
    MilestoneReached,
    PlanSeen,
    Role,
    Source,
    StepBegan,
    StoppedToSave,
    UnitsOnline,
)
from launcher.monitor.attempts import NONE, SlurmRunState, attempt_of
from launcher.monitor.state import RunState
from launcher.monitor.summary import field_names
from tests.launcher.run_events import (
    BY_SIGTERM,
    CANCELLED,
    COMPLETED,
    DRIVER,
    FAILED,
    QUEUED,
    RUNNING,
    STARTING,
    UNKNOWN,
    at,
    chain,
    finding,
    ids,
    job,
    what,
)

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
    parts = {name: getattr(event, name) for name in field_names(event)} | {"source": at(5, "ray-driver.log")}
    loose = type(event)(**parts)
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


def test_every_attempt_has_an_end_of_its_own() -> None:
    assert chain().attempts == ()
    events: list[Event] = [
        MetricRecorded("loss", 3, 0.9, of(OLD)),
        finding(90, log=f"{OLD}ray-driver.log", text="CUDA out of memory"),
        DriverEnded(1, of(OLD)),
        PlanSeen(of(NEXT), resumed=2),
        MetricRecorded("loss", 5, 0.8, of(NEXT)),
    ]
    listed = (job(FAILED, "exit code 1", job="9", word="FAILED", began=10.0, time=20.0),)
    present = job(CANCELLED, "cancelled by you", job="10", word="CANCELLED", began=30.0, time=40.0)
    cluster = replace(present, jobs=(*listed, present))
    for order in itertools.permutations(events):
        one = chain(*order, cluster)
        assert what(one) == (CANCELLED, "cancelled by you")
        fields = [
            (item.job, item.state, item.step, item.resumed, item.began, item.ended) for item in one.attempts
        ]
        assert fields == [
            ("9", FAILED, 3, None, 10.0, 20.0), ("10", CANCELLED, 5, 2, 30.0, 40.0),
        ]  # fmt: skip
        assert one.attempts[0].in_words().startswith("job 9: failed at step 3 (Out of memory: CUDA")
        assert one.attempts[1].in_words() == "job 10, from step 2: cancelled at step 5 (cancelled by you)"


def test_a_job_that_was_cancelled_before_it_began_is_the_last_attempt() -> None:
    ended = DriverEnded(0, of(OLD))
    before = job(COMPLETED, "", job="9", word="COMPLETED", nodes="n1")
    present = job(CANCELLED, "cancelled by user 7", job="10", word="CANCELLED")
    one = chain(ended, replace(present, jobs=(before, present)))
    assert what(one) == (CANCELLED, "cancelled by user 7")
    assert [(item.job, item.state) for item in one.attempts] == [("9", COMPLETED), ("10", CANCELLED)]


def test_a_requeue_is_an_attempt_of_the_same_job() -> None:
    one = chain(
        MilestoneReached("head-up", of(OLD)), MilestoneReached("head-up", of(NEW)), job(RUNNING, "", job="9")
    )
    assert [(item.job, item.requeue, item.reason) for item in one.attempts] == [
        ("9", 0, "requeued"),
        ("9", 1, ""),
    ]


def test_an_attempt_that_saved_and_stopped_is_told_without_how_to_resume() -> None:
    one = chain(
        MetricRecorded("loss", 3, 0.9, of(OLD)), StepBegan(3, of(OLD)), StoppedToSave(of(OLD, 99)),
        DriverEnded(0, of(OLD)), LogChanged(f"{NEXT}ray-driver.log", DRIVER, 1, 1),
    )  # fmt: skip
    one.apply(job(RUNNING, "", job="10", jobs=(job(COMPLETED, "", job="9"), job(RUNNING, "", job="10"))))
    assert one.attempts[0].in_words() == "job 9: stopped at step 3 to save before its time limit"
    assert what(one) == (STARTING, "")


def test_an_old_answer_that_a_job_waits_counts_less_than_its_log() -> None:
    waits = job(JobState.QUEUED, "Priority", job="9", asked=100.0)
    log = LogChanged(f"{OLD}ray-driver.log", DRIVER, 1, 1, time=130.0)
    assert what(chain(waits, log)) == (STARTING, "")
    assert what(chain(log, DriverEnded(0, of(OLD), 130.0), waits)) == (COMPLETED, "")
    assert what(chain(log, DriverEnded(0, of(OLD), 130.0), replace(waits, asked=131.0)))[0] is JobState.QUEUED
