"""What is stuck and what is merely slow: by hand-made states, and healthy runs replayed at any moment."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.events import (
    CheckpointSaving,
    FindingSeen,
    JobChanged,
    JobState,
    LogChanged,
    MetricRecorded,
    MilestoneReached,
    NoticesChanged,
    PhaseBegan,
    Recovered,
    Role,
    Source,
    StepBegan,
    UnitsOnline,
)
from launcher.logs.gpu_tables import NodeGpus, read_table_end
from launcher.logs.node_names import expanded
from launcher.monitor.state import RunState
from launcher.monitor.stuck import stuck
from launcher.monitor.summary import event_json
from launcher.monitor.watch import Watch
from launcher.transports.local import LocalTransport
from tests.driver_text import DriverText
from tui.headless.plain import EventPrinter

NOW = 1_795_800_000.0
DRIVER, SLURM = "7-logs/ray-driver.log", "7-logs/launcher.log"
UP = ("head-up", "workers-connected", "driver-started", "ray-attached", "data-loaded", "teacher-ready",
      "generation-ready", "student-ready", "setup-complete")  # fmt: skip


def running(**changes: object) -> JobChanged:
    job = JobChanged(
        JobState.RUNNING,
        word="RUNNING",
        job="7",
        nodes="jwb[0001-0003]",
        submitted=NOW - 9000,
        began=NOW - 8000,
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def log(state: RunState, name: str, role: Role, written: float) -> None:
    state.apply(LogChanged(name, role, 100, 10, time=written))


def reach(state: RunState, *names: str, at: float = NOW - 7900) -> None:
    for name in names:
        state.apply(MilestoneReached(name, Source(DRIVER, Role.DRIVER, 1), at))


def training(times: Sequence[float], since: float = 0.0) -> RunState:
    """Return a run that has done some steps, and has been in the next one for so long."""
    state = RunState()
    state.apply(running())
    reach(state, *UP, "first-step")
    for step, took in enumerate(times, 1):
        state.apply(MetricRecorded("loss", step, 1.0, Source(DRIVER, Role.DRIVER, step)))
        state.apply(MetricRecorded("step_time_s", step, took, Source(DRIVER, Role.DRIVER, step)))
    state.apply(StepBegan(len(times) + 1, Source(DRIVER, Role.DRIVER, 900), NOW - since))
    log(state, DRIVER, Role.DRIVER, NOW - since)
    return state


def only(found: tuple[FindingSeen, ...]) -> tuple[str, str, str]:
    (one,) = found
    assert one.severity == "warning"
    return one.id, one.title, one.text


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


# ------------------------------------------------------------ healthy runs


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


def test_that_no_log_can_be_read_stays_true_when_the_job_is_over() -> None:
    state = RunState()
    source = Source("", Role.SLURM, 0)
    stuck_one = FindingSeen("stuck-workers", "Workers are missing", "warning", "", source)
    unreadable = FindingSeen("no-logs", "No log of this job can be read", "warning", "", source)
    state.apply(NoticesChanged((stuck_one, unreadable)))
    assert [item.id for item in state.findings] == ["stuck-workers", "no-logs"]
    state.apply(JobChanged(JobState.COMPLETED, ""))
    assert [item.id for item in state.findings] == ["no-logs"]


def in_phase(phase: str, since: float, **times: Sequence[float]) -> RunState:
    """Return a run in step 7 that has been in a phase for so long; `times` of phases that were measured."""
    state = training([400.0] * 6, since=since)
    for name, values in times.items():
        for step, value in enumerate(values, 1):
            state.apply(MetricRecorded(f"{name}_time_s", step, value, Source(DRIVER, Role.DRIVER, step)))
    state.apply(PhaseBegan(phase, 7, Source(DRIVER, Role.DRIVER, 901), NOW - since))
    return state


@pytest.mark.parametrize(
    ("phase", "activity"),
    [
        ("checkpoint", "saving the checkpoint of step 7"), ("validation", "validating at step 7"),
        ("generation", "generating the responses of step 7"),
    ],
)  # fmt: skip
def test_silence_names_the_phase_since_when_and_what_is_usual(phase: str, activity: str) -> None:
    usual = [30.0, 40.0, 36.0, 33.0, 35.0]
    assert stuck(in_phase(phase, 250, **{phase: usual}), NOW) == ()
    text = only(stuck(in_phase(phase, 330, **{phase: usual}), NOW))[2]
    since = time.strftime("%H:%M:%S", time.localtime(NOW - 330))
    usually = "before, this took 35 s .median., at most 40 s"
    assert re.search(rf"during: {activity} since \w+ \d+ {since}; {usually}", text)
    # Without a measurement the steps are the measure: a first save may take its time.
    unmeasured = stuck(in_phase(phase, 330), NOW)
    assert unmeasured == ()


def test_silence_names_the_nodes_that_no_longer_report_and_whose_gpus_idle() -> None:
    state = in_phase("training", 3000)
    nodes = (
        NodeGpus("jwb0001", NOW - 5, busy=True),
        NodeGpus("jwb0002", NOW - 8, idle=(0, 3), busy=True),
        NodeGpus("jwb0003", NOW - 600, idle=(1,)),
    )
    text = only(stuck(state, NOW, gpus=lambda: nodes))[2]
    since = time.strftime("%b %d %H:%M:%S", time.localtime(NOW - 600))
    assert f"no longer reporting: jwb0003 (since {since})" in text
    assert "idle while others are busy: jwb0002 GPU 0, 3" in text
    assert "idle" not in only(stuck(state, NOW, gpus=lambda: (NodeGpus("a", NOW, idle=(0, 1)),)))[2]
    assert "reporting" not in only(stuck(state, NOW))[2]


def test_a_watch_reads_the_tables_of_gpu_use(tmp_path: Path) -> None:
    logs = tmp_path / "7-logs"
    logs.mkdir()
    heading = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB]\n"
    for node, uses in (("jwb0001", (99, 100)), ("jwb0002", (0, 97))):
        rows = [
            f"2026-11-28T13:0{minute}:00+0100,{index},{use},900,40960\n"
            for minute in range(5)
            for index, use in enumerate(uses)
        ]
        (logs / f"gpu-{node}.csv").write_text(heading + "".join(rows) + "2026-11-28T13:05:00+0100,0,")
    (logs / "ray-driver.log").write_text(DriverText([0.9], 9, end="").text())
    watch = Watch(LocalTransport(), (str(tmp_path),))
    watch.poll()
    assert {(node.node, node.idle, node.busy) for node in watch._gpus()} == {
        ("jwb0001", (), True), ("jwb0002", (0,), True),
    }  # fmt: skip
    assert set(watch.state.logs) == {"7-logs/ray-driver.log"}


@given(st.binary(max_size=300))
def test_a_damaged_table_of_gpu_use_is_passed_over(data: bytes) -> None:
    assert read_table_end("n", 1.0, data).node == "n"


def test_a_log_that_just_ends_tells_what_was_going_on(tmp_path: Path) -> None:
    text = DriverText([0.9, 0.8], 20, save_at=(2,), end="").text()
    cut = text[: text.index("Saving checkpoint for step 2...")] + "Saving checkpoint for step 2...\n"
    (tmp_path / "ray-driver.log").write_text(cut)
    os.utime(tmp_path / "ray-driver.log", (NOW - 2000, NOW - 2000))
    watch = Watch(LocalTransport(), (str(tmp_path),), now=lambda: NOW)
    watch.catch_up(final=True)
    assert watch.state.state is JobState.UNKNOWN
    assert watch.state.reason.endswith("the last thing was saving the checkpoint of step 2")
    saved = Source("ray-driver.log", Role.DRIVER, 3)
    watch.state.apply(MetricRecorded("checkpoint_time_s", 1, 33.4, saved))
    watch.state.apply(PhaseBegan("checkpoint", 2, saved, NOW))
    at = time.strftime("%b %d %H:%M:%S", time.localtime(NOW))
    assert watch.state.reason.endswith(f"of step 2 since {at} (before, this took 33.4 s)")
