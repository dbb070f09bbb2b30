"""Words, bars and plots: sizes that hold for any value."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from launcher.foretold import checks_foretelling
from launcher.logs.events import FindingSeen, JobState, Role, Source
from launcher.logs.signatures import catalogue
from tui.formatting import bar, duration, file_size, number, plural, sparkline
from tui.opening import RunSummary
from tui.run_view import Curve, RunView, TimelineEntry
from tui.widgets.curve import curve_lines
from tui.widgets.plot import nice_ticks, plot
from tui.widgets.status_panel import state_lines

VALUES = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=200)


def test_durations() -> None:
    told = [duration(value) for value in (0, 3.25, 9.96, 59.4, 59.6, 723, 3600, 11220, 90000, -5)]
    assert told == ["0.0s", "3.2s", "10s", "59s", "1m00s", "12m03s", "1h00m", "3h07m", "1d01h", "0.0s"]
    assert duration(3.9, tenths=False) == "3s"


def test_counts_with_their_nouns() -> None:
    texts = [plural(1, "run"), plural(0, "run"), plural(1204, "line"), plural(2, "copy"), plural(2, "key")]
    assert texts == ["1 run", "0 runs", "1,204 lines", "2 copies", "2 keys"]


def test_numbers_and_sizes() -> None:
    assert [number(value) for value in (0, 0.30351, 12.3456, 1234567.0, 1.2e-7, math.nan)] == [
        "0", "0.3035", "12.35", "1.235e+06", "1.200e-07", "nan",
    ]  # fmt: skip
    assert [file_size(count) for count in (0, 999, 1000, 12_345, 999_999, 1_002_000_000)] == [
        "0 B", "999 B", "1.0 kB", "12.3 kB", "1000 kB", "1.0 GB",
    ]  # fmt: skip


@given(done=st.floats(-1, 2), width=st.integers(1, 40))
def test_a_bar_has_its_width(done: float, width: int) -> None:
    assert len(bar(done, width)) == width


@given(values=VALUES, width=st.integers(1, 20))
def test_a_sparkline_is_no_wider_than_asked(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) <= width


@given(values=VALUES, width=st.integers(0, 90), height=st.integers(0, 30))
def test_a_plot_fits_for_any_values(values: list[float], width: int, height: int) -> None:
    points = [(float(step), value) for step, value in enumerate(values)]
    drawn = plot(points, width, height)
    if drawn is None:
        assert width < 30 or height < 3 or not any(math.isfinite(value) for value in values)
        return
    assert {len(label) + len(row) for label, row in zip(drawn.labels, drawn.rows, strict=True)} == {width}
    assert len(drawn.rows) + (2 if drawn.axis else 1) == height
    assert len(drawn.scale) <= len(drawn.rows[0])
    assert drawn.gaps == sum(not math.isfinite(value) for value in values)
    assert any(cell != " " for row in drawn.rows for cell in row)


def test_ends_of_a_falling_curve_stand_in_the_corners() -> None:
    drawn = plot([(float(step), 10.0 - step) for step in range(11)], 40, 12)
    assert drawn is not None
    assert drawn.rows[0][0] != " "
    assert drawn.rows[-1][-1] != " "
    assert drawn.rows[0][-1] == drawn.rows[-1][0] == " "


def test_ten_thousand_points_keep_a_spike() -> None:
    points = [(float(step), 100.0 if step == 5000 else 1.0) for step in range(10_000)]
    drawn = plot(points, 60, 10)
    assert drawn is not None
    assert drawn.rows[0].strip()


@given(low=st.floats(-1e9, 1e9), span=st.floats(1e-6, 1e9), wanted=st.integers(1, 12))
def test_ticks_lie_within(low: float, span: float, wanted: int) -> None:
    ticks = nice_ticks(low, low + span, wanted)
    assert len(ticks) <= wanted + 2
    margin = 1e-6 * max(abs(low), span)
    assert all(low - margin <= tick <= low + span + margin for tick in ticks)


def test_what_is_no_number_is_told() -> None:
    curve = Curve("loss", "loss", ((1.0, 2.0), (2.0, math.nan), (3.0, math.inf), (4.0, 1.0)))
    text = "\n".join(line.plain for line in curve_lines(curve, 60, 10))
    assert "! 2 values not finite" in text
    only = Curve("loss", "loss", ((1.0, math.nan),))
    assert [line.plain for line in curve_lines(only, 60, 10)] == ["loss  nan at step 1"]


def test_the_strip_tells_when_the_job_s_time_is_over() -> None:
    def told(now: float, deadline: float | None = 2000.0) -> str:
        view = RunView(
            RunSummary("r"),
            JobState.RUNNING,
            started=0.0,
            step=10,
            max_steps=20,
            step_time=60.0,
            deadline=deadline,
        )
        return state_lines(view, now, 80)[2].plain

    assert "job ends in 16m40s" in told(1000.0)
    assert "before" not in told(1000.0)
    assert "job ends in 5m00s, before the last step" in told(1700.0)
    assert "job ends" not in told(1700.0, None)


def test_the_strip_tells_that_the_cluster_gives_no_answer() -> None:
    view = RunView(RunSummary("r"), JobState.RUNNING, unanswered="Unable to contact slurm controller")
    told = [line.plain for line in state_lines(view, 0.0, 80)]
    assert " ! no answer from the cluster: Unable to contact slurm controller" in told


def test_a_finding_that_stands_in_no_log_names_no_line() -> None:
    notice = FindingSeen("stuck-pending", "It waits", "warning", "since noon", Source("", Role.SLURM, 0))
    told = [line.plain for line in state_lines(RunView(RunSummary("r"), findings=(notice,)), 0.0, 80)]
    assert told[-2:] == [" ! warning: It waits", "   since noon"]


@pytest.mark.parametrize("width", [80, 160])
def test_the_advice_on_a_failure_can_be_read_to_its_end(width: int) -> None:
    place = Source("logs/ray-worker-3.log", Role.WORKER, 248)
    for signature in catalogue().signatures.values():
        for advice in (signature.advice, *signature.phases.values()):
            root = FindingSeen(
                signature.id, signature.title, "fatal", "seen", place, advice.fix, "jwb0005", 7, root=True
            )
            other = replace(root, title="Another one", root=False)
            view = RunView(RunSummary("r"), JobState.FAILED, f"{root.title}: seen", findings=(root, other))
            told = [line.plain for line in state_lines(view, 0.0, width)]
            assert all(cell_len(line) <= width for line in told)
            assert told[3:5] == [
                f" ✗ reason: {root.title}: seen", "   ray-worker-3.log:248 (rank 7 on jwb0005)  seen"
            ]  # fmt: skip
            arrow, *rest = told[5:-1]
            assert arrow.startswith("   → ")
            if checks := checks_foretelling(signature.id):
                assert rest.pop().startswith(f"   F9 doctor: {', '.join(checks)} look")
            assert " ".join(line.strip() for line in (arrow[4:], *rest)) == " ".join(advice.fix.split())
            assert told[-1].startswith(" ✗ failure: Another one  ray-worker-3.log:248")


@pytest.mark.parametrize("width", [80, 160])
def test_a_run_that_stopped_says_how_it_goes_on_and_what_its_attempts_were(width: int) -> None:
    reason = (
        "stopped at step 3 of 3000 to save before its time limit; "
        "`distill-tui resume 20261128-010000-a-long-name-ab12` continues there"
    )
    attempts = ("job 9: failed at step 2 (GPU out of memory)", "job 10, from step 2: stopped at step 3")
    view = RunView(RunSummary("r"), JobState.STOPPED, reason, attempts=attempts, step=3, max_steps=3000)
    told = [line.plain for line in state_lines(view, 0.0, width)]
    assert all(cell_len(line) <= width for line in told)
    assert told[0].startswith(" ◐ stopped ")
    assert " ".join(line.strip() for line in told[3:-2]) == f"◐ {reason}"
    assert told[-2:] == [f" attempt: {text}" for text in attempts]


def test_a_completion_before_the_last_step_says_why() -> None:
    view = RunView(RunSummary("r"), JobState.COMPLETED, "all 2 epochs are used up at step 4")
    assert state_lines(view, 0.0, 80)[3].plain == " ✓ all 2 epochs are used up at step 4"
    assert len(state_lines(RunView(RunSummary("r"), JobState.COMPLETED), 0.0, 80)) == 3


@pytest.mark.parametrize(("width", "shown"), [(160, "✓✓◌·"), (80, "✓✓◌·"), (60, "✓✓◌·"), (40, "✓✓◌·")])
def test_milestones_stay_beside_a_long_line(width: int, shown: str) -> None:
    entries = tuple(
        TimelineEntry(name, name, "", reached=number < 2, awaited=number == 2)
        for number, name in enumerate(("Ray head up", "Driver started", "First step done", "Completed"))
    )
    for reason in ("", "its logs are no longer written and do not show an end; " * 5):
        view = RunView(RunSummary("r"), JobState.UNKNOWN, reason=reason, timeline=entries)
        line = state_lines(view, 0.0, width, milestones=True)[2]
        assert shown in line.plain
        assert line.cell_length <= width
