"""Status of a run by its evidence: what decides, in which order, and with which reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from launcher.logs.events import (
    DriverEnded,
    ExceptionSeen,
    FindingSeen,
    JobChanged,
    JobState,
    LauncherEnded,
    Role,
    Source,
)
from launcher.monitor.diagnosis import UNKNOWN
from launcher.monitor.ending import RunProgress, RunStatus
from launcher.monitor.run_status import (
    RECENT,
    SILENT,
    RunEvidence,
    is_settled,
    job_status_by_log_age,
    run_status,
    run_status_of_attempts,
)

HERE = Source("ray-driver.log", Role.DRIVER, 7)
OOM = FindingSeen("cuda-oom", "GPU out of memory", "fatal", "CUDA out of memory. Tried", HERE, tier=1)
GCS = FindingSeen("ray-gcs", "Ray's head cannot be reached", "fatal", "no GCS", HERE, tier=2)
DIED = FindingSeen("ray-actor-died", "A Ray actor died", "fatal", "died", HERE, tier=3)
UNRECOGNISED = FindingSeen(UNKNOWN, "Unrecognised error", "fatal", "KeyError: 'x'. y", HERE, tier=2)
BY_SIGTERM = (
    "stopped by SIGTERM, and no log says who sent it: "
    "the time limit, scancel, a preemption, or its node may have"
)
SCANCEL = "slurmstepd: error: *** JOB 3 ON n2 CANCELLED AT 2026-03-02T10:31:40 ***"
DONE = RunProgress(said_completed=True)
ERROR = ExceptionSeen("ValueError: x", HERE, 5, own=True, wrapper=False)
INTERRUPT = ExceptionSeen("KeyboardInterrupt", HERE, 5, own=True, wrapper=False)


def ended(code: int) -> DriverEnded:
    return DriverEnded(code, HERE)


def job(
    state: str, reason: str = "why", *, over: bool = False, word: str = "", number: str = ""
) -> JobChanged:
    return JobChanged(JobState(state), reason, over=over, word=word, job=number)


@pytest.mark.parametrize(
    ("evidence", "state", "reason"),
    [
        (RunEvidence(), "unknown", "no information on whether it still runs"),
        (RunEvidence(root=OOM), "failed", "GPU out of memory: CUDA out of memory"),
        (RunEvidence(root=DIED), "unknown", "no information on whether it still runs"),
        (RunEvidence(job=job("unknown", SILENT), root=DIED), "unknown", SILENT),
        (
            RunEvidence(job=job("unknown", SILENT), root=DIED, step_failed=True),
            "failed",
            "A Ray actor died: died",
        ),
        (RunEvidence(job=job("unknown", SILENT), step_failed=True), "unknown", SILENT),
        (RunEvidence(job=job("unknown"), root=DIED, step_failed=True), "unknown", "why"),
        (RunEvidence(job=job("running", RECENT), root=DIED, step_failed=True), "starting", RECENT),
        (
            RunEvidence(driver_ended=ended(143), cancelled=SCANCEL),
            "cancelled",
            "cancelled at 2026-03-02 10:31:40 (scancel)",
        ),
        (RunEvidence(progress=DONE, traceback=ERROR), "completed", ""),
        (RunEvidence(traceback=ERROR), "failed", "ValueError: x"),
        (RunEvidence(traceback=ERROR, root=UNRECOGNISED), "failed", "KeyError: 'x'. y"),
        (RunEvidence(traceback=INTERRUPT), "cancelled", "interrupted"),
        (RunEvidence(job=job("running")), "starting", "why"),
        (RunEvidence(job=job("starting"), training=True), "running", "why"),
        (RunEvidence(job=job("running"), root=OOM), "starting", "why"),
        (RunEvidence(job=job("queued")), "queued", "why"),
        (RunEvidence(job=job("unknown", over=True)), "failed", "why"),
        (RunEvidence(job=job("unknown", over=True), progress=DONE), "completed", ""),
        (RunEvidence(job=job("completed")), "completed", "why"),
        (RunEvidence(job=job("failed"), progress=DONE), "failed", "why"),
        (RunEvidence(job=job("failed"), root=DIED), "failed", "A Ray actor died: died"),
        (RunEvidence(job=job("failed"), traceback=ERROR), "failed", "ValueError: x"),
        (RunEvidence(job=job("cancelled"), driver_ended=ended(1)), "cancelled", "why"),
        (RunEvidence(job=job("cancelled"), driver_ended=ended(0)), "completed", ""),
        (RunEvidence(job=job("running"), driver_ended=ended(0)), "completed", ""),
        (RunEvidence(driver_ended=ended(3)), "failed", "the driver exited with 3"),
        (RunEvidence(launcher_ended=LauncherEnded(3, HERE)), "failed", "the launcher exited with 3"),
        (RunEvidence(driver_ended=ended(0), launcher_ended=LauncherEnded(3, HERE)), "completed", ""),
        (RunEvidence(driver_ended=ended(143)), "cancelled", BY_SIGTERM),
        (RunEvidence(driver_ended=ended(130), root=GCS), "cancelled", "stopped by SIGINT"),
        (RunEvidence(driver_ended=ended(143), root=OOM), "failed", "GPU out of memory: CUDA out of memory"),
    ],
)
def test_what_decides(evidence: RunEvidence, state: str, reason: str) -> None:
    assert run_status(evidence) == RunStatus(JobState(state), reason)
    if evidence.job is None or evidence.ended is None:
        assert run_status_of_attempts(evidence, links=3, ended_job=0) == run_status(evidence)


@pytest.mark.parametrize("identity", ["ray-gcs", "ray-register", "ray-node-dead", UNKNOWN])
def test_processes_that_miss_each_other_are_no_failure_of_a_stopped_run(identity: str) -> None:
    status = run_status(RunEvidence(driver_ended=ended(143), root=replace(GCS, id=identity)))
    assert status == RunStatus(JobState.CANCELLED, BY_SIGTERM)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ValueError: GPU out of memory here. More", "GPU out of memory"),
        ("x" * 100, f"GPU out of memory: {'x' * 100}"),
        ("x" * 101, f"GPU out of memory: {'x' * 99}…"),
        ("INFO:root:torch: no memory", "GPU out of memory: torch: no memory"),
    ],
)
def test_the_reason_is_one_short_line(text: str, reason: str) -> None:
    assert run_status(RunEvidence(root=replace(OOM, text=text))).reason == reason


WAITS = "its driver has ended; Slurm has not reported the job's end"


@pytest.mark.parametrize(
    ("present", "code", "links", "ended_job", "state", "reason"),
    [
        (job("running", number="9"), 0, 1, 9, "completed", ""),
        (job("running", "", number="9"), 0, 2, 9, "running", WAITS),
        (job("running", number="9"), 1, 1, 9, "failed", "the driver exited with 1"),
        (job("running", number="9"), 143, 1, 9, "running", "why"),
        (job("unknown", over=True, number="9"), 143, 2, 9, "cancelled", BY_SIGTERM),
        (job("queued", number="10"), 0, 1, 9, "queued", "why"),
        (job("queued", number="9"), 0, 1, 9, "queued", "why"),
        (job("completed", number="9"), 143, 1, 9, "cancelled", BY_SIGTERM),
        (job("running", number="10"), 1, 1, 9, "starting", "why"),
        (job("running", number="10"), 1, 1, 10, "failed", "the driver exited with 1"),
        (job("running", number="10"), 1, 1, 0, "failed", "the driver exited with 1"),
        (job("failed", number="9"), 143, 1, 9, "failed", "why"),
        (job("failed", number="9"), 1, 1, 9, "failed", "the driver exited with 1"),
        (job("cancelled", number="9"), 143, 2, 9, "cancelled", "why"),
    ],
)
def test_the_end_of_an_attempt(
    present: JobChanged, code: int, links: int, ended_job: int, state: str, reason: str
) -> None:
    evidence = RunEvidence(job=present, driver_ended=ended(code))
    status = run_status_of_attempts(evidence, links=links, ended_job=ended_job)
    assert status == RunStatus(JobState(state), reason)


@pytest.mark.parametrize(
    ("number", "asked", "end", "written", "links", "state", "reason"),
    [
        ("9", 100.0, (0, 130.0), None, 1, "completed", ""),
        ("9", 100.0, (1, 130.0), None, 1, "failed", "the driver exited with 1"),
        ("9", 100.0, (143, 130.0), None, 1, "running", WAITS),  # it may be requeued
        ("9", 140.0, (143, 130.0), 130.0, 1, "queued", "why"),  # it was
        ("9", 140.0, (0, 130.0), 130.0, 1, "queued", "why"),
        ("9", 100.0, None, 130.0, 1, "starting", ""),
        ("9", 140.0, None, 130.0, 1, "queued", "why"),
        ("10", 100.0, (0, 130.0), None, 3, "queued", "why"),  # the next link: only the last one ended
        ("9", None, (0, 130.0), 130.0, 1, "queued", "why"),
        ("9", 100.0, (0, None), None, 1, "queued", "why"),
    ],
)
def test_a_job_that_waits_by_an_answer_older_than_its_logs_does_not_wait(
    number: str,
    asked: float | None,
    end: tuple[int, float | None] | None,
    written: float | None,
    links: int,
    state: str,
    reason: str,
) -> None:
    evidence = RunEvidence(
        job=replace(job("queued", number=number), asked=asked),
        driver_ended=DriverEnded(end[0], HERE, end[1]) if end is not None else None,
        written=written,
    )
    status = run_status_of_attempts(evidence, links=links, ended_job=9)
    assert status == RunStatus(JobState(state), reason)


SAVED = RunProgress(step=3, max_steps=9, said_saved=True, current=4)


@pytest.mark.parametrize(
    ("present", "code", "links", "state"),
    [
        (job("running", number="9"), None, 1, "stopped"),
        (job("running", number="9"), None, 2, "running"),
        (job("running", number="9"), 0, 2, "running"),
        (job("queued", number="10"), None, 2, "queued"),
        (job("queued", number="10"), 0, 1, "queued"),  # resumed
        (job("completed", number="9"), 0, 2, "stopped"),  # the last link
        (job("completed", number="9"), None, 1, "stopped"),
        (job("unknown", over=True, number="9"), None, 2, "stopped"),
    ],
)
def test_a_save_before_the_time_limit_ends_a_chain_only_with_its_last_job(
    present: JobChanged, code: int | None, links: int, state: str
) -> None:
    evidence = RunEvidence(present, driver_ended=ended(code) if code is not None else None, progress=SAVED)
    assert run_status_of_attempts(evidence, links=links, ended_job=9).state.value == state


@pytest.mark.parametrize(
    ("state", "present", "settled"),
    [
        ("running", None, False),
        ("completed", job("running", word="RUNNING"), True),
        ("failed", None, True),
        ("failed", job("running"), True),
        ("failed", job("running", word="COMPLETING"), False),
        ("failed", job("unknown", word="COMPLETING", over=True), True),
        ("failed", job("failed", word="FAILED"), True),
    ],
)
def test_a_failure_is_settled_when_the_scheduler_has_reported_the_end(
    state: str, present: JobChanged | None, settled: bool
) -> None:
    assert is_settled(RunStatus(JobState(state)), present) is settled


@pytest.mark.parametrize(
    ("newest", "state", "reason"),
    [
        (None, "unknown", "no logs here yet"),
        (880.0, "running", "its logs are being written"),
        (879.0, "unknown", "its logs are no longer written and do not show an end"),
        (1000.0, "running", "its logs are being written"),
    ],
)
def test_the_age_of_logs(newest: float | None, state: str, reason: str) -> None:
    assert job_status_by_log_age(newest, 1000.0) == JobChanged(JobState(state), reason)
