"""Four panes in real terminals: signals, a lost terminal, suspension, sizes, colours, multiplexers."""

from __future__ import annotations

import fcntl
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.slurm.tmux import Tmux
from tests.tui.replay import Replay, make_run
from tests.tui.terminal import APP, Terminal, opened

SIZE = (160, 48)
RESTORED = (b"\x1b[?1049l", b"\x1b[?1003l", b"\x1b[?25h")
LINES = ("head line 59", "worker 1 line 59", "worker 2 line 59")
"""Last lines of three of the panes; the first one has the driver's."""
Cell = tuple[str, str, frozenset[str]]
"""A character, its background, and the rest of its look."""
SGR = re.compile(rb"\x1b\[([0-9;]*)m")


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user with one run, which has ended: nothing changes by itself."""
    root = tmp_path / "runs"
    replay = Replay(make_run(root, host="elsewhere"), workers=2)
    replay.start()
    replay.drive()
    replay.append("ray-head.log", "".join(f"head line {number}\n" for number in range(60)))
    for worker in (1, 2):
        text = "".join(f"worker {worker} line {number}\n" for number in range(60))
        replay.append(f"ray-worker-{worker}.log", text)
    replay.finish(0)
    places = {
        name: str(tmp_path / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
    }
    return {"DISTILL_TUI_RUNS": str(root), **places}


def shows_all(text: str) -> bool:
    return all(line in text for line in LINES)


@contextmanager
def four_panes(environment: dict[str, str], *, ignore_hangup: bool = False) -> Iterator[Terminal]:
    """Run the app in a terminal of its own, with four panes."""
    with opened("watch", "demo", environment=environment, size=SIZE, ignore_hangup=ignore_hangup) as terminal:
        terminal.see("completed", "First step done")
        terminal.press(b"3pp")
        terminal.see(*(line.rpartition(" ")[2] for line in LINES), "grid")
        yield terminal


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=lambda item: str(item)
)
def test_signals_restore_the_terminal(runs: dict[str, str], number: signal.Signals, code: int) -> None:
    with four_panes(runs) as terminal:
        assert termios.tcgetattr(terminal.descriptor)[3] & termios.ECHO == 0
        os.kill(terminal.pid, number)
        assert terminal.wait() == code
        for sequence in RESTORED:
            assert sequence in terminal.written
        assert termios.tcgetattr(terminal.descriptor)[3] & termios.ECHO


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [False, True], ids=["hangup", "hangup-ignored"])
def test_a_lost_terminal_ends_the_app(runs: dict[str, str], ignored: bool) -> None:
    with four_panes(runs, ignore_hangup=ignored) as terminal:
        os.close(terminal.descriptor)
        end = time.monotonic() + 10
        while not terminal.ended():
            assert time.monotonic() < end, "it goes on without a terminal"
            time.sleep(0.02)
        assert terminal.code in (129, -signal.SIGHUP)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "allowed"),
    [
        ({"TERM": "xterm", "COLORTERM": ""}, r"0?|[1-9]|2[1-9]|[349][0-79]|10[0-7]"),
        ({"TERM": "linux", "COLORTERM": ""}, r"0?|[1-9]|2[1-9]|[349][0-79]|10[0-7]"),
        ({"NO_COLOR": "1"}, r"0?|[1-9]|2[1-9]"),
    ],
    ids=["xterm", "linux", "no-colour"],
)
def test_colours_are_those_that_the_terminal_has(
    runs: dict[str, str], environment: dict[str, str], allowed: str
) -> None:
    with four_panes({**runs, **environment}) as terminal:
        terminal.press(b"\t/line 5\r")  # in the head's log
        terminal.see("match ")  # its figures are sent where they differ from those before
        terminal.read(for_s=1.0)
        codes = {code for group in SGR.findall(terminal.written) for code in group.split(b";")}
        assert len(codes) > 2
        assert not [code for code in codes if not re.fullmatch(allowed, code.decode())]
        terminal.press(b"q")
        assert terminal.wait() == 0


needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    one = Tmux(tmp_path / "tmux")
    yield one
    subprocess.run(["tmux", "-S", str(one.socket), "kill-server"], capture_output=True, check=False)


def started(tmux: Tmux, environment: dict[str, str]) -> None:
    """Start a shell in tmux, in it the app with four panes."""
    tmux.start(["env", "PS1=READY:", "bash", "--norc", "--noprofile"], size=SIZE)
    tmux.see("READY:")
    variables = [f"{name}={value}" for name, value in environment.items()]
    tmux("send-keys", shlex.join(["env", *variables, *APP, "watch", "demo"]), "Enter")
    tmux.see("✓ completed", "First step done")
    tmux.press("3", "p", "p")
    tmux.until(shows_all, "four panes")
    tmux.see("worker jwb0002")  # the nodes in the titles are read last


def lines_of(text: str) -> list[str]:
    """Return lines without the blanks at their ends."""
    return [line.rstrip() for line in text.splitlines()]


def settled(capture: Callable[[], str]) -> str:
    """Return what is on the screen once it stays so."""
    end = time.monotonic() + 20
    text = capture()
    while True:
        time.sleep(1.2)  # longer than the pace of the clock
        before, text = text, capture()
        if text == before:
            return text
        assert time.monotonic() < end, text


def cells(captured: str) -> list[Cell]:
    """Return each character with its background and the rest of its look; a blank's colour is not seen."""
    colour, background, weights = "", "", frozenset[str]()
    shown: list[Cell] = []
    for codes, character in re.findall(r"\x1b\[([\d;]*)m|(.|\n)", captured):
        if character:
            blank = character.isspace()
            shown.append((character, background, weights & UNDER if blank else weights | {colour}))
            continue
        for code in re.findall(r"[34]8;5;\d+|[34]8;2;\d+;\d+;\d+|\d+", codes) or ["0"]:
            if code == "0":
                colour, background, weights = "", "", frozenset()
            elif code[0] == "3" and len(code) > 1:
                colour = code if code != "39" else ""
            elif code[0] == "4" and len(code) > 1:
                background = code if code != "49" else ""
            else:
                weights |= {code}
    return without_ends(shown)


