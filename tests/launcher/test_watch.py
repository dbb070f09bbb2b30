"""Following real files as they grow, shrink, are replaced, and go away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.errors import TransportError
from launcher.logs.events import JobChanged, JobState, LogChanged, MilestoneReached, Role, RootFindingChanged
from launcher.logs.follow import Follower
from launcher.logs.roles import role_of
from launcher.logs.sources import LogFile
from launcher.monitor.summary import event_json, state_json
from launcher.monitor.watch import Watch, watch_logs
from launcher.transports.base import FileStat, ProcessId
from launcher.transports.local import LocalTransport
from recipes.file_calls import unanswered_paths
from tests.cluster.machines import wait_until
from tests.driver_text import LAUNCHER, DriverText, launcher_end
from tests.launcher.test_lines import cut

RUN = DriverText([0.9, 0.7, 0.5], validate_at=(2,), save_at=(3,)).text().encode()


def watch(directory: Path) -> Watch:
    return Watch(LocalTransport(), (str(directory),))


def finished(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "launcher.log").write_text(LAUNCHER + launcher_end(0))
    (directory / "ray-head.log").write_text("Ray runtime started.\n")
    (directory / "ray-worker-1.log").write_text("Ray runtime started.\n")
    (directory / "ray-driver.log").write_bytes(RUN)
    return directory


def test_a_directory_of_plain_logs(tmp_path: Path) -> None:
    seen = watch(finished(tmp_path))
    seen.catch_up(final=True)
    state = state_json("run", seen.state)
    assert state["state"] == "completed"
    assert [milestone["id"] for milestone in state["milestones"]] == [
        "head-up",
        "workers-connected",
        "driver-started",
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
    ]
    assert state["metrics"]["loss"] == [0.9, 0.7, 0.5]
    assert {log["name"]: log["role"] for log in state["logs"]} == {
        "launcher.log": "slurm",
        "ray-driver.log": "driver",
        "ray-head.log": "head",
        "ray-worker-1.log": "worker",
    }
    assert state["logs"][1] == {
        "name": "ray-driver.log",
        "role": "driver",
        "bytes": len(RUN),
        "lines": RUN.count(b"\n"),
        "problem": "",
    }


def test_a_copy_elsewhere_and_a_directory_above_say_the_same(tmp_path: Path) -> None:
    first = watch(finished(tmp_path / "a" / "7-logs"))
    first.catch_up(final=True)
    shutil.copytree(tmp_path / "a" / "7-logs", tmp_path / "b")
    copied = watch(tmp_path / "b")
    copied.catch_up(final=True)
    above = watch(tmp_path / "a")
    above.catch_up(final=True)
    assert state_json("x", copied.state) == state_json("x", first.state)
    assert above.state.metrics == first.state.metrics
    assert above.state.milestones["completed"].source.log == "7-logs/ray-driver.log"


@given(st.lists(st.integers(0, len(RUN)), max_size=8))
def test_pieces_appended_give_what_the_whole_gives(
    tmp_path_factory: pytest.TempPathFactory, places: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("pieces")
    log = directory / "ray-driver.log"
    growing = watch(directory)
    for piece in cut(RUN, places):
        with log.open("ab") as file:
            file.write(piece)
        growing.poll()
    growing.catch_up(final=True)
    whole = watch(directory)
    whole.catch_up(final=True)
    assert growing.state.metrics == whole.state.metrics
    assert {name: event.source for name, event in growing.state.milestones.items()} == {
        name: event.source for name, event in whole.state.milestones.items()
    }


def test_a_log_that_appears_late_and_one_that_goes(tmp_path: Path) -> None:
    seen = watch(tmp_path)
    seen.poll()
    assert seen.state.state is JobState.UNKNOWN
    assert seen.state.reason == "no logs here yet"
    log = tmp_path / "ray-driver.log"
    log.write_bytes(RUN[:3000])
    seen.poll()
    assert "ray-attached" in seen.state.milestones
    log.unlink()
    seen.poll()
    assert seen.state.logs["ray-driver.log"].problem == "the file is gone"
    log.write_bytes(RUN)
    seen.poll()
    assert seen.state.logs["ray-driver.log"].problem == ""
    assert seen.state.metrics["loss"] == {1: 0.9, 2: 0.7, 3: 0.5}


def test_truncated_and_replaced_logs_are_read_anew(tmp_path: Path) -> None:
    log = tmp_path / "ray-driver.log"
    log.write_bytes(RUN)
    seen = watch(tmp_path)
    seen.poll()
    log.write_bytes(RUN[:1000])
    seen.poll()
    assert seen.state.logs["ray-driver.log"].bytes == 1000
    other = tmp_path / "new"
    other.write_bytes(RUN.replace(b"Loss: 0.5000", b"Loss: 0.4000"))
    other.replace(log)
    seen.poll()
    assert seen.state.metrics["loss"][3] == 0.4


def test_a_replacement_of_the_same_size_and_age_is_read(tmp_path: Path) -> None:
    log = tmp_path / "ray-driver.log"
    log.write_bytes(RUN)
    os.utime(log, ns=(10**18, 10**18))
    seen = watch(tmp_path)
    seen.poll()
    assert seen.state.metrics["loss"][3] == 0.5
    other = tmp_path / "new"
    other.write_bytes(RUN.replace(b"Loss: 0.5000", b"Loss: 0.4000"))
    os.utime(other, ns=(10**18, 10**18))
    other.replace(log)
    seen.poll()
    assert seen.state.metrics["loss"][3] == 0.4


def test_an_unfinished_last_line_counts_once_nothing_more_will_come(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_bytes(RUN[: RUN.index(b" early") + len(b" early")])
    seen = watch(tmp_path)
    seen.catch_up()
    assert "completed" not in seen.state.milestones
    seen.catch_up(final=True)
    assert "completed" in seen.state.milestones


def test_hostile_bytes_and_a_line_of_megabytes(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_bytes(
        b"\x00\xff\xfe\x1b]52;c;eA==\x07\n" + b"z" * 5_000_000 + b"\n" + RUN
    )
    seen = watch(tmp_path)
    seen.catch_up(final=True)
    assert seen.state.metrics["loss"] == {1: 0.9, 2: 0.7, 3: 0.5}


def test_a_big_log_is_read_in_turns(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_bytes(b"noise\n" * 400_000 + RUN)
    (tmp_path / "ray-head.log").write_text("Ray runtime started.\n")
    seen = watch(tmp_path)
    seen.poll(budget=1_000_000)
    assert seen.behind
    assert "head-up" in seen.state.milestones
    seen.catch_up(final=True)
    assert seen.state.metrics["loss"] == {1: 0.9, 2: 0.7, 3: 0.5}


class Failing(LocalTransport):
    """A transport whose reads fail."""

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        raise TransportError("cannot read: Input/output error")


def test_a_log_that_cannot_be_read_is_stated_and_followed_on(tmp_path: Path) -> None:
    path = tmp_path / "ray-driver.log"
    path.write_bytes(RUN)
    entry = LocalTransport().stat(str(path))
    follower = Follower.of(Failing(), LogFile("d", str(path), Role.DRIVER))
    events = list(follower.poll(entry, lambda _: None))
    assert entry is not None
    problem = "cannot read: Input/output error"
    assert events[-1] == LogChanged("d", Role.DRIVER, 0, 0, problem, entry.mtime)
    follower.transport = LocalTransport()
    events = list(follower.poll(entry, lambda _: None))
    assert events[-1] == LogChanged("d", Role.DRIVER, len(RUN), RUN.count(b"\n"), "", entry.mtime)


def test_a_directory_that_cannot_be_listed_is_a_stated_problem(tmp_path: Path) -> None:
    gone = watch(tmp_path / "gone")
    assert gone.poll() == []
    assert "No such file" in gone.problem


def test_times_come_from_the_clock_file(tmp_path: Path) -> None:
    finished(tmp_path)
    half = RUN.index(b"SETUP COMPLETE")
    (tmp_path / "log-clock.tsv").write_text(
        f"1000.0\tray-driver.log\t{half}\ngarbage\n1010.0\tray-driver.log\t{len(RUN)}\n1010.0\tlauncher.log\t9999\n"
    )
    seen = watch(tmp_path)
    seen.catch_up(final=True)
    times = {name: event.time for name, event in seen.state.milestones.items()}
    assert times["ray-attached"] == 1000.0
    assert times["completed"] == 1010.0
    assert times["workers-connected"] == 1795831209.0


def test_the_clock_may_reach_a_line_after_we_have_read_it(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_bytes(RUN)
    seen = watch(tmp_path)
    seen.poll()
    before = seen.state.milestones["completed"]
    assert before.time is None
    (tmp_path / "log-clock.tsv").write_text(f"1010.0\tray-driver.log\t{len(RUN)}\n")
    events = seen.poll()
    assert seen.state.milestones["completed"].time == 1010.0
    assert [event.id for event in events if isinstance(event, MilestoneReached)].count("completed") == 1


def test_lines_that_come_while_watching_have_the_time_of_reading(tmp_path: Path) -> None:
    log = tmp_path / "ray-driver.log"
    log.write_bytes(RUN[:900])
    seen = watch(tmp_path)
    seen.now = lambda: 5000.0
    seen.poll()
    with log.open("ab") as file:
        file.write(RUN[900:])
    seen.poll()
    assert seen.state.milestones["ray-attached"].time is None
    assert seen.state.milestones["completed"].time == 5000.0


def test_age_tells_whether_plain_logs_live(tmp_path: Path) -> None:
    log = tmp_path / "ray-driver.log"
    log.write_bytes(DriverText([0.9], end="").text().encode())
    seen = watch(tmp_path)
    seen.poll()
    assert seen.state.state is JobState.RUNNING
    os.utime(log, (1, 1))
    old = watch(tmp_path)
    old.poll()
    assert old.state.state is JobState.UNKNOWN


def test_the_cluster_is_believed_over_the_logs_age(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_bytes(DriverText([0.9], end="").text().encode())
    answers = [JobChanged(JobState.RUNNING), JobChanged(JobState.UNKNOWN, "the launcher is gone", over=True)]
    seen = Watch(LocalTransport(), (str(tmp_path),), probe=lambda: answers.pop(0))
    seen.poll()
    assert seen.state.state is JobState.RUNNING
    seen.poll()
    assert (seen.state.state, seen.state.reason) == (JobState.FAILED, "the launcher is gone")


def test_single_files_with_roles(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LAUNCHER)
    (tmp_path / "b.txt").write_bytes(RUN)
    seen = watch_logs(
        LocalTransport(), [(Role.SLURM, str(tmp_path / "a.txt")), (None, str(tmp_path / "b.txt"))]
    )
    events = seen.catch_up(final=True)
    assert {event.source.log for event in events if isinstance(event, MilestoneReached)} == {"a.txt", "b.txt"}
    assert seen.state.state is JobState.COMPLETED


def test_a_path_that_no_file_can_have_is_an_error_of_its_own() -> None:
    transport = LocalTransport(deadline_s=2)
    with pytest.raises(TransportError, match="null"):
        transport.read("a\0b")
    assert transport.stat("/") is not None


def test_a_file_system_that_hangs_is_an_error_not_a_hang(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    transport = LocalTransport(deadline_s=0.2)
    with pytest.raises(TransportError, match="no answer from the file system"):
        transport._access(lambda: fifo.read_bytes(), "cannot read", str(fifo))
    assert isinstance(transport.stat(str(tmp_path)), FileStat)
    with pytest.raises(TransportError, match="still"):
        transport.stat(str(fifo))
    os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))
    wait_until(lambda: str(fifo) not in unanswered_paths(), 10, "the call returned")
    assert isinstance(transport.stat(str(fifo)), FileStat)


def test_a_zombie_is_not_alive() -> None:
    """A child that ended and was not waited for keeps its number and its start time."""
    transport = LocalTransport()
    child = subprocess.Popen(["/bin/sh", "-c", "echo ready; read line"], stdin=-1, stdout=-1)
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin, child.stdout:
        child.stdout.readline()
        status = Path(f"/proc/{child.pid}/stat")
        fields = status.read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        process = ProcessId(transport.host, boot, child.pid, int(fields[19]))
        assert transport.alive(process)
        child.stdin.close()
        deadline = time.monotonic() + 10
        while status.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert transport.alive(process) is False
        assert transport.signal(process, 0) is False
    child.wait()


def test_real_driver_logs(shared: Path) -> None:
    real = shared / "nemo-driver"
    whole = watch(real / "A")
    whole.catch_up(final=True)
    state = state_json("A", whole.state)
    assert state["state"] == "completed"
    assert state["metrics"]["loss"] == [0.3636, 0.3238, 0.3035, 0.2529, 0.2589, 0.1926]
    assert state["metrics"]["accuracy"] == [0.3333, 0.5, 0.875, 0.875]
    assert state["metrics"]["validation_steps"] == [0, 2, 4, 6]
    assert state["metrics"]["max_steps"] == 6
    failed = watch(real / "C")
    failed.catch_up(final=True)
    assert failed.state.state is JobState.FAILED
    assert failed.state.reason == "GPU out of memory: torch.OutOfMemoryError: CUDA out of memory"
    assert "first-step" not in failed.state.milestones
    early = watch(real / "E-dynamic-and-packing")
    early.catch_up(final=True)
    assert early.state.reason.startswith("Dynamic batching together with sequence packing: AssertionError")


def test_a_log_that_begins_anew_takes_its_findings_with_it(tmp_path: Path) -> None:
    log = tmp_path / "ray-driver.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried\n" + "x" * 200 + "\n")
    seen = watch(tmp_path)
    (verdict,) = [event for event in seen.poll() if isinstance(event, RootFindingChanged)]
    assert verdict.root is not None
    assert (verdict.root.id, verdict.before) == ("cuda-oom", None)
    log.write_text("a new driver\n")
    (verdict,) = [event for event in seen.poll() if isinstance(event, RootFindingChanged)]
    assert verdict.root is None
    assert seen.state.findings == []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("ray-driver.log", Role.DRIVER),
        ("ray-worker-3.log", Role.WORKER),
        ("slurm-42.out", Role.SLURM),
        ("kd.slurm.out", Role.SLURM),
        ("kd-driver.log", Role.DRIVER),
        ("my_head.err", Role.HEAD),
        ("headless.log", None),
        ("drivers.txt", None),
    ],
)
def test_names_tell_roles(name: str, role: Role | None) -> None:
    assert role_of(name) is role


def test_events_of_a_failed_run_are_json(tmp_path: Path) -> None:
    (tmp_path / "ray-driver.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried\n")
    events = [event_json(event) for event in watch(tmp_path).catch_up(final=True)]
    kinds = {event["event"]: event for event in json.loads(json.dumps(events, allow_nan=False))}
    assert kinds["finding"]["id"] == "cuda-oom"
    assert kinds["verdict_changed"]["root"]["confidence"] == "high"
