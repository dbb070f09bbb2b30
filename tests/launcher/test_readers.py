"""What the lines of the driver and of the launchers mean."""

from __future__ import annotations

import random

import pytest

from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, ExceptionSeen, JobState, MilestoneReached, Role
from launcher.logs.launcher_log import launcher_reader
from launcher.logs.scanner import Reader, Scanner
from launcher.monitor.state import RunState
from tests.driver_text import LAUNCHER, DriverText, launcher_end


def events_of(reader: Reader, text: str) -> list[Event]:
    scanner = Scanner(reader)
    return [*scanner.feed(text.encode(), lambda _: None), *scanner.finish(lambda _: None)]


def state_of(*logs: tuple[Reader, str]) -> RunState:
    state = RunState()
    for reader, text in logs:
        for event in events_of(reader, text):
            state.apply(event)
    return state


def driver(text: str) -> RunState:
    return state_of((DriverReader("ray-driver.log"), text))


def test_a_run_over_two_epochs_counts_steps_over_the_whole_run() -> None:
    state = driver(
        DriverText([0.9, 0.8, 0.7, 0.6], 2, validate_at=(0, 2, 4), save_at=(2, 4), samples=16).text()
    )
    assert state.metrics["loss"] == {1: 0.9, 2: 0.8, 3: 0.7, 4: 0.6}
    assert state.metrics["step_time_s"] == {1: 1.5, 2: 2.5, 3: 3.5, 4: 4.5}
    assert state.metrics["accuracy"] == {0: 0.0, 2: 0.0002, 4: 0.0004}
    assert sorted(state.checkpoints) == [2, 4]
    assert (state.step, state.max_steps, state.state) == (4, 4, JobState.COMPLETED)
    assert set(state.milestones) == {
        "ray-attached",
        "data-loaded",
        "teacher-ready",
        "generation-ready",
        "student-ready",
        "setup-complete",
        "first-step",
        "first-validation",
        "first-checkpoint",
        "completed",
    }


def test_steps_after_a_resume_go_on_from_the_checkpoint() -> None:
    state = driver(DriverText([0.5, 0.4], 10, first_step=7, end="").text())
    assert state.metrics["loss"] == {7: 0.5, 8: 0.4}
    assert state.current is not None
    assert state.current.step == 8


def test_max_steps_before_the_end() -> None:
    bounded_by_data = DriverText([0.9, 0.8, 0.7], 2, samples=16, end="")
    assert driver(bounded_by_data.text()).max_steps == 4
    bounded_by_steps = DriverText([0.9], 50, end="")
    assert driver(bounded_by_steps.text()).max_steps == 50
    state = driver("")
    assert state.max_steps is None
    state.plan_max_steps = 1000
    assert state.max_steps == 1000


def test_what_a_model_wrote_never_counts() -> None:
    trap = DriverText([0.9], end="")
    quoted = (
        *trap.setup(),
        *trap.results(9, 0.1),
        "Traceback (most recent call last):",
        "RuntimeError: boom",
        "All workers connected!",
        "Max number of steps has been reached, stopping training early",
        f"{'=' * 25} Step 5/9 {'=' * 25}",
    )
    honest = driver(DriverText([0.9], validate_at=(1,), end="").text())
    trapped = driver(DriverText([0.9], validate_at=(1,), end="", model_text=quoted).text())
    assert trapped.metrics == honest.metrics
    assert set(trapped.milestones) == set(honest.milestones)
    assert trapped.traceback is None


def test_what_workers_print_is_not_the_drivers_word() -> None:
    lines = "\n".join(f"\x1b[36m(Worker pid=3)\x1b[0m {line}" for line in DriverText([0.9]).lines())
    state = driver(lines + "\n")
    assert state.milestones == {}
    assert state.metrics == {}


def test_nan_and_infinite_losses_are_numbers() -> None:
    text = DriverText([0.9]).text().replace("Loss: 0.9000", "Loss: nan")
    assert str(driver(text).metrics["loss"][1]) == "nan"


TRACEBACK = """\
Traceback (most recent call last):
  File "/nemo/examples/run_distillation.py", line 124, in <module>
    main()
    ~~~~^^
ray.exceptions.RayTaskError(OutOfMemoryError): \x1b[36mray::lm_policy\x1b[39m (pid=4, ip=10.0.0.1)
  File "/nemo/worker.py", line 45, in forward
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.
(DTensorPolicyWorkerV2 pid=7) Loading
Error during policy shutdown: sys.meta_path is None, Python is likely shutting down
"""


def test_an_exception_at_the_drivers_top_level_fails_the_run() -> None:
    state = driver(DriverText([0.9], end="").text() + TRACEBACK)
    assert state.state is JobState.FAILED
    assert state.reason == "GPU out of memory: torch.OutOfMemoryError: CUDA out of memory"
    assert "completed" not in state.milestones


