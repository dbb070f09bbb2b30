"""Recorded and simulated healthy runs are never stuck, at no moment; one that stops is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.events import (
    CheckpointSaving,
    JobChanged,
    JobState,
    MetricRecorded,
    MilestoneReached,
    Role,
    Source,
    StepBegan,
)
from launcher.monitor.state import RunState
from launcher.monitor.stuck import stuck
from launcher.monitor.watch import Watch
from launcher.transports.local import LocalTransport
from tests.launcher.stuck_states import DRIVER, SLURM, UP, log, only, running


class Replay:
    """A recorded run, written anew as it was written then; `slower` stretches the time."""

    def __init__(self, recorded: Path, place: Path, slower: float) -> None:
        self.recorded, self.place, self.slower = recorded, place, slower
        rows = [line.split("\t") for line in (recorded / "log-clock.tsv").read_text().splitlines()]
        self.rows = [(float(moment), name, int(size)) for moment, name, size in rows]
        self.begin = self.rows[0][0]
        self.length_s = (self.rows[-1][0] - self.begin) * slower
        place.mkdir(exist_ok=True)

    def at(self, moment: float) -> float:
        """Write what was there so long after the begin; returns the time then."""
        now = self.begin + moment
        clock = ""
        for written, name, size in self.rows:
            when = self.begin + (written - self.begin) * self.slower
            if when <= now:
                file = self.place / name
                file.write_bytes((self.recorded / name).read_bytes()[:size])
                os.utime(file, (when, when))
                clock += f"{when:.0f}\t{name}\t{size}\n"
        (self.place / "log-clock.tsv").write_text(clock)
        return now

    def watch(self, now: Callable[[], float]) -> Watch:
        job = JobChanged(JobState.RUNNING, word="RUNNING", began=self.begin)
        return Watch(LocalTransport(), (str(self.place),), probe=lambda: job, now=now)


@pytest.mark.parametrize("slower", [1.0, 15.0])
def test_a_recorded_run_is_never_stuck(tmp_path: Path, cases: Path, slower: float) -> None:
    """Watched all the time, and by somebody who looks for the first time at that moment."""
    replay = Replay(cases / "logs" / "rehearsal", tmp_path / "logs", slower)
    now = [0.0]
    steady = replay.watch(lambda: now[0])
    for part in range(25):
        now[0] = replay.at(replay.length_s * part / 24)
        late = replay.watch(lambda: now[0])
        for watch in (steady, late):
            watch.catch_up()
            assert watch.state.notices == ()
    assert steady.state.state is JobState.COMPLETED
    assert steady.state.step == 30


def test_a_recorded_run_that_stops_is_stuck(tmp_path: Path, cases: Path) -> None:
    replay = Replay(cases / "logs" / "rehearsal", tmp_path / "logs", 1.0)
    now = [replay.at(replay.length_s * 0.7)]
    watch = replay.watch(lambda: now[0])
    watch.catch_up()
    assert watch.state.notices == ()
    now[0] += 400
    watch.catch_up()
    assert only(watch.state.notices)[0] == "stuck-silent"


@given(
    st.lists(st.floats(0.5, 1.0), min_size=8, max_size=14),
    st.floats(0.5, 1200.0),
    st.floats(0.0, 1.0),
    st.data(),
)
def test_a_healthy_run_is_never_stuck(
    speeds: list[float], step_s: float, moment: float, data: st.DataObject
) -> None:
    """Set-up within what its phases take, steps within a factor of two, some of them with a checkpoint."""
    setup_s = data.draw(st.floats(1.0, 800.0))
    state = RunState()
    state.apply(running(began=0.0, submitted=-10.0))
    timeline: list[tuple[float, object]] = []
    now = 5.0
    for name in UP:
        timeline.append((now, MilestoneReached(name, Source(DRIVER, Role.DRIVER, 1), now)))
        now += 1.0 if name in ("head-up", "workers-connected") else setup_s
        if name in ("driver-started", "ray-attached"):
            now += min(setup_s, 550.0) - setup_s
    for step, speed in enumerate(speeds, 1):
        took = step_s * speed * (1.4 if step == 1 else 1.0)
        timeline.append((now, StepBegan(step, Source(DRIVER, Role.DRIVER, step), now)))
        if step % 4 == 0:
            timeline.append((now, CheckpointSaving(step, Source(DRIVER, Role.DRIVER, step), now)))
            now += min(step_s * 2, 800.0)
        now += took
        for name, value in (("loss", 1.0), ("step_time_s", took)):
            timeline.append((now, MetricRecorded(name, step, value, Source(DRIVER, Role.DRIVER, step))))
        if step == 1:
            timeline.append((now, MilestoneReached("first-step", Source(DRIVER, Role.DRIVER, 1), now)))
    at = moment * now
    for when, event in timeline:
        if when <= at:
            state.apply(event)  # type: ignore[arg-type]
            log(state, DRIVER, Role.DRIVER, when)
    log(state, SLURM, Role.SLURM, 5.0)
    assert stuck(state, at) == ()
