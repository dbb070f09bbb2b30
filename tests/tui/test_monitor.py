"""The monitor: what it shows of a run, live and afterwards, and every key of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui.opening
from launcher.monitor.watch import watch_directory
from launcher.transports.local import LocalTransport
from tests.tui.pilot import NARROW, WIDE, Screen, shown
from tests.tui.replay import Replay, make_run, running

BOTH = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])


async def open_logs(screen: Screen) -> None:
    """Bring the logs to the front, at the end of the driver's log."""
    await screen.see("Ray head up")
    await screen.press("3")
    await screen.until(lambda: screen.monitor.logs.text.extent.lines, "lines read")


@BOTH
async def test_a_live_run_is_shown_as_it_grows(tmp_path: Path, size: tuple[int, int]) -> None:
    replay = Replay(make_run(tmp_path, host="elsewhere"))
    async with shown(tmp_path, size, open_run="demo") as screen:
        await screen.see("? unknown", "no logs here yet")
        replay.start()
        await screen.see("✓ Ray head up", "02:00:05", "✓ All workers connected", "◌ Driver attached to Ray")
        replay.drive("SETUP COMPLETE")
        await screen.see("● running", "✓ Setup complete", "◌ First step done", "no completed steps yet")
        replay.drive("Step 2/12")
        await screen.see("step 1/20", "loss 1.200", "now: training, step 2", "✓ First step done")
        replay.drive("train_data_step12")
        await screen.see("step 11/20", "✓ First checkpoint saving", "~", "left")
        assert "1.00 ┤" in screen.text
        replay.drive()
        replay.finish(0)
        await screen.see("✓ completed", "run completed", "took 10m02s", "step 12/20")
        assert "awaited" not in screen.text


@BOTH
async def test_a_failed_run_says_why_at_the_top(tmp_path: Path, size: tuple[int, int]) -> None:
    replay = running(tmp_path, "SETUP COMPLETE", host="elsewhere")
    replay.append("launcher.log", "[ERROR][2026-11-28T02:05:00+0000] worker 2 left the Ray cluster\n")
    replay.append(
        "ray-driver.log", "Traceback (most recent call last):\n  File x\nValueError: topk [bold]7[/]\n"
    )
    replay.finish(1)
    async with shown(tmp_path, size, open_run="demo") as screen:
        await screen.see("✗ failed", "run failed", "✗ reason: worker 2 left the Ray cluster", "not reached")
        top = screen.text.split("\n")[:8]
        assert any("launcher.log:" in line for line in top)


async def test_a_traceback_is_the_reason_and_is_no_markup(tmp_path: Path) -> None:
    replay = running(tmp_path, "SETUP COMPLETE", host="elsewhere")
    replay.append(
        "ray-driver.log", "Traceback (most recent call last):\n  File x\nValueError: topk [bold]7[/]\n"
    )
    replay.finish(1)
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("✗ reason: ValueError: topk [bold]7[/]")


