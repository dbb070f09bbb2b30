"""Silence names the phase, since when, what is usual for it and who is missing."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.events import (
    JobState,
    MetricRecorded,
    PhaseBegan,
    Role,
    Source,
)
from launcher.logs.gpu_tables import NodeGpus, read_table_end
from launcher.monitor.state import RunState
from launcher.monitor.stuck import stuck
from launcher.monitor.watch import Watch
from launcher.transports.local import LocalTransport
from tests.driver_text import DriverText
from tests.launcher.stuck_states import DRIVER, NOW, only, training


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
