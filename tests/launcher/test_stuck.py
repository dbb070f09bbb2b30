"""Progress that is due and missing, told of hand-made states."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from launcher.logs.events import (
    CheckpointSaving,
    FindingSeen,
    JobChanged,
    JobState,
    MetricRecorded,
    NoticesChanged,
    Recovered,
    Role,
    Source,
    UnitsOnline,
)
from launcher.logs.node_names import expanded
from launcher.monitor.state import RunState
from launcher.monitor.stuck import stuck
from launcher.monitor.summary import event_json
from launcher.monitor.watch import Watch
from launcher.transports.local import LocalTransport
from tests.driver_text import DriverText
from tests.launcher.stuck_states import DRIVER, NOW, SLURM, UP, log, only, reach, running, training
from tui.headless.plain import EventPrinter


def test_workers_that_do_not_come_are_named_with_what_their_logs_end_with() -> None:
    state = RunState()
    state.apply(running())
    reach(state, "head-up", at=NOW - 600)
    log(state, SLURM, Role.SLURM, NOW - 590)
    for number, written in ((1, NOW - 580), (2, NOW - 30)):
        log(state, f"7-logs/ray-worker-{number}.log", Role.WORKER, written)
    state.apply(Recovered(Source("7-logs/ray-worker-1.log", Role.WORKER, 3)))
    state.apply(UnitsOnline(8, 12, Source(SLURM, Role.SLURM, 9), NOW - 580))
    assert stuck(state, NOW - 580 + 100) == ()
    state.apply(UnitsOnline(8, 12, Source(SLURM, Role.SLURM, 10), NOW - 5))  # printed again: no progress
    identity, _, text = only(stuck(state, NOW, lambda name: f"retrying <{name[-5:]}>"))
    assert identity == "stuck-workers"
    assert "8 of 12 worker units have joined" in text
    assert "jwb0003 (ray-worker-2.log ends with: retrying <2.log>)" in text
    assert "jwb0002" not in text
    state.apply(UnitsOnline(12, 12, Source(SLURM, Role.SLURM, 11), NOW))
    assert stuck(state, NOW + 1000) == ()


def test_a_worker_without_a_log_is_named() -> None:
    state = RunState()
    state.apply(running())
    reach(state, "head-up", at=NOW - 600)
    log(state, "7-logs/ray-worker-1.log", Role.WORKER, NOW - 500)
    state.apply(UnitsOnline(4, 12, Source(SLURM, Role.SLURM, 9), NOW - 500))
    assert "jwb0003 (no log)" in only(stuck(state, NOW))[2]


@pytest.mark.parametrize(("awaited", "quiet"), [("teacher-ready", 1700), ("ray-attached", 500)])
def test_a_silent_set_up_is_measured_by_what_its_phase_takes(awaited: str, quiet: float) -> None:
    state = RunState()
    state.apply(running())
    reach(state, *UP[: UP.index(awaited)])
    log(state, DRIVER, Role.DRIVER, NOW - quiet)
    log(state, "7-logs/ray-head.log", Role.HEAD, NOW - quiet)
    assert stuck(state, NOW) == ()
    identity, _, text = only(stuck(state, NOW + quiet, lambda _: "Loading checkpoint shards: 3/8"))
    assert identity == "stuck-silent"
    assert "ray-driver.log" in text
    assert "the other logs are silent, too" in text
    assert "ends with: Loading checkpoint shards: 3/8" in text
    log(state, DRIVER, Role.DRIVER, NOW + quiet)
    assert stuck(state, NOW + quiet + 1) == ()


@pytest.mark.parametrize(("later", "active"), [(400.0, False), (500.0, True)])
def test_other_logs_are_active_if_written_after_half_of_the_limit(later: float, active: bool) -> None:
    """Data loading may be silent for 900 s: 450 s after the driver's last line count as activity."""
    state = RunState()
    state.apply(running())
    reach(state, *UP[: UP.index("data-loaded")])
    log(state, DRIVER, Role.DRIVER, NOW - 1000)
    log(state, "7-logs/ray-head.log", Role.HEAD, NOW - 1000 + later)
    text = only(stuck(state, NOW))[2]
    assert ("ray-head.log is still being written" in text) is active
    assert ("the other logs are silent, too" in text) is not active


def test_a_silent_driver_is_measured_by_its_own_steps() -> None:
    steps = [900.0, 400.0, 410.0, 390.0, 405.0, 400.0]
    assert stuck(training(steps, since=1000), NOW) == ()
    identity, _, text = only(stuck(training(steps, since=1300), NOW))
    assert identity == "stuck-silent"
    assert "step 7" in text
    assert "its steps took 7 min (median)" in text
    quick = [9.0, 2.0, 2.1, 2.0, 1.9, 2.0]
    assert stuck(training(quick, since=250), NOW) == ()
    assert only(stuck(training(quick, since=950), NOW))[0] == "stuck-silent"


