"""What is printed of events, a line each."""

from __future__ import annotations

import pytest

from launcher.logs.events import MilestoneReached, ProcessSignalled, Role, Source, StoppedToSave
from launcher.monitor.state import RunState
from tui.headless.plain import EventPrinter

HERE = ("logs/slurm-local-c7ba11.out", "logs/local-c7ba11-logs/launcher.log")
JOB = ("logs/slurm-7.out", "logs/7-logs/launcher.log")


@pytest.mark.parametrize(
    ("logs", "times"),
    [
        (HERE, 1),
        (HERE[::-1], 1),
        (JOB, 1),
        (("driver.log", "elsewhere/driver.log"), 1),
        ((*JOB, "logs/7-1-logs/launcher.log"), 2),  # requeued
        ((*JOB, "logs/slurm-8.out", "logs/8-logs/launcher.log"), 2),  # the next job of a chain
    ],
)
def test_a_milestone_is_told_once_of_each_attempt(logs: tuple[str, ...], times: int) -> None:
    printer, state = EventPrinter(), RunState()
    lines: list[str] = []
    for log in logs:
        event = MilestoneReached("head-up", Source(log, Role.SLURM, 4))
        state.apply(event)
        lines += printer.lines(event, state)
    assert len(lines) == times
    assert all("Ray head up" in line for line in lines)


def test_a_save_before_the_time_limit_and_a_signal_are_lines() -> None:
    printer, state, source = EventPrinter(), RunState(), Source("ray-driver.log", Role.DRIVER, 7)
    assert printer.lines(StoppedToSave(source), state) == [
        "--:--:--  · saved, and stopped before the time limit"
    ]
    assert printer.lines(ProcessSignalled("SIGTERM", source), state) == [
        "--:--:--  ! SIGTERM (ray-driver.log:7)"
    ]
