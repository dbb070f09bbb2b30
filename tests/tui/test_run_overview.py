"""The list of all jobs in use: marks, order, groups, jobs of other programs, charts, comparison."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.clusters.job_list import JobListing
from launcher.logs.events import JobState
from launcher.overview.rows import RunRow
from launcher.storage.drafts import DraftStore
from launcher.storage.run_edits import RunSize
from launcher.storage.wizard_drafts import RunDraft, RunDrafts
from tests.tui.pilot import NARROW, WIDE, shown
from tests.tui.replay import running
from tui.screens.home_commands import is_valid
from tui.screens.home_text import RowCounts, TitleFacts, home_title
from tui.screens.removing import Removal
from tui.screens.wizard.wizard_state import WizardState
from tui.widgets.chart import ChartView, chart_lines
from tui.widgets.run_columns import COLUMNS, ColumnLayout

SQUEUE = """#!/bin/sh
[ -e {down} ] && {{ echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }}
echo '4711|RUNNING|1795831200|1795831200|1795838400|n1|None|x||booster|2|other-train'
echo '4712|PENDING|1795831260|1795838400|0||Priority|x||booster|4|waits'
"""


def fake_slurm(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let squeue list two jobs until the returned file exists."""
    down = directory / "down"
    (directory / "bin").mkdir()
    for name, text in (("squeue", SQUEUE.format(down=down)), ("sacct", "#!/bin/sh\n")):
        (directory / "bin" / name).write_text(text)
        (directory / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory / 'bin'}:/usr/bin:/bin")
    return down


@pytest.mark.slow
async def test_sort_group_mark_rename_remove_and_compare(tmp_path: Path) -> None:
    for number, name in enumerate(("alpha", "beta", "gamma")):
        identity = f"20261128-0{number}0000-{name}-000{number}"
        replay = running(
            tmp_path, "" if number else "train_data_step12", host="elsewhere", identity=identity, name=name
        )
        if number:
            replay.finish(0)
    async with shown(tmp_path, NARROW) as screen:
        await screen.see("3 runs in", "✓ completed")
        await screen.press("o", "o")
        await screen.see("by name ↑")
        assert [row.name for row in screen.app.screen.runs.rows] == ["alpha", "beta", "gamma"]  # type: ignore[attr-defined]
        await screen.press("O")
        await screen.see("by name ↓")
        await screen.press("v")
        await screen.see("▾ rehearsal.yaml  3 runs, 1 active")
        await screen.press("v", "home", "space", "space")
        await screen.see("● 2 marked")
        await screen.press("D")
        await screen.see("runs beside each other", "A gamma", "B beta", "loss")
        await screen.press("2")
        await screen.see("step, median", "until Data loaded")
        await screen.press("3")
        await screen.see("there are no two recipes to compare")
        await screen.press("b", "escape")
        await screen.press("f2", *["backspace"] * 9)
        await screen.type("better")
        await screen.press("enter")
        await screen.see("renamed alpha to better")
        await screen.press("d")
        await screen.see("3 runs in")
        await screen.press("home", "d")
        await screen.see("Remove this run?", "on disk.", "remove for good")
        await screen.press("y")
        await screen.see("2 runs in", "removed 1 run")
    assert sorted(name[16:21] for name in os.listdir(tmp_path)) == ["alpha", "beta-"]


@pytest.mark.long
async def test_jobs_of_other_programs_and_a_silent_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = fake_slurm(tmp_path, monkeypatch)
    running(tmp_path / "runs", "", host="elsewhere").finish(0)
    async with shown(tmp_path / "runs", WIDE) as screen:
        await screen.see(
            "1 run, 2 other jobs in", "other-train", "booster", "4711", "◌ queued", "waiting: jobs of",
            limit_s=60,
        )  # fmt: skip
        assert "~" not in screen.text
        down.touch()
        await screen.press("f5")
        await screen.see("! Slurm gives no answer since", "● running~", "✓ completed")
        await screen.press("slash")
        await screen.type("waits")
        await screen.press("enter")
        await screen.see("0 of 1 run, 1 of 2 other jobs", "as of", "Unable to contact")


