"""TensorBoard's event files, the tracking tools' directories, and the pace of a run."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.events import MetricRecorded
from launcher.logs.tensorboard import DamagedError, EventFile, Scalar
from launcher.logs.trackers import Trackers
from launcher.monitor.progress import Pace, pace_of
from launcher.monitor.summary import state_json
from launcher.monitor.watch import watch_directory
from launcher.transports.local import LocalTransport
from tests.driver_text import DriverText
from tests.launcher.test_lines import cut
from tui.headless.plain import state_lines


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def message(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def record(tag: str, step: int, value: float, *, tensor: bool = False) -> bytes:
    number = (
        message(8, b"\x08\x01" + message(5, struct.pack("<f", value)))
        if tensor
        else b"\x15" + struct.pack("<f", value)
    )
    summary = message(1, message(1, tag.encode()) + message(9, b"plugin") + number)
    event = b"\x09" + struct.pack("<d", 1000.0 + step) + b"\x10" + varint(step) + message(5, summary)
    return struct.pack("<Q", len(event)) + b"crc1" + event + b"crc2"


SCALARS = st.lists(
    st.tuples(
        st.text(min_size=1, max_size=30),
        st.integers(0, 2**40),
        st.floats(width=32, allow_nan=False),
        st.booleans(),
    ),
    max_size=8,
)


@given(SCALARS, st.lists(st.integers(0, 900), max_size=8))
def test_pieces_of_a_file_give_its_scalars(
    scalars: list[tuple[str, int, float, bool]], places: list[int]
) -> None:
    data = b"".join(record(tag, step, value, tensor=tensor) for tag, step, value, tensor in scalars)
    file = EventFile()
    seen = [scalar for piece in cut(data, places) for scalar in file.feed(piece)]
    assert seen == [Scalar(tag, step, value, 1000.0 + step) for tag, step, value, _ in scalars]
    assert file.offset == len(data)


@given(st.binary(min_size=20, max_size=200))
def test_what_is_no_event_file_is_refused_or_empty(data: bytes) -> None:
    try:
        list(EventFile().feed(data))
    except DamagedError:
        return


def test_a_real_file_of_nemo_rl(shared: Path) -> None:
    (path,) = (shared / "nemo-driver" / "A" / "logs" / "exp_001" / "tensorboard").glob("events*")
    scalars = list(EventFile().feed(path.read_bytes()))
    losses = [round(scalar.value, 4) for scalar in scalars if scalar.tag == "train/loss"]
    assert losses == [0.3636, 0.3238, 0.3035, 0.2529, 0.2589, 0.1926]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    board = tmp_path / "logs" / "exp_001" / "tensorboard"
    board.mkdir(parents=True)
    (tmp_path / "ray-driver.log").write_text(DriverText([0.9, 0.8], end="").text())
    (board / "events.out.tfevents.1.host.2.0").write_bytes(
        record("train/lr", 1, 0.5)
        + record("train/grad_norm", 1, 2.0, tensor=True)
        + record("ray/node.0.gpu.0.util", 40, 50.0)
        + record("ray/node.0.gpu.1.util", 40, 100.0)
        + record("train/unheard_of", 1, 2.0)
    )
    (tmp_path / "wandb" / "offline-run-20261128_010203-abc").mkdir(parents=True)
    return tmp_path


def test_metrics_that_only_tensorboard_has(run: Path) -> None:
    watch = watch_directory(LocalTransport(), str(run))
    watch.catch_up(final=True)
    state = state_json("x", watch.state)
    metrics = state["metrics"]
    assert (metrics["lr"], metrics["grad_norm"], metrics["gpu_util"]) == ([0.5], [2.0], [75.0])
    assert metrics["at"]["gpu_util"] == [40]
    assert {item["kind"] for item in state["trackers"]} == {"tensorboard", "wandb-offline"}
    assert metrics["loss"] == [0.9, 0.8]


def test_a_file_that_grows_is_read_on_and_a_damaged_one_left(run: Path) -> None:
    (path,) = run.glob("logs/exp_001/tensorboard/events*")
    trackers = Trackers(LocalTransport(), {str(run)})
    list(trackers.poll(0.0))
    with path.open("ab") as file:
        file.write(record("train/lr", 2, 0.25))
    assert list(trackers.poll(5.0)) == []
    (event,) = trackers.poll(11.0)
    assert isinstance(event, MetricRecorded)
    assert (event.name, event.step, event.value) == ("lr", 2, 0.25)
    with path.open("ab") as file:
        file.write(b"\xff" * 40)
    assert list(trackers.poll(30.0)) == []
    assert list(trackers.poll(60.0)) == []


def test_the_directory_that_the_driver_names_is_read(run: Path, tmp_path: Path) -> None:
    logs = tmp_path / "elsewhere"
    logs.mkdir()
    told = f"Initialized TensorboardLogger at {run}/logs/exp_001/tensorboard\n"
    (logs / "ray-driver.log").write_text(told)
    watch = watch_directory(LocalTransport(), str(logs))
    watch.catch_up(final=True)
    assert watch.state.metrics["lr"] == {1: 0.5}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_relative_directory_counts_from_where_the_driver_may_run(tmp_path: Path, depth: int) -> None:
    """The default of NeMo-RL is `logs`: found above the directory of the logs, or where the job ran."""
    at = tmp_path / "nemo-rl"
    events = at / "logs" / "exp_004" / "tensorboard"
    events.mkdir(parents=True)
    (events / "events.out.tfevents.1").write_bytes(record("train/lr", 1, 0.5))
    offline = at / "logs" / "exp_004" / "wandb" / "wandb" / "offline-run-20261128_010203-abc"
    offline.mkdir(parents=True)
    printed = "Initialized TensorboardLogger at logs/exp_004/tensorboard\n"
    logs = at.joinpath(*("results", "14-logs")[:depth]) if depth else tmp_path / "far" / "away"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "ray-driver.log").write_text(printed)
    watch = watch_directory(LocalTransport(), str(logs))
    if not depth:
        watch.working_directories = (str(at),)
    watch.catch_up(final=True)
    assert watch.state.metrics["lr"] == {1: 0.5}
    assert watch.state.trackers == {str(events): "tensorboard", str(offline): "wandb-offline"}


def test_the_offline_directory_that_wandb_prints(tmp_path: Path) -> None:
    path = "/p/logs/wandb/offline-run-20261128_010203-abc"
    lines = (f"wandb: Run data is saved locally in {path}", f"wandb: wandb sync {path}")
    (tmp_path / "ray-driver.log").write_text("".join(f"{line}\n" for line in lines))
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up(final=True)
    assert watch.state.trackers == {path: "wandb-offline"}
    assert f"  wandb-offline: {path}" in list(state_lines(state_json("x", watch.state)))


def test_pace() -> None:
    assert pace_of({}, 0, 10) == Pace()
    steady = pace_of(dict.fromkeys(range(1, 11), 2.0), 10, 30, left_s=21.0)
    assert steady == Pace(2.0, 0.0, 40.0, 10)
    slower = pace_of({step: 1.0 if step < 6 else 1.5 for step in range(1, 11)}, 10, None)
    assert slower == Pace(1.5, 0.5, None, None)
