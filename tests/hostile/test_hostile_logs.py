"""Hostile logs, runs, files of the user, machines and Slurm commands: read within limits, or refused in words."""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hostile.attempts import Attempt, Outcome
from tests.hostile.chart_inputs import chart_attempts
from tests.hostile.launcher_inputs import planted_directories, wrong_with_start
from tests.hostile.log_inputs import log_attempts
from tests.hostile.run_inputs import (
    run_attempts_of_directories,
    silent_mounts,
    silent_slurm_attempts,
    slurm_attempts,
    troubled_attempts,
)
from tests.hostile.state_inputs import state_attempts
from tests.hostile.submit_inputs import doctor_attempts, no_false_stop, order_attempts, submit_attempts
from tests.hostile.test_hostile_writes import needs_root, open_to_all
from tests.hostile.verdicts import Look, tally


def nothing(attempt: Attempt, folder: Path, outcome: Outcome) -> Iterator[str]:
    """Look at nothing else: an order about a run writes into its directory."""
    del attempt, folder, outcome
    return iter(())


class Group(NamedTuple):
    """Generator of attempts, with their number in the slow set and how many batches run side by side."""

    make: Callable[..., Iterable[Attempt]]
    size: int
    at_once: int = 1
    look: Look = nothing
    """Further look at what an attempt left behind."""
    few: int = 10
    """Attempts of the long set."""


GROUPS = {
    "logs": Group(log_attempts, 700),
    "run directories": Group(run_attempts_of_directories, 700),
    "charts": Group(chart_attempts, 300),
    "files of the user": Group(
        partial(state_attempts, names=(platform.node().replace("/", "_"), getpass.getuser())), 300
    ),
    "troubled machines": Group(troubled_attempts, 400),
    "Slurm commands": Group(slurm_attempts, 300),
    "submissions": Group(submit_attempts, 300, few=4),
    "doctor": Group(doctor_attempts, 150, few=3),
    "orders": Group(order_attempts, 60, at_once=10, look=no_false_stop),
    "silent Slurm": Group(silent_slurm_attempts, 60, at_once=6),
    "silent mounts": Group(silent_mounts, 24, at_once=12),
}
WAITING = ("orders", "silent Slurm", "silent mounts")


@pytest.mark.long
@pytest.mark.parametrize("group", [name for name in GROUPS if name not in WAITING])
def test_hostile_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str], group: str) -> None:
    result = tally(GROUPS[group].make(GROUPS[group].few, seed=1), tmp_path, GROUPS[group].look)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.bad == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_many_hostile_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str], group: str) -> None:
    one = GROUPS[group]
    count = int(os.environ.get("DISTILL_TUI_ATTEMPTS", one.size))
    seed = int(os.environ.get("DISTILL_TUI_SEED", "2"))
    result = tally(one.make(count, seed=seed), tmp_path, one.look, at_once=one.at_once)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.tried[group] == count
    assert result.bad == [], "\n".join(result.bad)


@needs_root
@pytest.mark.parametrize(
    "count", [30, pytest.param(300, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_what_others_plant_for_the_launcher(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    open_to_all(tmp_path)
    bad = [
        f"{planted}: {wrong}"
        for number, planted in enumerate(planted_directories(count, seed=count))
        for wrong in wrong_with_start(planted, tmp_path / str(number))
    ]
    with capsys.disabled():
        print(f"\nlauncher: tried {count}, bad {len(bad)}")
    assert bad == []
