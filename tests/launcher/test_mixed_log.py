"""Logs in which everything is, under whatever name: the output file of a plain batch job."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.logs.events import Role
from launcher.logs.roles import role_of, role_of_content
from launcher.monitor.state import RunState
from launcher.monitor.watch import watch_directory, watch_logs
from launcher.transports.local import LocalTransport
from tests.driver_text import LAUNCHER, DriverText, launcher_end

DRIVER = DriverText([0.9, 0.7], 10, validate_at=(2,), save_at=(2,), end="").text()
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nValueError: boom\n'


def seen(directory: Path, **logs: str) -> RunState:
    for name, text in logs.items():
        (directory / name).write_text(text)
    watch = watch_directory(LocalTransport(), str(directory))
    watch.catch_up(final=True)
    return watch.state


def roles(state: RunState) -> set[str]:
    return {log.role.value for log in state.logs.values()}


@pytest.mark.parametrize(
    "name", ["slurm-14.out", "nemo-rl-distill-14.out", "job.o14", "train.log", "sbatch_x_14.out"]
)
def test_one_file_holds_everything(tmp_path: Path, name: str) -> None:
    everything = f"module list\n{LAUNCHER}{DRIVER}{TRACEBACK}{launcher_end(1)}"
    state = seen(tmp_path, **{name: everything})
    assert {log.role for log in state.logs.values()} == {Role.DRIVER}
    assert {"head-up", "workers-connected", "setup-complete", "first-step", "first-checkpoint"} <= set(
        state.milestones
    )
    assert state.milestones["driver-started"].source.line > 1 or "slurm" not in name
    assert state.metrics["loss"] == {1: 0.9, 2: 0.7}
    assert (state.state.value, state.reason) == ("failed", "ValueError: boom")
    assert state.diagnosis.root is not None
    assert state.diagnosis.root.source.line == everything[: everything.index("ValueError")].count("\n") + 1


def test_a_driver_that_begins_later_in_a_log_that_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "slurm-14.out"
    file.write_text(LAUNCHER)
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up()
    assert roles(watch.state) == {"slurm"}
    with file.open("a") as log:
        log.write(DRIVER)
    watch.catch_up()
    assert roles(watch.state) == {"driver"}
    assert watch.known_logs[0].role is Role.DRIVER
    assert watch.state.step == 2
    assert watch.state.logs["slurm-14.out"].bytes == file.stat().st_size
    with file.open("a") as log:
        log.write(launcher_end(143))
    watch.catch_up()
    assert watch.state.driver_ended is not None


def test_a_trace_of_a_script_is_no_driver(tmp_path: Path) -> None:
    traced = "".join(f"+ echo '{line}'\n++ {line}\n" for line in DRIVER.splitlines())
    state = seen(tmp_path, **{"slurm-14.out": f"{LAUNCHER}{traced}"})
    assert {log.role for log in state.logs.values()} == {Role.SLURM}
    assert state.step == 0


def test_the_errors_of_a_launcher_count_and_those_of_libraries_do_not(tmp_path: Path) -> None:
    library = "[ERROR] could not load the optional plugin\n"
    assert seen(tmp_path, **{"slurm-1.out": f"{DRIVER}{library}"}).findings == []
    error = "[ERROR][2026-11-28T02:00:20+0000] port 6379 is in use\n"
    (finding,) = seen(tmp_path, **{"slurm-1.out": f"{DRIVER}{error}"}).findings
    assert finding.id == "launcher-error"


def test_the_count_of_other_launchers(tmp_path: Path) -> None:
    text = "[INFO] [2/60] worker_units: 4/8\n[INFO] [3/60] worker_units: 8.0/8.0\n"
    state = seen(tmp_path, **{"slurm-14.out": text})
    assert state.units is not None
    assert (state.units.online, state.units.wanted) == (8, 8)
    assert state.milestones["workers-connected"].source.line == 2
    some = seen(tmp_path, **{"slurm-14.out": text.splitlines()[0] + "\n"})
    assert some.units is not None
    assert (some.units.online, "workers-connected" in some.milestones) == (4, False)


def test_a_log_without_a_role_in_its_name_beside_others(tmp_path: Path) -> None:
    state = seen(tmp_path, **{"slurm-14.out": LAUNCHER, "train.log": DRIVER, "pip.log": "Collecting ray\n"})
    assert {name: log.role for name, log in state.logs.items()} == {
        "slurm-14.out": Role.SLURM, "train.log": Role.DRIVER,
    }  # fmt: skip


def test_a_file_that_is_named_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text(LAUNCHER + DRIVER)
    watch = watch_logs(LocalTransport(), [(None, str(tmp_path / "all.txt"))])
    watch.catch_up()
    assert {"head-up", "first-step"} <= set(watch.state.milestones)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("ray-driver", "driver"), ("ray-driver.log", "driver"), ("ray-driver-14.log", "driver"),
        ("ray_driver.out", "driver"), ("ray-job.log", "driver"), ("driver.14.out", "driver"),
        ("ray-head", "head"), ("ray-head-0.log", "head"), ("ray-worker-03.log", "worker"),
        ("ray-workers.log", "worker"), ("slurm-14_2.out", "slurm"), ("slurm-14.err", "slurm"),
        ("sbatch_acc-exp_14.out", "slurm"), ("log-exp_14_0.out", None), ("ray-driver.sh", None),
        ("ray-head.pid", None), ("train.log", None), ("driver_command.sh", None),
    ],
)  # fmt: skip
def test_the_role_in_a_name(name: str, role: str | None) -> None:
    assert role_of(name) == role


@pytest.mark.parametrize(
    ("text", "role"),
    [
        (DRIVER, "driver"), ("2026-11-28 12:00:00 INFO:nemo_rl.x:y.py:3: z\n", "driver"),
        ("Next steps\n  To add another node to this Ray cluster, run\n", "head"),
        ("2026-11-28 12:00:00,1 SUCC scripts.py:1 -- Ray runtime started.\n", "worker"),
        (LAUNCHER, "slurm"), ("srun: error: n1: task 0: Killed\n", "slurm"), ("hello\n", None), ("", None),
        ("+ echo 'Ray runtime started.'\n", None),
    ],
)  # fmt: skip
def test_the_role_that_a_log_shows(text: str, role: str | None) -> None:
    assert role_of_content(text.encode()) == role
