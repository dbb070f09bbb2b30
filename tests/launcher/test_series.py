"""Series of metrics: event files by columns, reduction for a chart, GPU tables, comparison of runs."""

from __future__ import annotations

import json
import math
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.logs.gpu_samples import idle_spans, imbalance, node_samples, peak_memory_gib
from launcher.logs.scalar_columns import ScalarColumns
from launcher.logs.tensorboard import DamagedError, EventFile
from launcher.monitor.watch import watch_directory
from launcher.overview.comparison import comparison_json, figures, read_run, recipe_differences
from launcher.overview.run_series import SeriesLimits, all_series
from launcher.overview.series import Series, order_of, reduced, smoothed
from launcher.transports.local import LocalTransport
from tests.tui.replay import running

HEADING = (
    "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB],power.draw [W],"
    "host.memory.used [MiB]\n"
)


def varint(number: int) -> bytes:
    digits = b""
    while number > 0x7F:
        digits, number = digits + bytes([number & 0x7F | 0x80]), number >> 7
    return digits + bytes([number])


def record(tag: str, step: int, value: float, time: float = 5.0) -> bytes:
    """Return a record as torch's SummaryWriter writes it; without checksums, which are not verified."""
    inner = b"\x0a" + varint(len(tag.encode())) + tag.encode() + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + varint(len(inner)) + inner
    event = (
        b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + b"\x2a" + varint(len(summary)) + summary
    )
    return struct.pack("<Q", len(event)) + b"head" + event + b"tail"


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.sampled_from(["loss", "lr", "kl", "train/grad", "ü"]), min_size=1, max_size=5, unique=True),
    st.integers(1, 120),
    st.integers(0, 20_000),
    st.integers(2, 30),
    st.integers(50, 5000),
)
def test_columns_are_what_single_records_are(
    tags: list[str], steps: int, first: int, every: int, piece: int
) -> None:
    data = b""
    for step in range(first, first + steps):
        data += b"".join(record(tag, step, step / 7 + len(tag), 1e9 + step) for tag in tags)
        if step % every == 0:
            data += record("validation", step, 1.0)
    columns = ScalarColumns()
    for start in range(0, len(data), piece):
        columns.feed(data[start : start + piece])
    expected: dict[str, list[tuple[int, float, float]]] = {}
    for scalar in EventFile().feed(data):
        expected.setdefault(scalar.tag, []).append((scalar.step, scalar.time, scalar.value))
    read = {
        tag: list(zip(item.steps.tolist(), item.times.tolist(), item.values.tolist(), strict=True))
        for tag, item in columns.columns().items()
    }
    assert read == expected


def test_bytes_that_are_no_records_are_refused() -> None:
    with pytest.raises(DamagedError):
        ScalarColumns().feed(b"\xff" * 100)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32) | st.just(math.nan), min_size=1, max_size=400),
    st.integers(4, 80),
)
def test_a_column_spans_the_lowest_to_the_highest_value(values: list[float], columns: int) -> None:
    x = np.arange(len(values), dtype=np.float64)
    part = reduced(x, np.array(values), 0.0, float(len(values) - 1), columns)
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        assert np.isnan(part.low).all()
        return
    if len(values) > 2 * columns:
        assert np.nanmin(part.low) == min(finite)
        assert np.nanmax(part.high) == max(finite)
    elif not np.isnan(part.low).all():
        assert min(finite) - 1e-3 <= np.nanmin(part.low) <= np.nanmax(part.high) <= max(finite) + 1e-3
    assert part.gaps == len(values) - len(finite)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-100, 100) | st.just(math.inf), min_size=1, max_size=60), st.integers(1, 20))
def test_smoothing_is_the_mean_of_the_values_before(values: list[float], window: int) -> None:
    result = smoothed(np.array(values), window)
    for index, value in enumerate(values):
        if math.isfinite(value) and window > 1:
            near = [item for item in values[max(index - window + 1, 0) : index + 1] if math.isfinite(item)]
            assert result[index] == pytest.approx(sum(near) / len(near), abs=1e-6)


def test_metrics_that_matter_come_first() -> None:
    names = ["zeta", "train/grad_norm", "gpu/n1/power_w_max", "loss", "train/kl", "accuracy", "train/lr"]
    ordered = ["loss", "train/kl", "accuracy", "train/lr", "train/grad_norm", "gpu/n1/power_w_max", "zeta"]
    assert sorted(names, key=order_of) == ordered