async def test_charts_of_a_run_and_its_gpus(tmp_path: Path) -> None:
    replay = running(tmp_path, "", host="elsewhere")
    replay.finish(0)
    rows = [
        f"2026-11-28T02:0{minute}:{second:02d}+0000,{gpu},{90 * (gpu == 0)},30000,40960,300,9000"
        for minute in range(5)
        for second in (0, 15, 30, 45)
        for gpu in range(4)
    ]
    heading = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB],power.draw [W],"
    text = heading + "host.memory.used [MiB]\n" + "\n".join(rows) + "\n"
    (replay.logs / "gpu-n1.csv").write_text(text)
    async with shown(tmp_path, NARROW) as screen:
        await screen.see("✓ completed")
        await screen.press("m")
        await screen.see(
            "▸loss", "accuracy", "3 of 4 GPUs of n1 idle for", "peak 29.3 of 40.0 GiB", "esc back"
        )
        await screen.press("slash")
        await screen.type("power")
        await screen.see("1 to 2 of 2", "power_w_max")
        await screen.type("zz")
        await screen.see("no chart has these words; esc shows all")
        await screen.press("backspace", "backspace")
        await screen.see("1 to 2 of 2", "power_w_max")
        await screen.press("enter", "escape", "enter", "L", "s", "plus")
        await screen.see("log scale, mean of 5")
        await screen.press("b", "b")
        await screen.see("1 run in")


@pytest.mark.long
async def test_drafts_are_listed_gone_on_with_and_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("a: 1\n")
    DraftStore.of().save("t", recipe, "a: 2\n", recipe.read_bytes(), closed=True)
    writer = RunDrafts.of().writer()
    writer.put(RunDraft(WizardState({"nodes": "7"}).as_json(), "job", "seven nodes"))
    writer.leave()
    async with shown(tmp_path / "runs", NARROW) as screen:
        await screen.see("No runs yet, 2 drafts in", "◇ draft", "mine.yaml", "seven nodes")
        await screen.press("slash")
        await screen.type("mine")
        await screen.press("enter", "enter")
        await screen.see("recipe  mine.yaml", "● modified, 1 line")
        await screen.press("f3")
        await screen.until(lambda: "modified" not in screen.text, "the edits are taken back")
        await screen.press("b")
        await screen.see("0 of 1 draft in", "No run matches the filter.")
        await screen.press("escape")
        await screen.see("No runs yet, 1 draft in", "seven nodes")
        await screen.press("d")
        await screen.see("Discard this draft?", "being prepared, at step Nodes and time")
        await screen.press("y")
        await screen.see("No runs yet.", "distill-tui demo")
    assert RunDrafts.of().offered() == ()


def test_what_is_removed_is_said_with_its_size() -> None:
    rows = (
        RunRow("a", "a", "/a", JobState.FAILED),
        RunRow("b", "b", "/b", JobState.RUNNING),
        RunRow("c", "c", "", draft="/d/1", reason="unsaved edits of this recipe"),
        RunRow("7", "other", "", JobState.COMPLETED, job="7"),
    )
    removal = Removal.of(rows)
    assert removal.title == "Remove 1 run and discard 1 draft?"
    text = removal.text([RunSize("/a", 2_000_000)])
    assert "a  a  2.0 MB\nc  unsaved edits of this recipe" in text
    assert "2.0 MB on disk." in text
    assert "1 run that may still run: kept." in text
    assert [row.job for row in removal.jobs] == ["7"]
    assert Removal.of(rows[2:3]).title == "Discard this draft?"
    assert not Removal.of(rows[1:2])


