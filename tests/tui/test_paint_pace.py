"""How often the monitor paints: the clock with lines that come, a title with its lines, nothing below it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

import tui.screens.home
from tests.tui.pilot import WIDE, shown
from tests.tui.replay import running
from tui.paint_pace import PaintPace


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def paints(lines_at: tuple[float, ...], until: float) -> list[float]:
    """Return the times at which the clock's text is painted: ticks each second, lines at the given times."""
    clock = Clock()
    pace = PaintPace(clock)
    pace.paint()
    ticks = [100.0 + number for number in range(1, int(until) + 1)]
    times = []
    for time, is_tick in sorted([(tick, True) for tick in ticks] + [(100.0 + at, False) for at in lines_at]):
        clock.time = time
        if pace.tick() if is_tick else pace.lines_shown():
            pace.paint()
            times.append(round(time - 100, 2))
    return times


def test_the_clock_is_painted_with_lines_that_come() -> None:
    assert paints((), 4) == [1, 2, 3, 4]
    each_second = tuple(0.5 + number for number in range(6))
    assert paints(each_second, 6) == [1.5, 2.5, 3.5, 4.5, 5.5]
    flood = tuple(round(1.1 * number, 1) for number in range(1, 8))
    assert paints(flood, 7) == [1.0, *flood[1:]]


@pytest.mark.parametrize("pause", [0.1, 0.33, 0.7, 1.0, 1.1, 1.3, 2.0, 5.0])
def test_the_clock_is_never_two_seconds_behind(pause: float) -> None:
    lines = tuple(pause * number for number in range(1, int(20 / pause)))
    times = [0.0, *paints(lines, 20)]
    gaps = [after - before for before, after in pairwise(times)]
    assert max(gaps) <= 2.0
    assert min(gaps) >= 0.6


async def test_a_title_says_what_its_lines_show(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("✓ First step done")
        pane = screen.monitor.panes.panes[0]
        for number in range(3):
            replay.append("ray-driver.log", f"one more {number}\n")
            before = pane.text.extent.lines
            await screen.until(lambda before=before: pane.text.extent.lines > before, "the line")  # type: ignore[misc]
            assert f"{pane.text.extent.lines} lines" in str(pane.title.render())


async def test_the_list_below_a_monitor_paints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted: list[bool] = []
    show = tui.screens.home.HomeScreen._show_time

    def counted(screen: tui.screens.home.HomeScreen) -> None:
        painted.append(True)
        show(screen)

    monkeypatch.setattr(tui.screens.home, "_TICK_S", 0.05)
    monkeypatch.setattr(tui.screens.home.HomeScreen, "_show_time", counted)
    running(tmp_path, host="elsewhere")
    async with shown(tmp_path) as screen:
        await screen.see("11/20")
        await screen.until(lambda: len(painted) > 3, "ticks")
        await screen.press("enter")
        await screen.see("✓ Ray head up")
        painted.clear()
        await asyncio.sleep(0.4)
        assert painted == []
        await screen.press("b")
        await screen.until(lambda: len(painted) > 3, "ticks again")
