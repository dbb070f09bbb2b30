"""Several logs on the screen: layouts by key, zoom, focus, sizes, the picker, searches across panes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from launcher.settings import load_settings
from tests.tui.pilot import NARROW, WIDE, Screen, shown
from tests.tui.replay import Replay, make_run, running

MIDDLE = (120, 40)


def several(root: Path, *, workers: int = 2) -> Replay:
    """Make a run with a driver, a head and workers, each with lines of its own."""
    replay = Replay(make_run(root, host="elsewhere"), workers=workers)
    replay.start()
    replay.drive("train_data_step12")
    replay.append("ray-head.log", "".join(f"head line {number}\n" for number in range(60)))
    for worker in range(1, workers + 1):
        replay.append(
            f"ray-worker-{worker}.log", "".join(f"worker {worker} line {number}\n" for number in range(60))
        )
    return replay


def titles(screen: Screen) -> list[str]:
    """Return the names of the logs in the panes, in their order."""
    return [
        pane.shown.name.rpartition("/")[2] if pane.shown else "all" for pane in screen.monitor.panes.panes
    ]


def line_between(screen: Screen) -> set[str]:
    """Return what is painted right of the first pane, from its first row to its last."""
    region = screen.monitor.panes.panes[0].region
    strips = screen.app.screen._compositor.render_strips()
    return {strip.crop(region.right, region.right + 1).text for strip in strips[region.y : region.bottom]}


@pytest.mark.long
async def test_the_layouts_by_key(tmp_path: Path) -> None:
    several(tmp_path)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("train_data_step12.jsonl", "head line 59", "worker 1 line 59", "driver over head")
        await screen.see("● running", "✓ First step done", "loss  0.4700 at step 11")
        assert titles(screen) == ["ray-driver.log", "ray-head.log", "ray-worker-1.log"]
        await screen.press("p")
        await screen.see("side by side", "train_data_step12.jsonl", "worker 1 line 59", "✓ First step done")
        assert "head line 59" not in screen.text
        await screen.until(lambda: line_between(screen) == {"│"}, "a line between the panes")
        await screen.press("p")
        await screen.see("grid", "worker 2 line 59", "head line 59")
        assert titles(screen) == ["ray-driver.log", "ray-head.log", "ray-worker-1.log", "ray-worker-2.log"]
        await screen.press("p")
        await screen.see("▸all", "worker 2│")
        await screen.press("p")
        await screen.see("▸driver", "following · ")
        assert titles(screen) == ["ray-driver.log"]
        await screen.press("P", "P")
        await screen.see("grid", "worker 2 line 59")


@pytest.mark.long
async def test_each_pane_goes_its_own_way(tmp_path: Path) -> None:
    replay = several(tmp_path)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("head line 59", "worker 1 line 59")
        driver, head, worker = screen.monitor.panes.panes
        await screen.press("tab")
        await screen.see("▸head")
        await screen.press("up", "up")
        await screen.until(lambda: not head.text.follow, "the head's log is paused")
        assert driver.text.follow
        assert worker.text.follow
        replay.append("ray-worker-1.log", "a new line\n")
        replay.append("ray-head.log", "another one\n")
        await screen.see("a new line", "paused, 1 new line")
        await screen.press("tab", "W")
        assert [pane.text.wrapped for pane in (driver, head, worker)] == [False, False, True]
        await screen.press("ampersand")
        await screen.type("line 1")
        await screen.press("enter")
        await screen.see("only “line 1”", "11 matching lines")
        assert [pane.filtered for pane in (driver, head, worker)] == [False, False, True]
        await screen.press("shift+tab", "shift+tab", "z")
        await screen.see("pane 1 of 3, zoomed", "● running", "First checkpoint saving")
        await screen.until(lambda: "✓ Ray head up" not in screen.text, "the timeline gone")
        assert "a new line" not in screen.text
        await screen.press("z")
        await screen.see("only “line 1”", "✓ Ray head up")


@pytest.mark.long
async def test_roles_and_findings_go_to_their_panes(tmp_path: Path) -> None:
    replay = several(tmp_path)
    replay.append(
        "ray-worker-2.log", "torch.OutOfMemoryError: CUDA out of memory. Tried to\n" + "more\n" * 90
    )
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("GPU out of memory")
        failing_first = ["ray-driver.log", "ray-head.log", "ray-worker-2.log"]
        await screen.until(lambda: titles(screen) == failing_first, "the failing worker in its pane")
        await screen.press("e")
        worker = screen.monitor.panes.panes[2]
        await screen.until(lambda: worker.text.navigator.note.startswith("finding"), "the finding")
        assert screen.monitor.logs is worker
        await screen.until(lambda: "OutOfMemoryError" in str(worker.text.active_line()), "its line")
        await screen.press("w")
        await screen.see("worker 1 line 59")
        assert titles(screen) == ["ray-driver.log", "ray-head.log", "ray-worker-1.log"]
        await screen.press("d")
        assert screen.monitor.logs is screen.monitor.panes.panes[0]
        await screen.press("T")
        await screen.see("milestone: First checkpoint saving")
        assert titles(screen)[1:] == ["ray-head.log", "ray-worker-1.log"]


@pytest.mark.long
async def test_sizes_and_layout_are_kept(tmp_path: Path) -> None:
    several(tmp_path / "runs")
    async with shown(tmp_path / "runs", WIDE, open_run="demo") as screen:
        await screen.see("worker 1 line 59", "A step takes far longer")
        before = [pane.region for pane in screen.monitor.panes.panes]
        await screen.press("plus", "tab", "greater_than_sign")
        await screen.until(
            lambda: screen.monitor.panes.panes[1].region.width == before[1].width + 4, "a wider pane"
        )
        assert screen.monitor.panes.panes[0].region.height == before[0].height + 1
        assert screen.monitor.panes.panes[2].region.width == before[2].width - 4
        await screen.press("p")
        settings = Path(os.environ["XDG_CONFIG_HOME"], "distill-tui", "settings.toml")
        await screen.until(lambda: settings.exists() and "side" in settings.read_text(), "the settings")
    assert load_settings().layout == "side"
    assert load_settings().panes[0].startswith("stacked ")
    async with shown(tmp_path / "runs", WIDE, open_run="demo") as screen:
        await screen.see("side by side")
        await screen.press("P")
        await screen.until(
            lambda: screen.monitor.panes.panes[1].region.width == before[1].width + 4, "the width as before"
        )
        await screen.press("equals_sign")
        await screen.until(lambda: screen.monitor.panes.panes[1].region == before[1], "even panes")


@pytest.mark.long
async def test_borders_and_milestones_by_mouse(tmp_path: Path) -> None:
    several(tmp_path)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("worker 1 line 59", "A step takes far longer")
        driver, head, _ = screen.monitor.panes.panes
        before = driver.region, head.region
        await screen.pilot.mouse_down(head.title, offset=(5, 0))
        await screen.pilot.hover(head.title, offset=(5, -2))
        await screen.pilot.mouse_up(head.title, offset=(5, 0))
        await screen.until(lambda: driver.region.height == before[0].height - 2, "a moved border")
        assert screen.monitor.logs is head
        area, (x, y) = screen.monitor.panes.area, (before[1].width, driver.region.height + 3)
        await screen.pilot.mouse_down(area, offset=(x, y))
        await screen.pilot.hover(area, offset=(x + 6, y))
        await screen.pilot.mouse_up(area, offset=(x + 6, y))
        await screen.until(lambda: head.region.width == before[1].width + 6, "a wider pane")
        titles_shown = [entry.title for entry in screen.monitor.view.timeline]
        first_step = titles_shown.index("First step done")
        await screen.pilot.click(screen.monitor.timeline, offset=(4, first_step))
        await screen.see("milestone: First step done")
        assert screen.monitor.logs is driver


@pytest.mark.long
async def test_small_screens_show_what_fits(tmp_path: Path) -> None:
    several(tmp_path)
    async with shown(tmp_path, NARROW, open_run="demo") as screen:
        await screen.see("Ray head up")
        await screen.press("3", "p")
        await screen.see("driver over head and worker", "head line 59", "worker 1 line 59", "✓✓✓")
        for size in ((40, 10), MIDDLE, (20, 6), (200, 60), NARROW):
            await screen.pilot.resize_terminal(*size)
            await screen.pilot.pause()
            assert len(screen.text.split("\n")) == size[1]
        await screen.see("driver over head and worker", "worker 1 line 59")


@pytest.mark.long
async def test_a_search_tells_its_position_and_goes_across_panes(tmp_path: Path) -> None:
    several(tmp_path)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("worker 1 line 59")
        await screen.press("tab", "slash")
        await screen.type("line 5")
        await screen.press("enter")
        await screen.see("match 11 of 11")
        await screen.press("N")
        await screen.see("match 10 of 11")
        await screen.press("asterisk", "n")
        await screen.see("match 11 of 11", "searching all panes")
        await screen.press("n")
        await screen.see("match 1 of 11")
        assert screen.monitor.logs is screen.monitor.panes.panes[2]
        await screen.press("N")
        await screen.until(lambda: screen.monitor.logs is screen.monitor.panes.panes[1], "the pane before")
        await screen.see("match 11 of 11")


@pytest.mark.long
async def test_the_failing_and_the_missing_of_four_hundred_in_a_few_keys(tmp_path: Path) -> None:
    replay = running(tmp_path, "SETUP COMPLETE", host="elsewhere")
    for number in range(1, 401):
        if number != 237:
            (replay.logs / f"ray-worker-{number}.log").write_text("Ray runtime started.\n")
    replay.append("ray-worker-311.log", "torch.OutOfMemoryError: CUDA out of memory. Tried to\n")
    async with shown(tmp_path, NARROW, open_run="demo") as screen:
        await screen.see("GPU out of memory")
        await screen.press("l")
        await screen.see("✗ failing", "ray-worker-311.log", "? missing", "ray-worker-237.log", "1 missing")
        await screen.press("enter")
        await screen.see("OutOfMemoryError")
        assert titles(screen) == ["ray-worker-311.log"]
        await screen.press("l")
        await screen.type("worker-39")
        await screen.see("ray-worker-399.log", "11 of ")
        await screen.press("tab", "tab", "enter")
        await screen.until(lambda: len(screen.monitor.panes.panes) == 2, "two panes")
        assert titles(screen) == ["ray-worker-39.log", "ray-worker-390.log"]
        await screen.press("l", "q")
        await screen.see("grid")


async def test_one_file_in_two_panes_is_indexed_once(tmp_path: Path) -> None:
    several(tmp_path)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("worker 1 line 59", "head line 59", "A step takes far longer")
        panes = screen.monitor.panes
        panes.focus_pane(panes.panes[1])
        await screen.until(lambda: panes.focused is panes.panes[1], "the second pane")
        panes.panes[1].show(panes.logs[0])
        await screen.until(
            lambda: panes.panes[1].text.extent.bytes == panes.panes[0].text.extent.bytes, "read"
        )
        readers = [pane.text._reader for pane in panes.panes[:2]]
        assert all(reader is not None for reader in readers)
        assert readers[0]._text is readers[1]._text  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
async def test_no_message_covers_a_line(tmp_path: Path, size: tuple[int, int]) -> None:
    several(tmp_path)
    async with shown(tmp_path, size, open_run="demo") as screen:
        await screen.see("Ray head up")
        await screen.press("3", "y")
        await screen.see("copied ")
        assert not list(screen.app.screen.query("Toast"))
        began = time.monotonic()
        await screen.press("n")
        await screen.see("no search yet")
        assert not list(screen.app.screen.query("Toast"))
        assert time.monotonic() - began < 5