@pytest.mark.parametrize("width", range(20, 260, 7))
@pytest.mark.parametrize("offset", [0, 3, 8])
def test_columns_fill_the_width(width: int, offset: int) -> None:
    layout = ColumnLayout.of(width, offset)
    row = RunRow(
        "i", "名前" * 20, "/r", JobState.FAILED, reason="x" * 300, step=3, started=1e9, losses=(0.5,)
    )
    cells = layout.cells(row, 2e9)
    from rich.cells import cell_len

    assert cell_len(" ".join(cells)) <= max(width, 34)
    assert len({column.title for column in layout.columns}) == len(layout.columns) <= len(COLUMNS)


def test_actions_are_offered_where_they_can_be_done() -> None:
    live = RunRow("a", "a", "/a", JobState.RUNNING, jobs=("1",), job="1")
    done = RunRow("b", "b", "/b", JobState.FAILED, jobs=("2",), job="2")
    other = RunRow("3", "c", "", JobState.RUNNING, job="3")
    broken = RunRow("d", "d", "/d", damaged="x")
    offered = {
        action: [is_valid(action, [row]) for row in (live, done, other, broken)]
        for action in ("cancel_run", "remove_run", "rename_run", "resume_run", "copy_job", "open_charts")
    }
    assert offered == {
        "cancel_run": [True, False, True, False],
        "remove_run": [False, True, False, False],
        "rename_run": [True, True, False, False],
        "resume_run": [False, True, False, False],
        "copy_job": [True, True, True, False],
        "open_charts": [True, True, False, False],
    }
    draft = RunRow("e", "e", "", draft="/d/1", recipe="/x/e.yaml")
    assert is_valid("remove_run", [live, draft])
    assert is_valid("resume_run", [live, done, other, draft])
    assert not is_valid("rename_run", [draft])
    assert is_valid("compare_runs", [live, done])
    assert not is_valid("compare_runs", [live, other])


@pytest.mark.parametrize("curves", [1, 3])
@pytest.mark.parametrize("points", [0, 1, 2, 50, 5000])
@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_chart_fills_its_cells(curves: int, points: int, logarithmic: bool) -> None:
    import numpy as np

    from launcher.overview.series import Series

    x = np.arange(points, dtype=np.float64)
    values = np.where(x % 11 == 5, np.nan, np.sin(x / 9) + 2)
    series = [Series(f"s{index}", x, x, values + index) for index in range(curves)]
    for width, height in ((40, 12), (20, 6), (8, 4), (120, 40)):
        lines = chart_lines("title", series, ChartView(logarithmic=logarithmic), width, height)
        assert len(lines) == height
        assert {line.cell_length for line in lines} == {width}
    drawn = "\n".join(line.plain for line in chart_lines("t", series, ChartView(), 60, 12))
    if curves > 1 and points > 20:
        assert all(letter in drawn for letter in "ABC")


def test_zooming_and_panning_stay_within_the_axis() -> None:
    full = (0.0, 100.0)
    view = ChartView().zoomed(full, 0.5)
    assert view.range_in(full) == (25.0, 75.0)
    assert view.panned(full, 5.0).range_in(full) == (50.0, 100.0)
    assert view.panned(full, -5.0).range_in(full) == (0.0, 50.0)
    assert view.zoomed(full, 2.0) == ChartView()
    assert ChartView().panned(full, 0.25) == ChartView()


@pytest.mark.parametrize("runs", [3, 12_345])
@pytest.mark.parametrize("order", ["", "by recipe, time taken ↑"])
@pytest.mark.parametrize("width", [80, 160])
def test_the_title_says_since_when_slurm_gives_no_answer(runs: int, order: str, width: int) -> None:
    listing = JobListing(asked=1e9, problem="down")
    facts = TitleFacts(
        "/a/root/of/runs", RowCounts(runs, 2, 0), RowCounts(runs, 2, 0), order, marked=0, message="",
        problem="", busy_s=0.0, listing=listing,
    )  # fmt: skip
    title = home_title(facts, width).plain
    assert len(title) <= width
    assert title.endswith("! Slurm gives no answer since 01:46:40")
    assert f"{runs:,} runs, 2 other jobs" in title
    assert home_title(replace(facts, listing=None, order=""), width).plain.endswith("/runs")


