"""Whether a driver that ended without an error did what its recipe asks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.events import DriverEnded, JobChanged, JobState, Role, Source
from launcher.monitor.ending import RESUME_HINT, RunProgress, clean_end
from launcher.monitor.state import RunState
from launcher.monitor.watch import watch_directory
from launcher.transports.local import LocalTransport
from tests.driver_text import BAR, DriverText

TIMEOUT = "Timeout has been reached, stopping training early"
COMPLETED, STOPPED, FAILED = JobState.COMPLETED, JobState.STOPPED, JobState.FAILED


def state_of(tmp_path: Path, text: str, *, code: int | None = None, steps: int | None = None) -> RunState:
    (tmp_path / "ray-driver.log").write_text(text)
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.state.plan_max_steps = steps
    watch.catch_up(final=True)
    if code is not None:
        watch.state.apply(DriverEnded(code, Source("launcher.log", Role.SLURM, 9)))
    return watch.state


@pytest.mark.parametrize("code", [0, None])
def test_a_save_before_the_time_limit_is_no_completion(tmp_path: Path, code: int | None) -> None:
    text = DriverText([0.9, 0.8, 0.7], 50, save_at=(3,), end=TIMEOUT).text()
    state = state_of(tmp_path, text, code=code, steps=3000)
    expected = f"stopped at step 3 of 3000 to save before its time limit; {RESUME_HINT}"
    assert (state.state, state.reason) == (STOPPED, expected)
    assert state.settled
    assert "completed" not in state.milestones
    assert state.awaited is None


def test_a_time_limit_in_the_last_step_is_a_completion(tmp_path: Path) -> None:
    state = state_of(tmp_path, DriverText([0.9, 0.8], 50, end=TIMEOUT).text(), code=0, steps=2)
    assert (state.state, state.reason) == (COMPLETED, "")


def test_epochs_that_are_used_up_before_the_steps(tmp_path: Path) -> None:
    text = DriverText([0.9, 0.8, 0.7, 0.6], 2, samples=16, end="").text()
    state = state_of(tmp_path, text, code=0, steps=1000)
    assert (state.state, state.reason) == (
        COMPLETED, "all 2 epochs are used up at step 4, before max_num_steps (1000)",
    )  # fmt: skip
    assert state_of(tmp_path, text, code=0).reason == ""  # nobody knows of more steps


def test_epochs_that_are_used_up_in_a_log_that_just_ends(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_text(DriverText([0.9, 0.8], 2, samples=16, end="").text())
    os.utime(tmp_path / "ray-driver.log", (1, 1))
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up(final=True)
    assert watch.state.state is COMPLETED


def test_an_end_in_the_middle_that_nobody_explains(tmp_path: Path) -> None:
    text = DriverText([0.9, 0.8, 0.7], 2, samples=16, end="").text()  # the first of two steps of epoch 2
    state = state_of(tmp_path, text.replace("Epoch 1/2", "Epoch 1/3"), code=0, steps=1000)
    assert (state.state, state.reason) == (
        FAILED, "its driver ended without an error at step 3 of 1000; no log says why",
    )  # fmt: skip


def test_a_training_set_that_is_smaller_than_a_step(tmp_path: Path) -> None:
    setup = DriverText([], samples=5).setup()
    banners = [f"{BAR} Epoch {epoch}/3 {BAR}" for epoch in (1, 2, 3)]
    state = state_of(tmp_path, "\n".join([*setup, *banners, ""]), code=0, steps=10)
    assert state.state is FAILED
    assert "fewer samples (5) than distillation.num_prompts_per_step" in state.reason


def test_a_start_with_nothing_left_to_do(tmp_path: Path) -> None:
    text = "\n".join(
        [*DriverText([]).setup(), "(W pid=7) Loading weights from /c/step_40/policy/weights", ""]
    )
    state = state_of(tmp_path, text, code=0, steps=40)
    assert (state.state, state.reason) == (
        COMPLETED, "nothing was left to do after the checkpoint of step 40",
    )  # fmt: skip


def test_the_steps_of_a_printed_configuration(tmp_path: Path) -> None:
    for form in ("'max_num_steps': 60,", "  max_num_steps: 60", "distillation.max_num_steps=60"):
        text = DriverText([0.9], 50, end=TIMEOUT).text()
        assert "of 60 to save" in state_of(tmp_path, f"{form}\n{text}").reason, form


def test_a_job_that_slurm_calls_completed_is_judged_by_its_log(tmp_path: Path) -> None:
    state = state_of(tmp_path, DriverText([0.9], 50, end=TIMEOUT).text())
    state.apply(JobChanged(COMPLETED, "", word="COMPLETED", exit_code="0:0"))
    assert state.state is STOPPED
    assert RunState().state is JobState.UNKNOWN
    other = RunState()  # a job that is no training, as far as anyone can see
    other.apply(JobChanged(COMPLETED, "", word="COMPLETED", exit_code="0:0"))
    assert other.state is COMPLETED


@pytest.mark.parametrize(
    "line",
    [
        "*** SIGTERM received at time=1764298800 on cpu 3 ***",
        "[2026-11-28 13:07:00,1 E 5 5] logging.cc:440: *** SIGTERM received at time=1 ***",
        "/var/spool/slurmd/job14/slurm_script: line 12: 4711 Terminated              python run.py",
        "Terminated",
        "srun: error: jwb0002: task 3: Terminated",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 12 got signal: 15",
        "W1128 agent.py:699] Received Signals.SIGTERM death signal, shutting down workers",
    ],
)
def test_a_driver_that_was_told_to_end_and_nobody_says_by_whom(tmp_path: Path, line: str) -> None:
    state = state_of(tmp_path, f"{DriverText([0.9], 50, end='').text()}{line}\n")
    assert state.state is JobState.CANCELLED, state.reason
    for sender in ("SIGTERM", "time limit", "scancel", "preemption", "node"):
        assert sender in state.reason
    state.apply(JobChanged(FAILED, "the time limit was reached", word="TIMEOUT"))
    assert state.state is FAILED  # Slurm knows who
    state.apply(JobChanged(JobState.RUNNING, word="RUNNING"))
    assert state.state.value == "running"


def test_a_signal_that_the_driver_went_on_after_is_not_the_end(tmp_path: Path) -> None:
    text = DriverText([0.9], 50, end="").text()
    later = "\n".join(DriverText([0.8], 50, first_step=2, end="").lines())
    state = state_of(tmp_path, f"{text}Terminated\n{later}\n")
    assert state.state is not JobState.CANCELLED


numbers = st.none() | st.integers(0, 6)


@given(
    st.builds(
        RunProgress, step=st.integers(0, 6), max_steps=numbers, epoch=numbers, epochs=numbers,
        epoch_step=numbers, steps_per_epoch=numbers, resumed=numbers, current=numbers, samples=numbers,
        set_up=st.booleans(), said_completed=st.booleans(), said_saved=st.booleans(),
    )
)  # fmt: skip
def test_completed_is_only_what_is_done(progress: RunProgress) -> None:
    status = clean_end(progress)
    assert status.state.ended
    if status.state is COMPLETED and progress.current is not None and progress.max_steps is not None:
        assert progress.said_completed or progress.reached_steps or progress.used_epochs
    if status.state is not COMPLETED:
        assert status.reason
