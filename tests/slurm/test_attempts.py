"""Runs of several attempts, and clusters that give no answer, without a Slurm."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.errors import InputError, TransportError
from launcher.logs.events import (
    DriverEnded,
    Event,
    FindingSeen,
    JobChanged,
    JobState,
    LogChanged,
    MetricRecorded,
    MilestoneReached,
    Role,
    Source,
)
from launcher.monitor.attempts import SlurmRunState, attempt_of
from launcher.monitor.summary import state_json
from launcher.monitor.watch import Watch
from launcher.transports.local import LocalTransport
from tests.slurm.records import job, run_of, user_environment
from tests.slurm.test_following import Scripted
from tui.headless.plain import job_text, left_line

OLD, NEW = "logs/9-logs/", "logs/9-1-logs/"


def source(place: str, name: str = "ray-driver.log", role: Role = Role.DRIVER, line: int = 5) -> Source:
    return Source(f"{place}{name}", role, line)


@pytest.mark.parametrize(
    ("log", "attempt"),
    [
        ("logs/9-logs/ray-driver.log", (9, 0)),
        ("12-3-logs/launcher.log", (12, 3)),
        ("logs/slurm-9.out", (9, 0)),
        ("ray-driver.log", (0, 0)),
        ("my-logs/ray-driver.log", (0, 0)),
    ],
)
def test_which_attempt_a_log_belongs_to(log: str, attempt: tuple[int, int]) -> None:
    assert attempt_of(log) == attempt


def events_of_two_attempts() -> list[Event]:
    return [
        LogChanged(f"{OLD}ray-driver.log", Role.DRIVER, 1, 1),
        MilestoneReached("first-step", source(OLD)),
        MilestoneReached("completed", source(OLD)),
        FindingSeen("ray-actor-died", "An actor died", "fatal", "x", source(OLD, line=90)),
        DriverEnded(143, source(OLD, "launcher.log", Role.SLURM)),
        MetricRecorded("loss", 7, 0.5, source(OLD)),
        MetricRecorded("loss", 8, 0.4, source(OLD)),
        LogChanged(f"{NEW}ray-driver.log", Role.DRIVER, 1, 1),
        MilestoneReached("head-up", source(NEW, "ray-head.log", Role.HEAD)),
        MetricRecorded("loss", 8, 0.44, source(NEW)),
    ]


def test_only_the_latest_attempt_counts_in_whatever_order_logs_are_read() -> None:
    events = events_of_two_attempts()
    seen = set()
    for first in itertools.permutations(events[:5]):
        for order in ([*first, *events[5:]], [*events[5:], *first]):
            state = SlurmRunState()
            for event in order:
                state.apply(event)
            state.apply(JobChanged(JobState.RUNNING, job="9", word="RUNNING"))
            seen.add(
                (state.state, tuple(state.milestones), state.metrics["loss"][7], state.metrics["loss"][8])
            )
            assert state.findings == []
    assert seen == {(JobState.STARTING, ("head-up",), 0.5, 0.44)}


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize("code", [0, 1, 143])
@pytest.mark.parametrize("word", ["RUNNING", "COMPLETING"])
def test_the_end_of_a_driver_before_slurm_tells(links: int, code: int, word: str) -> None:
    """A signal is Slurm's to explain, and a chain may go on; else the driver's code is the end."""
    state = SlurmRunState(links=links)
    state.apply(DriverEnded(code, source("logs/9-logs/", "launcher.log", Role.SLURM)))
    state.apply(JobChanged(JobState.RUNNING, job="9", word=word))
    waits = code == 143 or links > 1
    expected = {0: "completed", 1: "failed"}.get(code, "")
    assert state.state.value == ("running" if waits else expected)
    assert state.settled is (code == 0 and not waits)
    state.apply(JobChanged(JobState.FAILED, "the time limit was reached", job="9", word="TIMEOUT"))
    assert state.settled
    if code == 143:
        assert (state.state.value, state.reason) == ("failed", "the time limit was reached")


def test_a_watch_survives_a_cluster_that_gives_no_answer(tmp_path: Path) -> None:
    answers: list[JobChanged | Exception] = [
        TransportError("Socket timed out"),
        JobChanged(JobState.QUEUED, "waiting: jobs of higher priority are before it", word="PENDING"),
        TransportError("Unable to contact slurm controller"),
        TransportError("Socket timed out"),
        InputError("run.json is damaged"),
        JobChanged(JobState.RUNNING, word="RUNNING"),
    ]

    def probe() -> JobChanged:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    watch = Watch(LocalTransport(), (str(tmp_path),), probe=probe)
    told = []
    while answers:
        watch.poll()
        told.append((watch.state.state.value, watch.state.reason))
    assert [state for state, _ in told] == ["unknown", "queued", "queued", "queued", "queued", "starting"]
    assert told[0][1] == "the cluster does not answer: Socket timed out"
    assert "last known status (waiting: jobs of higher" in told[2][1]
    assert told[2][1].endswith("the cluster does not answer: Unable to contact slurm controller")
    assert told[3][1] == "last known status; the cluster does not answer: Socket timed out"
    assert told[5][1] == ""


def test_accounting_that_gives_no_answer_is_not_the_end(tmp_path: Path) -> None:
    transport = Scripted(squeue="", sacct=None)
    run = run_of(tmp_path, transport, (job("7"),))
    for _ in range(3):
        answer = SlurmCluster(transport, str(tmp_path), user_environment(tmp_path)).state(run, run.jobs[0])
        assert answer is not None
        assert (answer.state, answer.over) == (JobState.UNKNOWN, False)
        assert "accounting gives no answer" in answer.reason


def test_a_finished_job_s_exit_code_comes_from_accounting(tmp_path: Path) -> None:
    transport = Scripted(
        squeue="7|FAILED|1|1|5|n[1-2]|NonZeroExitCode|dt-1", sacct="7|FAILED|1|1|5|n[1-2]|3:0|sbatch"
    )
    run = run_of(tmp_path, transport, (job("7"),))
    answer = SlurmCluster(transport, str(tmp_path), user_environment(tmp_path)).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.word, answer.exit_code, answer.nodes) == ("FAILED", "3:0", "n[1-2]")
    assert answer.reason == "the job ended with exit code 3"


def test_time_left_against_steps_left() -> None:
    import time

    state = SlurmRunState(plan_max_steps=20)
    for step in range(1, 11):
        state.apply(MetricRecorded("loss", step, 1.0, source(OLD)))
        state.apply(MetricRecorded("step_time_s", step, 10.0, source(OLD)))
    state.apply(JobChanged(JobState.RUNNING, word="RUNNING", nodes="n1", deadline=time.time() + 65))
    metrics = state_json("r", state)["metrics"]
    assert metrics["steps_that_fit"] == 6
    assert left_line(metrics).startswith("00:01:0")
    assert left_line(metrics).endswith("time for about 6 steps, 10 to go (not enough)")
    assert state.job is not None
    assert "running on n1, until " in job_text(state.job)
    assert left_line({"left_s": None}) == ""