async def test_the_panes_one_at_a_time(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("1 timeline", "2 curve", "✓ First step done", "loss  0.4700 at step 11")
        await screen.press("2")
        await screen.see("2 curve", "loss  0.4700 at step 11")
        assert "✓ First step done" not in screen.text
        await screen.press("m")
        await screen.see("validation accuracy  0.001000 at step 10")
        await screen.press("m")
        await screen.see("seconds per step  11.50 at step 11")
        await screen.press("3")
        await screen.see("▸driver", "following", "train_data_step12.jsonl")
        assert "2 curve──" not in screen.text
        await screen.press("1")
        await screen.see("✓ First step done")


@pytest.mark.long
async def test_wide_shows_everything_and_follows_the_size(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("1 timeline", "2 curve", "3 logs", "✓ First step done", "train_data_step12.jsonl")
        for size in ((100, 24), (60, 15), (20, 6), (200, 60), NARROW):
            await screen.pilot.resize_terminal(*size)
            await screen.pilot.pause()
            lines = screen.text.split("\n")
            assert len(lines) == size[1]
        await screen.see("1 timeline", "✓ First step done")


async def test_logs_by_their_roles(tmp_path: Path) -> None:
    replay = Replay(make_run(tmp_path, host="elsewhere"), workers=12)
    replay.start()
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("✓ All workers connected")
        await screen.press("d")
        await screen.see("no driver log yet")
        await screen.press("h")
        await screen.see("▸head", "Ray runtime started.")
        await screen.press("w")
        await screen.see("▸worker 1/12", "Ray worker 1 runs on jwb0001")
        await screen.press("w")
        await screen.see("▸worker 2/12", "Ray worker 2 runs on jwb0002")
        await screen.press("L")
        await screen.see("▸launcher", "All workers connected!")
        await screen.press("l")
        await screen.see("ray-worker-12.log")
        await screen.press("end", "up", "enter")
        await screen.see("▸worker 12/12", "Ray worker 12 runs on jwb0012")


@pytest.mark.long
async def test_the_driver_s_log_is_shown_as_soon_as_there_is_one_unless_another_was_chosen(
    tmp_path: Path,
) -> None:
    replay = Replay(make_run(tmp_path, host="elsewhere"))
    replay.start()
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("▸launcher", "All workers connected!")
        replay.drive("SETUP COMPLETE")
        await screen.see("▸driver", "SETUP COMPLETE")
        await screen.press("h")
        replay.append("ray-worker-2.log", "another worker\n")
        await screen.see("▸head", "worker 2")


@pytest.mark.long
async def test_follow_and_pause(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    replay.append("ray-driver.log", "".join(f"line {number}\n" for number in range(300)))
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("following", "line 299")
        text = screen.monitor.logs.text
        await screen.until(
            lambda: text.vertical_scrollbar.position == text.scroll_y == text.max_scroll_y > 200,
            "the bar at the log's end",
        )
        replay.append("ray-driver.log", "a new line\n")
        await screen.see("a new line")
        await screen.press("up")
        await screen.see("paused")
        held = screen.monitor.logs.text.scroll_offset.y
        replay.append("ray-driver.log", "one more\ntwo more\n")
        await screen.see("paused, 2 new lines")
        assert screen.monitor.logs.text.scroll_offset.y == held
        assert "two more" not in screen.text
        await screen.press("end")
        await screen.see("following", "two more")
        await screen.press("pageup", "pageup")
        await screen.see("paused", "line 255")
        await screen.press("pagedown", "pagedown", "pagedown")
        await screen.see("following", "two more")
        await screen.press("f")
        await screen.see("paused")
        await screen.press("f")
        await screen.see("following")
        await screen.press("g")
        await screen.see("▶ Setting up data...", "paused · 1/")


@pytest.mark.slow
async def test_search(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    replay.append(
        "ray-driver.log", "the \x1b[31mNEE\x1b[0mDLE\n" + "hay\n" * 100 + "another needle\n" + "hay\n" * 40
    )
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.press("n")
        await screen.see("no search yet")
        await screen.press("slash")
        await screen.type("needle")
        await screen.press("enter")
        await screen.see("another needle", "paused")
        await screen.press("N")
        await screen.see("the NEEDLE")
        await screen.press("N")
        await screen.see("search wrapped around", "another needle")
        await screen.press("n")
        await screen.see("the NEEDLE")
        await screen.press("slash")
        await screen.type("not there")
        await screen.press("enter")
        await screen.see("no match for “not there”")
        await screen.press("slash", "escape")
        await screen.until(lambda: not screen.monitor.logs.prompt.display, "the field is gone")
        assert screen.shows("▸driver")


async def test_long_lines_scroll_sideways_and_bars_show_their_last_state(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    long = "x" * 90 + "END"
    replay.append(
        "ray-driver.log", f"{long}\nLoading:   0%\rLoading:  50%\rLoading: 100%\r\n日本" + "語" * 60 + "\n"
    )
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("Loading: 100%", "›")
        assert "Loading:  50%" not in screen.text
        for _ in range(3):
            await screen.press("right")
        await screen.see("xxEND")
        await screen.press(*["left"] * 3)
        await screen.see("Loading: 100%")


@pytest.mark.long
async def test_a_log_that_is_truncated_or_gone(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    log = replay.logs / "ray-driver.log"
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("train_data_step12")
        os.truncate(log, 0)
        replay.append("ray-driver.log", "anew\n")
        await screen.see("the log was reset", "1 line")
        assert "train_data_step12" not in screen.text
        log.unlink()
        await screen.see("! the file does not exist (yet)")
        replay.append("ray-driver.log", "back again\n")
        await screen.see("back again")


@pytest.mark.long
async def test_leaving_the_monitor(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path) as screen:
        for key in ("b", "escape", "backspace"):
            await screen.see("11/20")
            await screen.press("enter")
            await screen.see("✓ Ray head up")
            await screen.press(key)
        await screen.see("1 run in")


async def test_logs_that_are_no_run(tmp_path: Path) -> None:
    replay = running(tmp_path / "runs", host="elsewhere")
    watch = watch_directory(LocalTransport(), str(replay.logs))
    async with shown(tmp_path / "none", open_watch=("some logs", watch)) as screen:
        await screen.see("● running  some logs", "✓ First step done", "step 11")
        assert "c cancel" not in screen.text
        await open_logs(screen)
        await screen.see("train_data_step12.jsonl")


async def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    async with shown(tmp_path, open_run="nothing") as screen:
        await screen.see("Error", "no run 'nothing'", "`distill-tui runs` lists them.")
        await screen.press("enter")
        await screen.see("No runs yet.")


class Hanging(LocalTransport):
    """Reads hang until told otherwise."""

    answer = threading.Event()

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        if path.endswith("ray-driver.log"):
            self.answer.wait(20)
        return super().read(path, offset, size)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    Hanging.answer.clear()
    monkeypatch.setattr(tui.opening, "local", Hanging)
    yield Hanging.answer
    Hanging.answer.set()


@pytest.mark.long
async def test_a_file_system_that_does_not_answer_is_told(tmp_path: Path, hanging: threading.Event) -> None:
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("! no answer from the file system for")
        await screen.press("f1")
        await screen.see("Help")  # the app itself goes on
        await screen.press("q")
        hanging.set()
        await screen.see("✓ First step done")
