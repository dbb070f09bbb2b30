"""Hostile logs, run directories and Slurm commands: read within limits, or refused in words; nothing hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.hostile.attempts import Attempt, Outcome
from tests.hostile.log_inputs import log_attempts, run_attempts_of_directories, slurm_attempts
from tests.hostile.verdicts import tally

GROUPS: dict[str, tuple[Callable[..., Iterable[Attempt]], int]] = {
    "logs": (log_attempts, 700),
    "run directories": (run_attempts_of_directories, 700),
    "Slurm commands": (slurm_attempts, 250),
}


def nothing(attempt: Attempt, folder: Path, outcome: Outcome) -> Iterator[str]:
    """Look at nothing else: an order about a run writes into its directory."""
    del attempt, folder, outcome
    return iter(())


@pytest.mark.long
@pytest.mark.parametrize("group", GROUPS)
def test_hostile_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str], group: str) -> None:
    make, _ = GROUPS[group]
    result = tally(make(10, seed=1), tmp_path, nothing)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.bad == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_many_hostile_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str], group: str) -> None:
    make, count = GROUPS[group]
    result = tally(make(count, seed=2), tmp_path, nothing)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.tried[group] == count
    assert result.bad == []
