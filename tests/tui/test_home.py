"""The list of runs: states, order, filter, opening, damaged directories, and changes while it is shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from launcher.overview.lister import RunLister
from launcher.overview.rows import filled_row, starting_row
from launcher.runs import load
from launcher.saved_summary import load_summary
from launcher.transports.base import FileStat
from launcher.transports.local import LocalTransport
from tests.tui.pilot import NARROW, WIDE, shown
from tests.tui.replay import LOSSES, Replay, make_run, running

BOTH = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])


def some_runs(root: Path) -> Replay:
    """A live one, a failed one, a completed one, and a directory that is damaged."""
    live = running(root, host="elsewhere", identity="20261128-040000-live-0004", name="live")
    failed = running(root, "", host="elsewhere", identity="20261128-030000-failed-0003", name="failed")
    failed.append("ray-driver.log", "Traceback (most recent call last):\n  File x\nValueError: too large\n")
    failed.finish(1)
    running(root, "", host="elsewhere", identity="20261128-020000-done-0002", name="done").finish(0)
    damaged = root / "20261128-010000-damaged-0001"
    damaged.mkdir()
    (damaged / "run.json").write_text('{"schema": 1}')
    (root / "no run at all").mkdir()
    return live


@pytest.mark.long
@BOTH
async def test_runs_newest_first_with_what_matters(tmp_path: Path, size: tuple[int, int]) -> None:
    some_runs(tmp_path)
    async with shown(tmp_path, size) as screen:
        await screen.see("4 runs in", "● running", "✗ failed", "✓ completed", "! damaged")
        rows = screen.text.split("\n")[2:6]
        assert [row.split()[1] for row in rows] == ["running", "failed", "completed", "damaged"]
        assert "11/20" in rows[0]
        assert "0.4700" in rows[0]
        assert "10m02s" in rows[1]
        if size == WIDE:
            assert "ValueError: too large" in rows[1]
            assert "█▆" in rows[2]
        await screen.press("down")
        await screen.see("failed: ValueError: too large", "20261128-030000-failed-0003")
        await screen.press("end", "enter")
        await screen.see("This run cannot be read", "run.json is damaged")
        await screen.press("escape")
        await screen.press("home", "enter")
        await screen.see("● running  live")


async def test_no_runs_say_what_to_do(tmp_path: Path) -> None:
    async with shown(tmp_path / "nowhere") as screen:
        await screen.see("No runs yet.", "distill-tui demo")
        await screen.press("enter", "slash", "c")
        await screen.see("No runs yet.")
        make_run(tmp_path / "nowhere", host="elsewhere")
        await screen.see("1 run in", "demo")


@pytest.mark.long
async def test_filter(tmp_path: Path) -> None:
    some_runs(tmp_path)
    async with shown(tmp_path) as screen:
        await screen.see("4 runs in", "✗ failed")
        await screen.press("slash")
        await screen.type("too large")
        await screen.see("1 of 4 runs", "failed")
        assert "✓ completed" not in screen.text
        await screen.press("enter", "enter")
        await screen.see("✗ reason: ValueError: too large")
        await screen.press("b")
        await screen.see("1 of 4 runs")
        await screen.press("slash", *["backspace"] * 9)
        await screen.type("nope")
        await screen.see("No run matches the filter.")
        await screen.press("escape")
        await screen.see("4 runs in", "✓ completed")


async def test_live_runs_are_read_again_and_ended_ones_are_not(tmp_path: Path) -> None:
    live = some_runs(tmp_path)
    async with shown(tmp_path) as screen:
        await screen.see("11/20", "✓ completed")
        done = tmp_path / "20261128-020000-done-0002"
        assert load_summary(LocalTransport(), load(LocalTransport(), str(done))) is not None
        log = done / "logs" / "local-0002-logs" / "ray-driver.log"
        log.write_text(log.read_text().replace("Loss: 0.4439", "Loss: 9.1234"))
        live.drive()
        live.finish(0)
        await screen.see("✓ completed live")
        assert screen.text.split("\n")[2].startswith(" ✓ completed live")
        assert "9.123" not in screen.text
        (done / "summary.json").unlink()
        await screen.press("f5")
        await screen.see("9.123")


async def test_a_list_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    root.write_text("this is a file\n")
    async with shown(root) as screen:
        await screen.see("! cannot list")
        root.unlink()
        make_run(root, host="elsewhere")
        await screen.see("1 run in")


def test_the_lister_reads_nothing_when_all_have_ended(tmp_path: Path) -> None:
    running(tmp_path, "", host="elsewhere").finish(0)

    class Counting(LocalTransport):
        calls = 0
        listed: ClassVar[list[str]] = []

        def listdir(self, path: str) -> list[FileStat]:
            Counting.listed.append(path)
            return super().listdir(path)

        def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
            Counting.calls += 1
            return super().read(path, offset, size)

    lister = RunLister(Counting(), str(tmp_path))
    lister.relist()
    while lister.poll_next():
        pass
    lister.relist()
    calls = Counting.calls
    Counting.listed.clear()
    for _ in range(3):
        lister.relist()
        assert not lister.poll_next()
    assert Counting.calls == calls
    # One listing of the root each: another shell may have resumed or renamed a run.
    assert Counting.listed == [str(tmp_path)] * 3


def test_a_summary_may_hold_anything(tmp_path: Path) -> None:
    row = starting_row(make_run(tmp_path, host="elsewhere"))
    odd: dict[str, Any] = {
        "state": "flying",
        "reason": None,
        "ended": "soon",
        "metrics": {"loss": "high", "step": "x"},
    }
    others: tuple[dict[str, Any], ...] = (
        {},
        {"metrics": []},
        {"metrics": {"loss": [None, 1, "a"], "checkpoints": ["b", 3]}},
    )
    for summary in (odd, *others):
        filled = filled_row(row, summary)
        assert filled.state is not None
        assert filled.state.value == "unknown"
    assert filled_row(row, {"metrics": {"loss": [0.5] * 500 + list(LOSSES)}}).losses[-1] == LOSSES[-1]
    assert len(filled_row(row, {"metrics": {"loss": [0.5] * 500}}).losses) == 64


@pytest.mark.long
async def test_many_runs_scroll(tmp_path: Path) -> None:
    for number in range(40):
        running(
            tmp_path, "SETUP", host="elsewhere", identity=f"2026-{number:04d}", name=f"run {number}"
        ).finish(0)
        os.utime(tmp_path / f"2026-{number:04d}")
    async with shown(tmp_path) as screen:
        await screen.see("40 runs", "run 39")
        await screen.press("end")
        await screen.see("run 0 ")
        await screen.press("pageup", "k", "j", "G", "g")
        await screen.see("run 39")