def without_ends(shown: list[Cell]) -> list[Cell]:
    """Return cells without the blanks at the ends of lines: tmux leaves out those that were only erased."""
    kept: list[Cell] = []
    for cell in shown:
        if cell[0] == "\n":
            while kept and kept[-1][0] == " ":
                kept.pop()
        kept.append(cell)
    return kept


UNDER = frozenset({"4", "7"})
"""Weights that are seen on a blank: underlined, reversed."""


def same_after_redraw(tmux: Tmux) -> None:
    """Check that all cells, with their colours, are as they are when everything is sent again."""
    before = settled(lambda: tmux("capture-pane", "-p", "-e"))
    tmux.press("C-l")
    after = settled(lambda: tmux("capture-pane", "-p", "-e"))
    assert cells(after) == cells(before)


@pytest.mark.long
@needs_tmux
def test_sizes_that_change_all_the_time_leave_a_whole_screen(tmux: Tmux, runs: dict[str, str]) -> None:
    started(tmux, runs)
    sizes = random.Random(5)
    for _ in range(40):
        tmux.resize(sizes.randint(20, 200), sizes.randint(6, 60))
        if sizes.random() < 0.3:
            time.sleep(0.15)
    for size in ((40, 10), (80, 24), (120, 40), SIZE):
        tmux.resize(*size)
        tmux.until(lambda text, size=size: len(text.splitlines()) == size[1], "the size")  # type: ignore[misc]
        tmux.see("completed")
        same_after_redraw(tmux)
    assert shows_all(tmux.text)


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize("theme", ["distill", "textual-light"])
def test_suspended_and_back_all_panes_are_there(tmux: Tmux, runs: dict[str, str], theme: str) -> None:
    started(tmux, {**runs, "TEXTUAL_THEME": theme})
    before = lines_of(settled(lambda: tmux.text))
    for _ in range(2):
        tmux.press("C-z")
        tmux.see("Stopped", "READY:")
        assert not shows_all(tmux.text)
        tmux("send-keys", "fg", "Enter")
        tmux.until(lambda text: lines_of(text) == before, "the screen as before")
    same_after_redraw(tmux)
    tmux.press("q")
    tmux.see("READY:")
    assert "F1 help" not in tmux.text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("screen") is None, reason="GNU screen is not installed")
def test_gnu_screen_shows_the_same(tmp_path: Path, runs: dict[str, str]) -> None:
    sockets, copy = tmp_path / "screens", tmp_path / "hardcopy"
    sockets.mkdir(mode=0o700)
    settings = tmp_path / "screenrc"
    settings.write_text("startup_message off\nterm screen-256color\ndefutf8 on\n")
    environment = {**runs, "SCREENDIR": str(sockets), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    program = (shutil.which("screen") or "screen", "-U", "-c", str(settings), "-S", "panes", *APP)

    def command(*arguments: str) -> None:
        argv = ["screen", "-S", "panes", "-X", *arguments]
        subprocess.run(argv, env={**os.environ, **environment}, check=False, capture_output=True)

    def text() -> str:
        command("hardcopy", str(copy))
        time.sleep(0.1)
        # It writes one byte of each character, and others beyond the end of a line.
        raw = copy.read_bytes().decode("ascii", errors="ignore") if copy.exists() else ""
        return "\n".join(re.sub(r"[^\w .:/-]", "", line).rstrip() for line in raw.splitlines())

    with ExitStack() as stack:
        terminal = stack.enter_context(
            opened("watch", "demo", environment=environment, size=SIZE, program=program)
        )
        stack.callback(command, "quit")  # it would only detach from a terminal that is gone
        terminal.until(lambda: "First step done" in text(), "the timeline")
        terminal.press(b"3pp")
        terminal.until(lambda: shows_all(text()), "four panes")
        for columns, rows in ((40, 10), (100, 30), SIZE):
            fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            terminal.read(1.0)
        terminal.until(lambda: shows_all(text()), "four panes again")

        def read_on() -> str:
            terminal.read(0.2)
            return text()

        before = settled(read_on)
        terminal.press(b"\x0c")
        assert settled(read_on) == before
        terminal.press(b"q")
        terminal.wait()