def test_the_title_counts_what_the_filter_leaves_of_each_kind() -> None:
    def title(listed: RowCounts, shown: RowCounts) -> str:
        facts = TitleFacts(
            "/r", listed, shown, "", marked=0, message="", problem="", busy_s=0.0, listing=None
        )
        return home_title(facts, 120).plain.removeprefix(" distill-tui  ").removesuffix(" in /r")

    listed = RowCounts(1200, 2, 1)
    assert title(listed, listed) == "1,200 runs, 2 other jobs, 1 draft"
    assert title(listed, RowCounts(0, 1, 1)) == "0 of 1,200 runs, 1 of 2 other jobs, 1 draft"
    assert title(RowCounts(0, 2, 0), RowCounts(0, 2, 0)) == "0 runs, 2 other jobs"
    assert title(RowCounts(0, 0, 2), RowCounts(0, 0, 1)) == "1 of 2 drafts"
    assert title(RowCounts(0, 0, 2), RowCounts(0, 0, 2)) == "No runs yet, 2 drafts"


def test_phases_of_a_step_are_one_chart() -> None:
    import numpy as np

    from launcher.overview.series import Series
    from tui.screens.charts import charts_of

    x = np.arange(3, dtype=np.float64)
    names = ("loss", "step_time_s", "training_time_s", "generation_time_s", "tokens_time_s")
    series = [Series(name, x, x, x) for name in names]
    titles = [chart.title for chart in charts_of(series)]
    assert titles.index("phases of a step: A generation, B training") == titles.index("step_time_s") + 1
    assert len(titles) == len(names) + 1
    assert len(charts_of(series[:3])) == 3


def test_what_is_over_time_keeps_its_own_range_and_units() -> None:
    import numpy as np

    from launcher.overview.series import Series

    x = np.arange(600, dtype=np.float64)
    gpu = Series("gpu/n1/power_w_max", x, x, x, by_time=True)
    assert "9m59s" in chart_lines("t", (gpu,), ChartView(), 60, 9)[-1].plain
    assert "599" in chart_lines("t", (Series("loss", x, x, x),), ChartView(), 60, 9)[-1].plain
    one = Series("accuracy", x[:1] + 10, x[:1], x[:1] + 0.5)
    drawn = chart_lines("t", (one,), ChartView(), 60, 9)
    assert any("⠤" in line.plain or "⠒" in line.plain or "⠉" in line.plain for line in drawn[1:-2])
    assert drawn[-1].plain.split() == ["10"]


def test_models_of_one_family_fit_their_column() -> None:
    column = next(column for column in COLUMNS if column.title == "student <- teacher")

    def text(student: str, teacher: str) -> str:
        return column.text(RunRow("i", "n", "/r", student=student, teacher=teacher), 0.0)

    assert text("Qwen/Qwen3-1.7B", "Qwen/Qwen3-8B") == "Qwen3-1.7B <- 8B"
    assert text("a/s", "b/t") == "s <- t"
    assert text("Qwen/Qwen3-1.7B", "") == "Qwen3-1.7B"
    assert text("Llama-3.2-1B-Instruct", "Qwen3-8B-Base") == "Llama-3.2-1B-Instruct <- Qwen3-8B-Base"


def test_the_name_of_a_chart_stays_beside_many_values() -> None:
    import numpy as np

    from launcher.overview.series import Series

    x = np.arange(3, dtype=np.float64)
    curves = [Series("accuracy", x, x, x + 0.123456) for _ in range(5)]
    for width in (40, 60, 80):
        head = chart_lines("accuracy", curves, ChartView(), width, 9)[0].plain
        assert head.startswith(" accuracy ")
        assert head.split()[1:] in ([], ["2.123"] * 5, ["2.12"] * 5, ["2.1"] * 5)
