"""Going about in logs: places, findings, filters, all logs by time, copying, the pager."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tui.screens.log_commands as logcommands
from launcher.errors import InputError
from tests.tui.pilot import WIDE, shown
from tests.tui.replay import Replay, make_run, running
from tests.tui.test_monitor import open_logs
from tui import clipboard
from tui.app import DistillApp
from tui.logview.stride_search import StrideSearch
from tui.paging import pager_command

FAILURE = "Traceback (most recent call last):\n  File x\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n"


def filled(root: Path, *, lines: int = 300) -> Replay:
    """Make a run whose driver's log ends in many lines, of eight ranks."""
    replay = running(root, "SETUP COMPLETE", host="elsewhere")
    text = "".join(
        f"\x1b[36m(Policy[rank={number % 8}] pid={70 + number % 8})\x1b[0m number {number}\n"
        for number in range(lines)
    )
    replay.append("ray-driver.log", text)
    return replay


@pytest.mark.long
async def test_search_goes_along_with_typing_and_escape_comes_back(tmp_path: Path) -> None:
    filled(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("following", "number 299")
        await screen.press("slash")
        await screen.type("number 1")
        await screen.see("number 199", "paused")
        await screen.type("23")
        await screen.see("number 123")
        await screen.press("escape")
        await screen.see("following", "number 299")
        assert screen.monitor.logs.text.navigator.query is None
        await screen.press("slash")
        await screen.press("slash", *"number .95", "slash", "enter")
        await screen.see("number 295", "paused")
        await screen.press("N")
        await screen.until(lambda: screen.monitor.logs.text.navigator.note == "", "the search is over")
        here = screen.monitor.logs.text.active_line()
        assert here is not None
        assert here.text.endswith("number 195")
        await screen.press("slash", "slash", *"(a", "slash", "enter")
        await screen.see("invalid pattern: missing )")


@pytest.mark.long
async def test_lines_and_places(tmp_path: Path) -> None:
    replay = filled(tmp_path)
    size = (replay.logs / "ray-driver.log").read_bytes().count(b"\n")
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        for typed, line in (("200", 200), ("1", 1), ("100%", size), ("50 %", round((size - 1) / 2) + 1)):
            await screen.press("colon")
            await screen.type(typed)
            await screen.press("enter")
            text = screen.monitor.logs.text
            await screen.until(lambda t=text, n=line: t.navigator.current == n - 1, f"line {line}")  # type: ignore[misc]
        await screen.see("50 %", "paused")
        await screen.press("colon")
        await screen.type("9 lines")
        await screen.press("enter")
        await screen.see("invalid position “9 lines”")


@pytest.mark.slow
async def test_filters_add_up_are_told_and_go_with_one_key(tmp_path: Path) -> None:
    replay = filled(tmp_path)
    replay.append("ray-driver.log", "WARNING 11-28 02:14:00 [x.py:1] slow\n" + FAILURE)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await open_logs(screen)
        await screen.press("ampersand")
        await screen.type("rank=3")
        await screen.press("enter")
        await screen.see("only rank=3", "x shows all", "number 299", "38 matching lines", "following")
        assert "number 298" not in screen.text
        await screen.press("ampersand")
        await screen.type("!number 2")
        await screen.press("enter")
        await screen.see("only rank=3 · not “number 2”", "number 195")
        assert "number 291" not in screen.text
        replay.append(
            "ray-driver.log", "(Policy[rank=3] pid=73) and a new one\n(Policy[rank=4] pid=74) other\n"
        )
        await screen.see("and a new one")
        assert "other" not in screen.text
        await screen.press("colon")
        await screen.type("100")
        await screen.press("enter")
        await screen.see("line 100", "paused")
        await screen.press("x", "v")
        await screen.see("only warnings and errors", "slow", "CUDA out of memory")
        await screen.press("v")
        await screen.until(lambda: "[x.py:1] slow" not in screen.text, "no warnings")
        await screen.press("v", "end")
        await screen.see("other")
        assert "x shows all" not in screen.text
        await screen.press("ampersand")
        await screen.type("rank=x")
        await screen.press("enter")
        await screen.see("rank= must be a number")


@pytest.mark.slow
async def test_a_filter_keeps_the_place(tmp_path: Path) -> None:
    filled(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.press("slash")
        await screen.type("number 123")
        await screen.press("enter")
        await screen.see("number 123", "paused")
        await screen.press("ampersand")
        await screen.type("rank=3")
        await screen.press("enter")
        await screen.see("only rank=3", "number 123")
        await screen.press("x")
        await screen.see("number 124")


@pytest.mark.long
async def test_findings_cause_first_in_whatever_log_they_are(tmp_path: Path) -> None:
    replay = filled(tmp_path)
    replay.append("ray-driver.log", FAILURE + "more\n" * 100)
    replay.append("launcher.log", "[ERROR][2026-11-28T02:05:00+0000] worker 2 left the Ray cluster\n")
    replay.finish(1)
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("✗ failed")
        await screen.press("v", "e")
        await screen.see("finding 1 of 2, the cause: GPU out of memory", "▸driver", "paused")
        here = screen.monitor.logs.text.active_line()
        assert here is not None
        assert "OutOfMemoryError" in here.text
        await screen.press("e")
        await screen.see("finding 2 of 2", "▸launcher", "worker 2 left")
        await screen.press("E")
        await screen.see("finding 1 of 2", "▸driver")
        await screen.press("a", "e")
        await screen.see("finding 2 of 2", "▸all", "launcher│ [ERROR]")


@pytest.mark.long
async def test_all_logs_in_the_order_of_time(tmp_path: Path) -> None:
    replay = Replay(make_run(tmp_path, host="elsewhere"), workers=2)
    replay.start()
    replay.append("ray-worker-1.log", "2026-11-28 02:00:06,123 INFO from the first worker\n")
    async with shown(tmp_path, WIDE, open_run="demo") as screen:
        await screen.see("✓ All workers connected")
        await screen.press("a")
        await screen.see(
            "▸all", "02:00:06 worker 1│ 2026-11-28 02:00:06,123 INFO", "without times: ", "head    │"
        )
        replay.append("ray-worker-2.log", "a line that comes now\n")
        await screen.see("worker 2│ a line that comes now", "following")
        replay.drive("SETUP COMPLETE")
        await screen.see("driver  │", "SETUP COMPLETE")
        await screen.press("slash")
        await screen.type("first worker")
        await screen.press("enter")
        await screen.see("paused", "INFO from the first worker")
        await screen.press("d")
        await screen.see("▸driver", "following")


@pytest.mark.slow
@pytest.mark.parametrize("tmux", [True, False])
async def test_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmux: bool) -> None:
    filled(tmp_path)
    copied: list[str] = []
    taken = [tmux]

    def take(text: str) -> bool:
        if taken[0]:
            copied.append(text)
        return taken[0]

    monkeypatch.setattr(logcommands, "copy_to_tmux", take)
    monkeypatch.setenv("TMUX", "/tmp/tmux") if tmux else monkeypatch.delenv("TMUX", raising=False)
    async with shown(tmp_path, open_run="demo") as screen:
        monkeypatch.setattr(DistillApp, "copy_to_clipboard", lambda _, text: copied.append(text))
        await open_logs(screen)
        await screen.see("number 299")
        await screen.press("y")
        await screen.see("tmux's" if tmux else "your terminal")
        assert copied[-1].endswith("\n(Policy[rank=3] pid=73) number 299")
        await screen.press("slash")
        await screen.type("number 298")
        await screen.press("enter")
        await screen.see("paused")
        taken[0] = False  # tmux is asked, and does not take it
        await screen.press("y")
        await screen.until(lambda: copied[-1] == "(Policy[rank=2] pid=72) number 298", "one line is copied")


def test_what_is_too_long_to_copy_is_cut_at_a_line() -> None:
    assert clipboard.fitting("short\nlines") == "short\nlines"
    cut = clipboard.fitting("ä" * 30_000 + "\n" + "b" * 30_000)
    assert cut == "ä" * 30_000


@contextmanager
def suspended(_: object) -> Iterator[None]:
    yield


@pytest.mark.long
async def test_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replay = filled(tmp_path)
    log = replay.logs / "ray-driver.log"
    paged: list[list[str]] = []
    monkeypatch.setattr(DistillApp, "suspend", suspended)

    def page(command: list[str], _: object) -> int:
        paged.append(command)
        return 0

    monkeypatch.setattr(logcommands, "page", page)
    monkeypatch.setenv("PAGER", "less -S")
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("number 299")
        await screen.press("o")
        await screen.until(lambda: paged, "the pager was opened")
        assert paged == [["less", "-S", "+G", str(log)]]
        await screen.press("slash")
        await screen.type("number 123")
        await screen.press("enter")
        await screen.see("paused")
        await screen.press("o")
        await screen.until(lambda: len(paged) == 2, "the pager was opened again")
        offset = log.read_text().encode().index(b"\x1b[36m(Policy[rank=3] pid=73)\x1b[0m number 123\n")
        assert paged[-1] == ["less", "-S", f"+{offset}P", str(log)]
        await screen.press("a")
        await screen.see("▸all")
        monkeypatch.setenv("PAGER", "no-such-pager")
        await screen.press("o")
        await screen.see("the pager 'no-such-pager' is not installed")


@pytest.mark.slow
async def test_without_a_terminal_there_is_no_pager(tmp_path: Path) -> None:
    filled(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.press("o")
        await screen.see("a pager can be opened only from a terminal")


@pytest.mark.parametrize(
    ("pager", "place", "arguments"),
    [
        ("", (7, 3), ["less", "-R", "+7P"]),
        ("less", None, ["less", "+G"]),
        ("more -d", (7, 3), ["more", "-d", "+3"]),
        ("more", (7, None), ["more"]),
        ("cat -v", (7, 3), ["cat", "-v"]),
    ],
)
def test_how_a_pager_is_called(
    tmp_path: Path, pager: str, place: tuple[int, int | None] | None, arguments: list[str]
) -> None:
    name = tmp_path / "-x; touch evil $(touch evil)\n.log"
    assert pager_command({"PAGER": pager}, str(name), place) == [*arguments, str(name)]
    with pytest.raises(InputError, match="quote"):
        pager_command({"PAGER": "less '"}, str(name), place)


def test_no_file_name_is_a_command(tmp_path: Path) -> None:
    name = tmp_path / "-x; touch evil $(touch evil)"
    name.write_text("text\n")
    done = subprocess.run(
        pager_command({"PAGER": "cat"}, str(name), None),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout == "text\n"
    assert [path.name for path in tmp_path.iterdir()] == [name.name]


def endless(_: StrideSearch) -> bool:
    """Stand for a step of a search that has far to go."""
    time.sleep(0.05)
    return False


@pytest.mark.long
async def test_a_search_can_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("number 299")
        monkeypatch.setattr("tui.logview.stride_search.StrideSearch.step", endless)
        await screen.press("slash")
        await screen.type("never")
        await screen.see("searching 0% (esc stops)")
        await screen.press("enter", "up")  # the screen goes on meanwhile
        await screen.see("number 298", "searching")
        await screen.press("escape")
        await screen.see("search stopped")
        assert screen.monitor.logs.text.navigator.stop_search() is False  # none is under way


async def test_a_jump_that_is_answered_before_the_first_lines_leads_there_once_they_are_read(
    tmp_path: Path,
) -> None:
    filled(tmp_path)
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        await screen.see("following", "number 299")
        view = screen.monitor.logs.text
        logs = view._selection.logs
        view.open(*((f"{label} again", path) for label, path in logs))  # nothing of it is read yet
        view.set_follow(False)
        view.move_to(120)
        assert view.scroll_offset.y == 0
        await screen.until(lambda: view.scroll_offset.y == 120, "the line")
        await screen.see("paused")
