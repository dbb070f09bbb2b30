"""A run of which no log shows an end: its last error is suspected, as a weak finding."""

from __future__ import annotations

from launcher.logs.events import JobChanged, JobState, LogChanged, Role
from launcher.monitor.run_status import SILENT
from launcher.monitor.state import RunState
from tests.launcher.test_diagnosis import state_of


def _silent(log: bytes) -> RunState:
    state = state_of((LOG, Role.DRIVER, log))
    lines = log.count(b"\n")
    state.apply(LogChanged(LOG, Role.DRIVER, len(log), lines, time=0.0))
    state.apply(JobChanged(JobState.UNKNOWN, SILENT))
    return state


LOG = "log-0"
UNHANDLED = b"""(Trainer pid=41) Unhandled error (suppress with 'RAY_IGNORE_UNHANDLED_ERRORS=1'): ray::Engine.sync() (pid=44, ip=10.0.0.9, repr=<Engine>)
(Trainer pid=41)   File "/r/engine.py", line 58, in sync
(Trainer pid=41)     executor = self.core.executor
(Trainer pid=41) AttributeError: 'Core' object has no attribute 'executor'
"""  # noqa: E501


def test_the_last_error_of_a_silent_run_is_suspected_and_no_more() -> None:
    state = _silent(UNHANDLED)
    root = state.diagnosis.root
    assert root is not None
    assert (root.source.line, root.tier, root.confidence, root.pid, root.node) == (
        4,
        3,
        "low",
        44,
        "10.0.0.9",
    )
    assert state.state is JobState.UNKNOWN


def test_an_error_that_a_silent_run_went_on_after_is_not_suspected() -> None:
    assert (
        _silent(UNHANDLED + b"========================= Step 4/9 =========================\n").diagnosis.root
        is None
    )
    assert _silent(UNHANDLED + b"(Trainer pid=41) INFO still here\n" * 40).diagnosis.root is None


def test_an_error_before_the_driver_s_next_phase_is_not_suspected() -> None:
    begun = b"========================= Step 4/9 =========================\n" + UNHANDLED
    assert _silent(begun).diagnosis.root is not None
    assert _silent(begun + "▶ Computing teacher logprobs...\n".encode()).diagnosis.root is None


WAITING = b"""(autoscaler +45m) Warning: The following request cannot be scheduled right now: {'GPU': 1.0}.
"""


def test_a_warning_in_the_last_lines_of_a_silent_run_is_suspected() -> None:
    root = _silent(b"Initializing workers\n" + WAITING).diagnosis.root
    assert root is not None
    assert (root.id, root.tier, root.confidence) == ("ray-waiting", 3, "low")
    assert root.fix.startswith(
        "Nothing was written after it, and no log shows an end: it may not have mattered."
    )
    assert _silent(WAITING + b"one\ntwo\nthree\n").diagnosis.root is None


def test_a_silent_run_whose_step_failed_has_failed() -> None:
    missing = b"run.sh: line 19: uv: command not found\n"
    assert _silent(missing).state is JobState.UNKNOWN
    assert _silent(missing + b"srun: error: n2: task 0: Exited with exit code 127\n").state is JobState.FAILED
    assert _silent(b"srun: error: n2: task 0: Terminated\n").state is not JobState.FAILED
