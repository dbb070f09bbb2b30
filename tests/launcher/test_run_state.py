"""What each event changes in the state of a run, and how far the run goes."""

from __future__ import annotations

import pytest

from launcher.logs.events import (
    CheckpointSaving,
    DriverEnded,
    LauncherEnded,
    LogChanged,
    LogRestarted,
    MetricRecorded,
    MilestoneReached,
    NoticesChanged,
    PlanSeen,
    Recovered,
    RootFindingChanged,
    StepBegan,
    TrackerDirFound,
    TrackerFound,
    UnitsOnline,
)
from launcher.logs.milestones import MILESTONES
from launcher.monitor.state import RunState
from tests.launcher.run_events import (
    DRIVER,
    HEAD,
    RUNNING,
    SLURM,
    WORKER,
    at,
    finding,
    job,
    milestone,
    state,
)


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
