"""Long lines on several rows: nothing is lost, nothing is shown twice, and pages go on from one another."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.pilot import shown
from tests.tui.replay import Replay, running
from tests.tui.test_monitor import open_logs
from tui.logview.line import Line
from tui.logview.wrap import lines_on_last_page, page_of, rows_of, whole_lines

TEXTS = st.text(st.sampled_from("ab 漢字é|"), max_size=60)
LINES = st.lists(TEXTS.map(Line), max_size=12)
ROOMS = st.integers(2, 30)
HEIGHTS = st.integers(1, 12)


@given(TEXTS, ROOMS)
def test_the_rows_of_a_line_are_the_line(text: str, room: int) -> None:
    rows = list(rows_of(7, Line(text), room))
    assert (rows[0].start, rows[-1].stop) == (0, cell_len(text))
    assert all(before.stop == after.start for before, after in pairwise(rows))
    assert all(row.index == 7 and row.stop - row.start <= room for row in rows)
    assert [row.last for row in rows] == [False] * (len(rows) - 1) + [True]


@given(LINES, ROOMS, HEIGHTS)
def test_a_page_is_the_first_rows_of_its_lines(lines: list[Line], room: int, height: int) -> None:
    every = [row for place, line in enumerate(lines) for row in rows_of(place, line, room)]
    assert page_of(lines, room, height) == every[:height]


@given(LINES.filter(bool), ROOMS, HEIGHTS)
def test_the_last_page_ends_with_the_last_line(lines: list[Line], room: int, height: int) -> None:
    count = lines_on_last_page(lines, room, height)
    page = page_of(lines[-count:], room, height)
    assert whole_lines(page) == count or len(list(rows_of(0, lines[-1], room))) > height
    if count < len(lines):
        assert sum(1 for line in lines[-count - 1 :] for _ in rows_of(0, line, room)) > height


def long_lines(root: Path) -> Replay:
    replay = running(root, "SETUP COMPLETE", host="elsewhere")
    text = "".join(f"number {n} {'x' * (n % 5) * 70} end of {n}\n" for n in range(120))
    replay.append("ray-driver.log", text)
    return replay


async def test_wrapped_lines_are_shown_to_their_ends_and_followed(tmp_path: Path) -> None:
    replay = long_lines(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("following", "number 119")
        assert "end of 119" not in screen.text
        await screen.press("W")
        await screen.see("wrapped", "end of 119", "following")
        replay.append("ray-driver.log", f"number 120 {'y' * 300} end of 120\n")
        await screen.see("end of 120", "number 120", "following")
        await screen.press("W")
        await screen.until(lambda: "end of 120" not in screen.text, "the line goes beyond the edge")
        await screen.see("number 120", "following")


@pytest.mark.long
async def test_every_wrapped_line_is_met_by_paging(tmp_path: Path) -> None:
    long_lines(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.press("W", "home")
        await screen.see("wrapped", "paused")
        text = screen.monitor.logs.text
        for key in ("pagedown", "pageup"):
            met: set[str] = set()
            for _ in range(80):
                await screen.until(lambda: bool(text.visible_lines()), "lines")
                met |= {line.text for line in text.visible_lines()}
                top = text.scroll_offset.y
                await screen.press(key)
                if text.scroll_offset.y == top:
                    break
            assert {f"end of {n}" for n in range(120)} <= {line[line.rfind("end") :] for line in met}


@pytest.mark.long
async def test_a_match_in_a_wrapped_log_is_in_sight(tmp_path: Path) -> None:
    long_lines(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.press("W", "slash")
        await screen.type("end of 54")
        await screen.press("enter")
        await screen.see("end of 54", "number 54", "paused", "wrapped")
        assert screen.monitor.logs.text.navigator.current_visible
