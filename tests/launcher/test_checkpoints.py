"""Checkpoints: which is complete, which comes next, and what stopping now loses."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.logs.events import CheckpointSaving, MetricRecorded, Role, Source
from launcher.monitor.checkpoints import (
    LossAtRisk,
    complete_checkpoint,
    loss_of,
    next_checkpoint,
    save_period,
    saving,
)
from launcher.monitor.state import RunState
from launcher.transports.local import LocalTransport

LAST = "the last checkpoint is of step"
WHERE = Source("ray-driver.log", Role.DRIVER, 1)


def state(done: int, *saved: int) -> RunState:
    told = RunState()
    for step in saved:
        told.apply(CheckpointSaving(step, WHERE, 1000.0 + step))
    for step in range(1, done + 1):
        told.apply(MetricRecorded("loss", step, 1.0, WHERE))
    return told


def test_a_checkpoint_is_complete_when_its_step_is_done() -> None:
    assert complete_checkpoint(state(19, 10, 20)) == 10
    assert saving(state(19, 10, 20)) == 20
    assert complete_checkpoint(state(20, 10, 20)) == 20
    assert saving(state(20, 10, 20)) is None
    assert complete_checkpoint(state(3)) is None


def test_which_comes_next() -> None:
    assert next_checkpoint(state(19, 10, 20), 10) == 20
    assert next_checkpoint(state(20, 10, 20), 10) == 30
    assert next_checkpoint(state(5), 10) == 10
    assert next_checkpoint(state(5), None) is None
    last = state(25)
    last.plan_max_steps = 27
    assert next_checkpoint(last, 10) == 27


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (LossAtRisk(0), "No training step is finished yet."),
        (LossAtRisk(7), "Step 7 is done and no checkpoint was saved: all of it would be lost."),
        (LossAtRisk(7, 7), "Step 7 is done; the last checkpoint is of step 7: no finished step is lost."),
        (LossAtRisk(8, 7, 30.0), f"Step 8 is done; {LAST} 7, saved 30 s ago: 1 step would be lost."),
        (LossAtRisk(9, 7, 600.0), f"Step 9 is done; {LAST} 7, saved 10 min ago: 2 steps would be lost."),
    ],
)
def test_what_is_lost(loss: LossAtRisk, words: str) -> None:
    assert loss.in_words() == words


def test_the_loss_of_a_state() -> None:
    assert loss_of(state(25, 10, 20), 1080.0) == LossAtRisk(25, 20, 60.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("checkpointing: {save_period: 7}", 7),
        ("checkpointing: {enabled: false, save_period: 7}", 0),
        ("checkpointing: {}", None),
        ("- 1", None),
    ],
)
def test_how_often_it_saves(tmp_path: Path, text: str, expected: int | None) -> None:
    assert save_period(LocalTransport(), str(tmp_path)) is None
    (tmp_path / "effective.yaml").write_text(text)
    assert save_period(LocalTransport(), str(tmp_path)) == expected
    (tmp_path / "effective.yaml").write_text("{")
    with pytest.raises(InputError):
        save_period(LocalTransport(), str(tmp_path))