def table(busy: tuple[int, ...], of: int = 4, minutes: int = 5) -> str:
    rows = [
        f"2026-11-28T02:{minute:02d}:{second:02d}+0000,{gpu},{90 if gpu in busy else 0},{20480 + minute},"
        "40960,300.5,9000"
        for minute in range(minutes)
        for second in (0, 15, 30, 45)
        for gpu in range(of)
    ]
    return HEADING + "\n".join(rows) + "\n2026-11-28T02:59"


def test_idle_gpus_imbalance_and_peak() -> None:
    first, second = (
        node_samples("gpu-n1.csv", table((0, 1)).encode()),
        node_samples("gpu-n2.csv", table((0, 1, 2, 3)).encode()),
    )
    assert first is not None
    assert second is not None
    (span,) = idle_spans((first, second))
    assert span.in_words().startswith("2 of 4 GPUs of n1 idle for")
    assert idle_spans((second,)) == ()
    assert imbalance((first, second)) == (0.0, 90.0)
    peak = peak_memory_gib((first,))
    assert peak is not None
    assert peak[1] == 40.0
    assert first.samples[0].values["power_w"] == 300.5
    assert node_samples("ray-head.log", b"") is None
    assert node_samples("gpu-n1.csv", b"no table\n1,2") is not None


def test_runs_are_compared_from_copies_of_their_directories(tmp_path: Path) -> None:
    paths = []
    for number, (loss, tensor_parallel) in enumerate(((0.5, 1), (0.25, 2))):
        replay = running(tmp_path / f"{number}", "", host="elsewhere", name=f"run-{number}")
        replay.losses = (loss,) * 4
        replay.finish(0)
        (replay.logs / "gpu-n1.csv").write_text(table((0,)))
        recipe = f"policy:\n  dtensor_cfg:\n    tensor_parallel_size: {tensor_parallel}\n  model_name: m\n"
        Path(replay.run.directory, "effective.yaml").write_text(recipe)
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(replay.run.directory, copy)
        shutil.rmtree(replay.run.directory)
        paths.append(copy)
    runs = [read_run(LocalTransport(), str(path)) for path in paths]
    rows = {row.id: row for row in figures(runs)}
    assert rows["state"].values == ("completed", "completed")
    assert rows["peak_gib"].values == (20.0, 20.0)
    assert rows["gpu_gib"].values == (40.0, 40.0)
    assert rows["step_s"].unit == "s"
    assert any(row.id.startswith("until_") for row in rows.values())
    (difference,) = recipe_differences(runs)
    assert (difference.key, difference.values) == ("policy.dtensor_cfg.tensor_parallel_size", (1, 2))
    printed = json.loads(json.dumps(comparison_json(runs), allow_nan=False))
    assert printed["recipe"][0]["values"] == [1, 2]
    assert len(printed["series"]["loss"]) == 2
    logs = read_run(LocalTransport(), str(paths[0] / "logs"))
    assert logs.recipe == {}
    assert recipe_differences([runs[0], logs]) == ()


def test_a_series_knows_its_axis() -> None:
    steps = np.array([1.0, 2.0])
    series = Series("a", steps, np.array([np.nan, np.nan]), steps)
    assert not series.has_times
    assert series.along("time") is steps


def test_tables_of_any_form_are_bounded(tmp_path: Path) -> None:
    row = "2026-11-28T02:00:00+0000,3,90,20480,40960,300.5,9000\n"
    samples = node_samples("gpu-n1.csv", (HEADING + row * 4000).encode(), every=4)
    assert samples is not None
    assert len(samples.samples) <= 1024 + 512  # a moment that does not end counts as several
    assert samples.peak_gib == (20.0, 40.0)
    quoted = '"2026-11-28T02:00:00+0000",0,"1","2","3","4","5"'
    odd = [",," * 20_000, '"' + "x" * 200_000, quoted, "\r\r", '"']
    samples = node_samples("gpu-n1.csv", (HEADING + "\n".join(odd) + "\n" + row).encode())
    assert samples is not None
    assert [sample.gpu for sample in samples.samples] == [3]
    for text in ('"\n', "\n", "\r", "1,2\n"):
        samples = node_samples("gpu-n1.csv", (HEADING + text * 400_000).encode())
        assert samples is not None
        assert samples.samples == ()
    assert node_samples("gpu-n1.csv", b"," * 100_000) is not None


def test_tables_beyond_the_limit_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "driver.log").write_text("x\n")
    for node in "abc":
        (tmp_path / f"gpu-{node}.csv").write_text(table((0,)))
    size = (tmp_path / "gpu-a.csv").stat().st_size
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up(final=True)
    _, gpus = all_series(LocalTransport(), watch, SeriesLimits(table_bytes=2 * size))
    assert [node.node for node in gpus] == ["a", "b"]
    assert SeriesLimits(values=100).shared(4).values == 25
