"""Text from outside reaches the terminal without anything that the terminal would obey."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.pilot import NARROW, WIDE, Screen, shown
from tests.tui.replay import Replay, make_run
from tui.logview.line import display_text

EVIL = (
    "\x1b]52;c;UFdORUQ=\x07 \x1b[2J \x1b]0;evil\x07 \x9b31m \x9d0;evil\x9c \x1bPq#0\x1b\\ \x85 "
    "\u202eabc [red]x[/] \x00\x7f"
)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.binary(max_size=200))
def test_no_line_of_any_bytes_keeps_a_control_character(data: bytes) -> None:
    assert not CONTROL.search(display_text(data))


@given(st.text(max_size=100))
def test_nor_of_any_text(text: str) -> None:
    assert not CONTROL.search(display_text(text.encode("utf-8", "surrogatepass")))


def painted(screen: Screen) -> str:
    """Return every painted character, after checking that the terminal would obey none of them."""
    text = screen.text
    for line in text.split("\n"):
        assert not CONTROL.search(line), repr(line)
    return text


def hostile_run(root: Path) -> Replay:
    run = make_run(root, name=f"name{EVIL}", host=f"host{EVIL}")
    replay = Replay(run)
    odd = replay.logs.parent / "dir\x1b]0;evil\x07-logs"
    replay.logs.rename(odd)
    replay.logs = odd
    replay.start()
    replay.drive("train_data_step12")
    replay.append("ray-driver.log", f"log{EVIL}\n")
    replay.append("launcher.log", f"[ERROR] cause{EVIL}\n")
    return replay


@pytest.mark.long
async def test_names_logs_and_reasons(tmp_path: Path) -> None:
    replay = hostile_run(tmp_path)
    for size in (NARROW, WIDE):
        async with shown(tmp_path, size) as screen:
            await screen.see("11/20", "name")
            painted(screen)
            await screen.press("enter")
            await screen.see("✓ Ray head up")
            painted(screen)
            await screen.press("3")
            await screen.see("log")
            assert "[red]x[/]" in painted(screen)
            for key, wanted in (
                ()
                if size == NARROW
                else (("l", "type a part of a node"), ("c", "Cancel this run?"), ("f1", "Help"))
            ):
                await screen.press(key)
                await screen.see(wanted)
                painted(screen)
                await screen.press("q")
    replay.append("ray-driver.log", f"Traceback (most recent call last):\n  File x\nValueError: why{EVIL}\n")
    replay.finish(1)
    async with shown(tmp_path, WIDE) as screen:
        await screen.see("✗ failed")
        painted(screen)
        await screen.press("enter")
        await screen.see("run failed")
        painted(screen)


async def test_errors(tmp_path: Path) -> None:
    async with shown(tmp_path, open_run="none" + EVIL.replace("\x00", "").replace("/", "")) as screen:
        await screen.see("no run 'none")
        painted(screen)
    broken = tmp_path / "broken\x1b[2J"
    broken.mkdir()
    (broken / "run.json").write_text('{"\x1b]0;evil\x07": 1}')
    async with shown(tmp_path) as screen:
        await screen.see("! damaged")
        painted(screen)
        await screen.press("enter")
        await screen.see("This run cannot be read")
        painted(screen)
