"""Measured peaks of GPU memory beside the estimates: kept at a run's end, and what follows from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.gpu_samples import node_samples, peak_memory_gib, peak_of_table
from launcher.logs.job_state import JobState
from launcher.monitor.watch_run import summary_of
from launcher.overview.measured_memory import MeasuredEstimate, measured_among, measured_here
from launcher.overview.row_cache import CachedRow, cache_file, dumped
from launcher.overview.rows import RunRow, filled_row, starting_row
from launcher.runs import load
from launcher.saved_summary import load_summary
from launcher.storage.private_files import write_private
from launcher.submit.hints import measured_memory_hint
from launcher.transports.local import LocalTransport
from recipes.inheritance import Resolver
from recipes.memory import Estimate, Phase
from tests.tui.replay import running
from tui.screens.editor.preflight_lines import memory_lines

HEADING = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB]"
ROW = RunRow("a", "a", "/r/a", recipe="/x/mine.yaml", nodes=2, started=1.0)


@given(st.lists(st.tuples(st.integers(0, 81920), st.booleans()), max_size=12))
def test_the_quick_peak_is_that_of_all_samples(rows: list[tuple[int, bool]]) -> None:
    lines = [
        f"2026-01-01T00:00:{index:02d}+0000,0,9,{used if known else '[N/A]'},81920"
        for index, (used, known) in enumerate(rows)
    ]
    text = "\n".join([HEADING, *lines, "2026-01-01T00:01"])
    samples = node_samples("gpu-n1.csv", text.encode())
    assert samples is not None
    assert peak_of_table(text) == peak_memory_gib([samples])


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEADING, f"{HEADING}\n1,2\n"])
def test_a_table_without_samples_has_no_peak(text: str) -> None:
    assert peak_of_table(text) is None


def test_the_peak_is_kept_at_the_end_of_a_run(tmp_path: Path) -> None:
    replay = running(tmp_path, "", host="elsewhere")
    lines = [f"2026-01-01T00:00:0{second}+0000,{second},9,{1024 * second},40960" for second in range(4)]
    (replay.logs / "gpu-n1.csv").write_text("\n".join([HEADING, *lines]) + "\n")
    replay.finish(0)
    directory = Path(replay.run.directory)
    spec = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps(spec | {"estimated_gib": 4.0}))
    run = load(LocalTransport(), str(directory))
    assert summary_of(LocalTransport(), run)["gpu_memory"] == {"peak_gib": 3.0, "total_gib": 40.0}
    summary = load_summary(LocalTransport(), run)
    assert summary is not None
    row = filled_row(starting_row(run), summary)
    assert (row.peak_gib, row.estimated_gib) == (3.0, 4.0)
    assert filled_row(starting_row(run), {"gpu_memory": [1]}).peak_gib is None


def test_the_latest_run_of_the_recipe_counts_one_of_the_same_size_first() -> None:
    rows = [
        replace(ROW, id="old", peak_gib=30.0, estimated_gib=40.0),
        replace(ROW, id="large", nodes=4, started=9.0, peak_gib=20.0, estimated_gib=10.0),
        replace(ROW, id="unmeasured", started=10.0, estimated_gib=40.0),
        replace(ROW, id="other", started=11.0, recipe="/x/other.yaml", peak_gib=1.0, estimated_gib=2.0),
    ]
    for nodes, run in ((2, "old"), (4, "large"), (8, "large"), (None, "large")):
        measured = measured_among(rows, "/elsewhere/mine.yaml", nodes)
        assert measured is not None
        assert measured.run == run
    assert measured_among(rows, "none.yaml", 2) is None


def test_a_recipe_of_the_same_name_counts_only_with_the_same_models() -> None:
    row = replace(ROW, student="a/s", teacher="a/t", peak_gib=30.0, estimated_gib=40.0)
    for models, counts in ((("a/s", "a/t"), True), (("b/s", "a/t"), False), (("", ""), False)):
        assert (measured_among([row], "/elsewhere/mine.yaml", 2, models) is not None) is counts
    assert measured_among([row], row.recipe, 2, ("b/s", "b/t")) is not None


def test_a_measurement_narrows_the_room_and_never_widens_it() -> None:
    more, less = MeasuredEstimate(40.0, 50.0, "run-1"), MeasuredEstimate(40.0, 20.0, "run-2")
    assert more.room_gib(80.0) == 64.0
    assert less.room_gib(80.0) == 80.0
    hint = measured_memory_hint(more, 70.0, 80.0)
    assert "run-1" in hint
    assert "50.0 GiB where 40.0 GiB were estimated (125%): by that, this one needs 87.5 GiB" in hint
    assert measured_memory_hint(more, 60.0, 80.0) == ""
    assert measured_memory_hint(None, 70.0, 80.0) == ""


def test_screens_show_what_an_earlier_run_took() -> None:
    phase = Phase("student-train", 30.0, 36.0, fits=True, moment="", terms=())
    estimate = Estimate(40.0, (phase,), None, ())
    lines = [line.plain for line in memory_lines(estimate, 60, MeasuredEstimate(30.0, 36.0, "run-1"))]
    assert lines[-1].startswith("measured   by that 43.2 of 40 GiB ✗ 36.0 GiB where 30.0 GiB were estimated")
    assert lines[:-1] == [line.plain for line in memory_lines(estimate, 60)]
    less = MeasuredEstimate(30.0, 15.0, "run-1")
    assert "18.0 of 40 GiB ✓" in memory_lines(estimate, 60, less)[-1].plain


def test_the_measurement_of_this_machine_is_found_by_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "mine.yaml"
    file.write_text("policy: {model_name: s}\nteacher: {model_name: t}\ncluster: {num_nodes: 2}\n")
    recipe = Resolver().resolve(file)
    assert measured_here(recipe, file) is None
    row = replace(ROW, recipe=str(file), state=JobState.COMPLETED, peak_gib=30.0, estimated_gib=40.0)
    cache = cache_file(str(tmp_path / "runs"), {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    write_private(cache, dumped({"/r/a": CachedRow((1.0, 1), row)}))
    assert measured_here(recipe, file) == MeasuredEstimate(40.0, 30.0, "a")
