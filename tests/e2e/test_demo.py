"""The whole path on this machine: a real Ray cluster, a real (tiny) distillation, real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command import Command, processes_of

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(240)]
MILESTONES = [
    *("head-up", "workers-connected", "driver-started", "ray-attached", "data-loaded", "teacher-ready"),
    *("generation-ready", "student-ready", "setup-complete", "first-step", "first-validation"),
    *("first-checkpoint", "completed"),
]
SHORT = ("distillation.max_num_steps=6", "distillation.val_period=3", "checkpointing.save_period=3")

ENDLESS = ("distillation.max_num_steps=100000", "distillation.max_num_epochs=100000")


@pytest.fixture(scope="module")
def finished(installed: Command) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the demo once, from the wheel."""
    done = installed("demo", "--plain")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = installed.runs.iterdir()
    return done, run


def test_all_milestones_in_order_and_the_loss_falls_by_half(
    finished: tuple[subprocess.CompletedProcess[str], Path], installed: Command
) -> None:
    printed = finished[0].stdout
    assert re.findall(r"✓ .{26} ([a-z-]+) ", printed) == MILESTONES
    losses = [float(value) for value in re.findall(r"step \d+/\d+  loss ([\d.]+)", printed)]
    assert len(losses) >= 20
    assert sum(losses[-3:]) <= sum(losses[:3]) / 2
    assert "\x1b" not in printed
    assert processes_of(installed.runs) == {}


def test_the_finished_run_a_copy_and_its_bare_logs_say_the_same(
    finished: tuple[subprocess.CompletedProcess[str], Path], installed: Command, tmp_path: Path
) -> None:
    run = finished[1]
    shutil.copytree(run, tmp_path / "copy")
    (bare,) = (run / "logs").glob("*-logs")
    shutil.copytree(bare, tmp_path / "bare")
    states = [
        json.loads(installed("watch", "--once", "--json", str(path)).stdout)
        for path in (run, tmp_path / "copy", tmp_path / "bare")
    ]
    for state in states:
        assert state["state"] == "completed"
        assert [milestone["id"] for milestone in state["milestones"]] == MILESTONES
        assert state["findings"] == []
        assert state["metrics"] == states[0]["metrics"]
        assert [milestone["time"] for milestone in state["milestones"]] == sorted(
            milestone["time"] for milestone in states[0]["milestones"]
        )
    assert states[0]["metrics"]["loss"][-1] < states[0]["metrics"]["loss"][0] / 2
    (listed,) = json.loads(installed("runs", "--json").stdout)["runs"]
    assert (listed["state"], listed["dir"]) == ("completed", str(run))


def test_everything_of_the_run_is_in_its_directory(
    finished: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    run = finished[1]
    assert {"run.json", "jobs.json", "plan.json", "recipe.yaml", "effective.yaml", "ray_bare.sub"} <= set(
        os.listdir(run)
    )
    assert list((run / "output" / "checkpoints").glob("step_*"))
    driver = next(run.glob("logs/*/ray-driver.log")).read_text()
    assert "rehearsal" in driver.splitlines()[0].lower()
    assert "ray_bare.sub" not in driver
    for path in run.rglob("*"):
        assert not path.is_file() or path.stat().st_mode & 0o777 in (0o644, 0o755), path


@pytest.mark.parametrize("after_s", [0.5, 2.5, pytest.param(9.0, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_moment_leaves_nothing_running(after_s: float, tmp_path: Path) -> None:
    command = Command(tmp_path / "runs")
    process = command.start("demo", "--plain", *SHORT)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT), said
    assert "Traceback" not in said
    assert processes_of(command.runs) == {}
    if command.runs.exists():
        for run in command.runs.iterdir():
            assert json.loads(command("watch", "--once", "--json", str(run)).stdout)["state"] == "cancelled"


@pytest.mark.slow  # a killed terminal is tested in test_terminal.py
def test_a_killed_program_leaves_the_run_going_and_it_can_be_cancelled_later(tmp_path: Path) -> None:
    command = Command(tmp_path / "runs")
    # One of the usual length may end before `cancel` reaches it: a command takes seconds on a busy machine.
    process = command.start("demo", "--plain", *ENDLESS)
    assert process.stdout is not None
    for line in process.stdout:
        if "workers-connected" in line:
            break
    process.kill()
    process.communicate()
    (listed,) = json.loads(command("runs", "--json").stdout)["runs"]
    assert listed["state"] in ("starting", "running")
    assert processes_of(command.runs)
    done = command("cancel", listed["run"])
    assert done.returncode == 0, done.stderr
    assert processes_of(command.runs) == {}
    (listed,) = json.loads(command("runs", "--json").stdout)["runs"]
    assert (listed["state"], listed["reason"]) == ("cancelled", "cancelled by you")
    assert "has already ended" in command("cancel", listed["run"]).stderr
