"""A start of Ray that is tried again is a warning until the last attempt has failed."""

from __future__ import annotations

import itertools

import pytest

from launcher.logs.events import JobChanged, JobState, Role
from launcher.monitor.open_evidence import RETRYING
from launcher.monitor.state import RunState
from tests.launcher.test_diagnosis import Log, state_of

_TIMED_OUT = "Exception: The current node timed out during startup. Some of the raylet failed to startup."
_TRACEBACK = f'Traceback (most recent call last):\n  File "/v/node.py", line 382, in __init__\n{_TIMED_OUT}\n'
_BEGIN = "[NRL_PHASE][2026-11-28T02:00:01+0000][+1s] launching Ray head + workers\n"
_QUOTE = "".join(f"  | {line}\n" for line in _TRACEBACK.splitlines())
_RETRY = (
    "[WARNING][2026-11-28T02:00:{second}+0000] Ray on jwb0002 did not register in time (try {failed} of 3); "
    "starting it again\n"
)
_CONNECTED = "[INFO][2026-11-28T02:01:00+0000] Number of actors online: 8/8\nAll workers connected!\n"
_GAVE_UP = (
    _QUOTE
    + "[ERROR][2026-11-28T02:01:40+0000] Ray on jwb0002 ended (exit code 1) before the cluster was ready; "
    "the lines above are from ray-worker-1.log\n"
    "[NRL_PHASE][2026-11-28T02:01:41+0000][+101s] ray_bare.sub exiting (exit_code=3)\n"
)


def retry(failed: int) -> str:
    return _QUOTE + _RETRY.format(second=10 * failed, failed=failed)


def logs(launcher: str, worker: str) -> list[Log]:
    return [
        ("launcher.log", Role.SLURM, launcher.encode()),
        ("ray-worker-1.log", Role.WORKER, worker.encode()),
    ]


def read(launcher: str, worker: str) -> RunState:
    """Return the state, which does not depend on the order in which the logs are read."""
    states = [state_of(*order) for order in itertools.permutations(logs(launcher, worker))]
    for state in states:
        state.apply(JobChanged(JobState.RUNNING, word="RUNNING", job="7"))
    first, *others = states
    for other in others:
        assert other.findings == first.findings
        assert other.status == first.status
    return first


@pytest.mark.parametrize("failed", [1, 2])
def test_a_start_that_is_tried_again_is_no_failure(failed: int) -> None:
    launcher = _BEGIN + "".join(retry(number) for number in range(1, failed + 1))
    state = read(launcher, _TRACEBACK * failed)
    assert state.diagnosis.root is None
    assert state.state is JobState.STARTING
    (finding,) = state.findings
    assert (finding.id, finding.severity, finding.node) == (RETRYING, "warning", "jwb0002")
    assert f"retrying ({failed + 1} of 3)" in finding.title


def test_nothing_is_left_of_it_when_the_retry_succeeds() -> None:
    state = read(_BEGIN + retry(1) + _CONNECTED, _TRACEBACK + "Ray runtime started.\n")
    assert state.findings == []


def test_the_cause_is_named_when_the_last_attempt_has_failed() -> None:
    state = read(_BEGIN + retry(1) + retry(2) + _GAVE_UP, _TRACEBACK * 3)
    root = state.diagnosis.root
    assert root is not None
    assert root.severity == "fatal"
    assert state.state is JobState.FAILED
    assert {"ray-start-slow", "launcher-error"} <= {item.id for item in state.findings}
    assert RETRYING not in {item.id for item in state.findings}


def test_another_node_that_fails_for_good_ends_the_retry() -> None:
    ended = "[NRL_PHASE][2026-11-28T02:01:41+0000][+101s] ray_bare.sub exiting (exit_code=3)\n"
    broken = (
        "[ERROR][2026-11-28T02:01:40+0000] Ray on jwb0003 ended (exit code 1) before the cluster was ready\n"
    )
    state = read(_BEGIN + retry(1) + broken + ended, _TRACEBACK)
    assert state.state is JobState.FAILED
    assert state.diagnosis.root is not None
