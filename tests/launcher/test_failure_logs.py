"""Failures and healthy logs in many wordings (`tests/cases/logs/failures`): each has its cause, or none."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.logs.events import FindingSeen, JobState, Role
from launcher.monitor.diagnosis import is_failed_step
from tests.launcher.test_diagnosis import Log, state_of
from tests.launcher.test_public_cases import has

_FOLDER = Path(__file__).parents[1] / "cases" / "logs" / "failures"
_HEALTHY = "healthy"


def cases() -> Iterator[Any]:
    """Yield name, case and whether it is healthy; the name of a case is unique in its file."""
    for file in sorted(_FOLDER.glob("*.toml")):
        for name, case in tomllib.loads(file.read_text(encoding="utf-8")).items():
            yield pytest.param(case, file.stem == _HEALTHY, id=f"{file.stem}-{name}")


def logs_of(case: dict[str, Any]) -> list[Log]:
    """Return the logs of a case: `log`, or several `logs`, each of a role."""
    parts = case.get("logs", [case])
    return [
        (f"log-{number}", Role(part.get("role", "driver")), part["log"].encode())
        for number, part in enumerate(parts)
    ]


def problems(case: dict[str, Any], root: FindingSeen, logs: list[Log]) -> Iterator[str]:
    """Yield what is wrong with a root."""
    text = next(data for name, _, data in logs if name == root.source.log).decode()
    line = text.split("\n")[root.source.line - 1]
    if not has(case["root"], line):
        yield f"line {root.source.line}: {line}"
    if "fix" in case and not has(case["fix"], root.fix):
        yield f"fix {root.fix}"
    for key, value in (("id", root.id), ("rank", root.rank), ("node", root.node), ("tier", root.tier)):
        right = case.get(key, value)
        if value not in (right if isinstance(right, list) else [right]):
            yield f"{key} {value}"


@pytest.mark.parametrize(("case", "healthy"), cases())
def test_a_log_has_its_cause_or_none(case: dict[str, Any], healthy: bool) -> None:
    logs = logs_of(case)
    state = state_of(*logs)
    root = state.diagnosis.root
    if healthy:
        assert root is None
        assert [item.id for item in state.findings if item.severity == "fatal"] == []
        return
    assert root is not None
    assert list(problems(case, root, logs)) == []


CANCELLED_BY_SLURM = b"""slurmstepd: error: *** JOB 31 ON n2 CANCELLED AT 2026-03-02T10:31:40 ***
slurmstepd: error: *** STEP 31.2 ON n2 CANCELLED AT 2026-03-02T10:31:40 ***
[2026-03-02 10:31:41,120 E 12 12] logging.cc:501: *** SIGTERM received at time=1772443901 on cpu 44 ***
srun: error: n2: task 0: Terminated
"""


def test_a_cancelled_job_says_so_and_has_no_cause() -> None:
    state = state_of(
        ("ray-driver.log", Role.DRIVER, b"*** SIGTERM received at time=1772443901 on cpu 44 ***\n"),
        ("slurm.out", Role.SLURM, CANCELLED_BY_SLURM),
    )
    assert state.diagnosis.root is None
    assert state.state is JobState.CANCELLED
    assert state.reason == "cancelled at 2026-03-02 10:31:40 (scancel)"


def test_what_failed_before_the_job_was_cancelled_is_the_cause() -> None:
    log = b'Traceback (most recent call last):\n  File "/w/run.py", line 3, in main\nValueError: x\n'
    state = state_of(("train.log", Role.DRIVER, log), ("slurm.out", Role.SLURM, CANCELLED_BY_SLURM))
    assert state.diagnosis.root is not None
    assert state.diagnosis.root.text == "ValueError: x"


@pytest.mark.parametrize(
    ("ends", "failed"),
    [
        ("task 0: Exited with exit code 1", True),
        ("tasks 2,4-5: Aborted", True),
        ("task 0: Terminated", False),
    ],
)
def test_srun_says_which_steps_failed_and_which_were_ended(ends: str, failed: bool) -> None:
    state = state_of(("slurm.out", Role.SLURM, f"srun: error: n2: {ends}\n".encode()))
    assert [is_failed_step(item) for item in state.findings] == [failed]