def test_a_step_that_takes_far_longer_than_before_though_the_driver_prints() -> None:
    state = training([60.0, 20.0, 21.0, 20.0, 22.0, 20.0], since=500)
    state.apply(MetricRecorded("validation_time_s", 4, 30.0, Source(DRIVER, Role.DRIVER, 4)))
    log(state, DRIVER, Role.DRIVER, NOW - 5)
    identity, title, text = only(stuck(state, NOW))
    assert (identity, title) == ("stuck-slow", "A step takes far longer than before")
    assert "step 7 has been running since" in text
    assert stuck(state, NOW - 500 + 90) == ()


def test_slow_steps_by_the_median_of_those_before() -> None:
    steady = [60.0] + [20.0, 22.0] * 8
    assert stuck(training(steady), NOW) == ()
    assert "step 18 took 3 min" in only(stuck(training([*steady, 190.0]), NOW))[2]
    assert stuck(training([*steady, 190.0, 21.0]), NOW) == ()  # one slow step is past
    assert only(stuck(training(steady + [75.0] * 6), NOW))[1] == "Steps have become far slower"
    saved = training([*steady, 190.0])
    saved.apply(CheckpointSaving(18, Source(DRIVER, Role.DRIVER, 4)))
    assert stuck(saved, NOW) == ()


def test_pending() -> None:
    def found(now: float = NOW, **said: Any) -> tuple[FindingSeen, ...]:
        state = RunState()
        state.apply(JobChanged(JobState.QUEUED, **{"submitted": NOW - 600, **said}))
        return stuck(state, now)

    assert found(reason="waiting: jobs of higher priority are before it (Priority)") == ()
    never: dict[str, Any] = {
        "reason": "it can never start: it asks for more (PartitionTimeLimit)",
        "fix": "a shorter --time",
    }
    assert "never start" in only(found(**never, stuck=True))[2]
    assert found(**never, stuck=True)[0].fix == "a shorter --time"
    assert found(**never) == ()  # what is stuck is decided where Slurm is known, not by words
    late: dict[str, Any] = {"reason": "next in line (Resources)", "starts": NOW + 60}
    assert found(**late) == ()
    assert "expected it to start at" in only(found(NOW + 1000, **late))[2]
    assert found(NOW + 3600, reason="x") == ()
    assert "does not predict a start" in only(found(NOW + 8000, reason="x"))[2]
    assert found(NOW + 8000, reason="x", unanswered="no answer") == ()


def test_a_job_without_any_log() -> None:
    state = RunState()
    state.apply(running(began=NOW - 200))
    assert stuck(state, NOW) == ()
    assert only(stuck(state, NOW + 200))[0] == "stuck-no-logs"


@pytest.mark.parametrize("ended", [JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.UNKNOWN])
def test_what_does_not_run_is_not_stuck(ended: JobState) -> None:
    state = training([9.0] * 8, since=9000)
    state.apply(JobChanged(ended))
    assert stuck(state, NOW) == ()


def test_lists_of_nodes() -> None:
    assert expanded("jwb[0009-0010,0100],login1,x[1]") == ("jwb0009", "jwb0010", "jwb0100", "login1", "x1")
    assert expanded("") == expanded("a[1") == expanded("a[1-x]") == expanded("a[1-99999999]") == ()


def test_a_watch_tells_it_and_takes_it_back(tmp_path: Path) -> None:
    text = DriverText([0.9], end="").text()
    driver = tmp_path / "ray-driver.log"
    driver.write_text(text.split("========================= Epoch")[0])
    written = driver.stat().st_mtime
    now = [written + 10]
    job = JobChanged(JobState.RUNNING, word="RUNNING", began=written - 60)
    watch = Watch(LocalTransport(), (str(tmp_path),), probe=lambda: job, now=lambda: now[0])
    printer = EventPrinter()

    def look(at: float) -> list[str]:
        now[0] = at
        events = [event for event in watch.poll() if isinstance(event, NoticesChanged)]
        for event in events:
            assert event_json(event)["event"] == "notices_changed"
        return [line for event in events for line in printer.lines(event, watch.state)]

    assert look(written + 10) == []
    (line,) = look(written + 2000)
    assert "! The driver is silent: nothing was written to ray-driver.log since" in line
    assert "ends with: " in line
    assert look(written + 2010) == []  # told once, as long as it stays so
    assert [item.id for item in watch.state.findings] == ["stuck-silent"]
    driver.write_text(text)
    os.utime(driver, (written + 2020, written + 2020))
    (line,) = look(written + 2021)
    assert "resolved: The driver is silent" in line
    assert watch.state.findings == []


def test_that_no_log_can_be_read_stays_true_when_the_job_is_over() -> None:
    state = RunState()
    source = Source("", Role.SLURM, 0)
    stuck_one = FindingSeen("stuck-workers", "Workers are missing", "warning", "", source)
    unreadable = FindingSeen("no-logs", "No log of this job can be read", "warning", "", source)
    state.apply(NoticesChanged((stuck_one, unreadable)))
    assert [item.id for item in state.findings] == ["stuck-workers", "no-logs"]
    state.apply(JobChanged(JobState.COMPLETED, ""))
    assert [item.id for item in state.findings] == ["no-logs"]