def test_a_traceback_that_the_driver_went_on_after_is_no_failure() -> None:
    before = DriverText([0.9], end="").text()
    after = "\n".join(DriverText([0.9, 0.8], end="").lines())
    state = driver(before + TRACEBACK + after + "\n")
    assert state.traceback is None


def test_a_worker_s_traceback_is_not_the_drivers() -> None:
    text = "\n".join(f"(Worker pid=3) {line}" for line in TRACEBACK.splitlines()[:-2])
    assert not [
        event
        for event in events_of(DriverReader("d"), text)
        if isinstance(event, ExceptionSeen) and event.own
    ]


def test_launcher_milestones_have_the_times_that_the_lines_say() -> None:
    state = state_of((launcher_reader("launcher.log", Role.SLURM), LAUNCHER))
    assert {name: event.time for name, event in state.milestones.items()} == {
        "head-up": 1795831205.0,
        "workers-connected": 1795831209.0,
        "driver-started": 1795831210.0,
    }
    assert state.units is not None
    assert (state.units.online, state.units.wanted) == (8, 8)


@pytest.mark.parametrize(
    ("code", "state"), [(0, JobState.COMPLETED), (1, JobState.FAILED), (143, JobState.CANCELLED)]
)
def test_the_drivers_exit_code_decides(code: int, state: JobState) -> None:
    result = state_of((launcher_reader("launcher.log", Role.SLURM), LAUNCHER + launcher_end(code)))
    assert result.state is state
    if code == 1:
        assert result.reason == "the driver exited with 1"


def test_the_launchers_error_is_the_reason() -> None:
    text = LAUNCHER + "[ERROR][2026-11-28T02:00:20+0000] port 6379 is in use; unset RAY_PORT\n"
    text += "[NRL_PHASE][2026-11-28T02:00:20+0000][+20s] ray_bare.sub exiting (exit_code=3)\n"
    state = state_of((launcher_reader("launcher.log", Role.SLURM), text))
    assert state.state is JobState.FAILED
    assert state.reason == "port 6379 is in use; unset RAY_PORT"
    assert [finding.id for finding in state.findings] == ["launcher-error"]


def test_shell_traces_report_nothing() -> None:
    traced = "".join(f"+ echo '{line}'\n++ {line}\n" for line in (LAUNCHER + launcher_end(1)).splitlines())
    state = state_of((launcher_reader("slurm-41.out", Role.SLURM), traced))
    assert state.milestones == {}
    assert state.findings == []
    assert state.driver_ended is None


def test_other_launchers_of_nemo_rl_are_understood() -> None:
    head = (
        "[NRL_PHASE][2026-11-28T02:00:05+0000][+5s] head: Ray GCS listening (STARTED_RAY_HEAD written)\n"
        "[INFO] Number of actors online: 8/8\nAll workers connected!\n"
        "[NRL_PHASE][2026-11-28T02:00:09+0000][+9s] head: cluster ready, launching driver\n"
    )
    state = state_of((launcher_reader("ray-head.log", Role.HEAD), head))
    assert set(state.milestones) == {"head-up", "workers-connected", "driver-started"}
    newer = "+ echo '[INFO][2026-11-28T02:00:01+0000] All workers connected!'\n" + head.replace(
        "All workers", "[INFO][2026-11-28T02:00:08+0000] All workers"
    )
    connected = state_of((launcher_reader("ray-head.log", Role.HEAD), newer)).milestones["workers-connected"]
    assert (connected.source.line, connected.time) == (4, 1795831208.0)
    assert set(
        state_of((launcher_reader("ray-head.log", Role.HEAD), "Ray runtime started.\n")).milestones
    ) == {"head-up"}


def test_the_order_in_which_logs_are_read_does_not_matter() -> None:
    logs = [
        ("launcher.log", Role.SLURM, LAUNCHER + launcher_end(0)),
        ("slurm-41.out", Role.SLURM, LAUNCHER + launcher_end(0)),
        ("ray-head.log", Role.HEAD, "Ray runtime started.\n"),
        ("ray-driver.log", Role.DRIVER, DriverText([0.9, 0.5], validate_at=(2,), save_at=(2,)).text()),
    ]
    results = []
    for seed in range(6):
        random.Random(seed).shuffle(logs)
        readers: list[tuple[Reader, str]] = [
            (DriverReader(name) if role is Role.DRIVER else launcher_reader(name, role), text)
            for name, role, text in logs
        ]
        state = state_of(*readers)
        results.append((state.milestones, state.metrics, state.state, state.findings))
    assert all(result == results[0] for result in results)
    assert results[0][0]["head-up"].source.log == "launcher.log"


def test_milestones_say_where_they_were_seen() -> None:
    text = DriverText([0.9]).text()
    event = next(
        event
        for event in events_of(DriverReader("d.log"), text)
        if isinstance(event, MilestoneReached) and event.id == "setup-complete"
    )
    assert "SETUP COMPLETE" in text.split("\n")[event.source.line - 1]
    assert text.encode()[event.source.offset :].lstrip().startswith(b"SETUP COMPLETE")
