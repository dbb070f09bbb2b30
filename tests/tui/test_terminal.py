"""The app in a real terminal: where it refuses, how it leaves, what it writes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.tui.replay import running
from tests.tui.terminal import APP, ROOT, opened
from tui.terminal import refuse_reason

RESTORED = (b"\x1b[?1049l", b"\x1b[?1003l", b"\x1b[?25h")


def test_where_the_app_refuses() -> None:
    assert refuse_reason({"TERM": "xterm"}, True, True) is None
    assert refuse_reason({"TERM": "screen-256color"}, True, True) is None
    for environment, stdin, stdout, word in (
        ({"TERM": "dumb"}, True, True, "TERM=dumb"),
        ({}, True, True, "TERM is not set"),
        ({"TERM": ""}, True, True, "TERM is not set"),
        ({"TERM": "xterm"}, False, True, "standard input"),
        ({"TERM": "xterm"}, True, False, "standard output"),
    ):
        reason = refuse_reason(environment, stdin, stdout)
        assert reason is not None
        assert word in reason
        assert "distill-tui watch" in reason
        assert "distill-tui demo --plain" in reason
        assert len(reason.split("\n")) <= 3


def runs(root: Path) -> dict[str, str]:
    return {"DISTILL_TUI_RUNS": str(root)}


def test_a_dumb_terminal_gets_the_hint_and_no_escape(tmp_path: Path) -> None:
    with opened(environment={"TERM": "dumb", **runs(tmp_path)}) as terminal:
        assert terminal.wait() == 2
        assert b"distill-tui demo --plain" in terminal.written
        assert b"\x1b" not in terminal.written


def test_pipes_get_the_hint(tmp_path: Path) -> None:
    done = subprocess.run(
        APP, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **runs(tmp_path)}
    )
    assert done.returncode == 2
    assert "distill-tui watch" in done.stderr
    assert not done.stdout


def test_errors_that_go_to_a_file_leave_the_screen_on_the_terminal(tmp_path: Path) -> None:
    errors = tmp_path / "errors.txt"
    command = f"exec {shlex.join(APP)} 2>{shlex.quote(str(errors))}"
    with opened("-c", command, environment=runs(tmp_path), program=("/bin/sh",)) as terminal:
        terminal.see("No runs yet.")
        terminal.press(b"q")
        assert terminal.wait() == 0
    assert errors.read_bytes() == b""


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)],
    ids=lambda item: str(item),
)
def test_signals_restore_the_terminal(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with opened(environment=runs(tmp_path)) as terminal:
        before = terminal.modes()
        terminal.see("No runs yet.")
        assert terminal.modes() != before
        os.kill(terminal.pid, number)
        assert terminal.wait() == code
        for sequence in RESTORED:
            assert sequence in terminal.written
        assert terminal.modes() == before


@pytest.mark.long
@pytest.mark.parametrize("ignored", [False, True], ids=["hangup", "hangup-ignored"])
def test_a_lost_terminal_ends_the_app(tmp_path: Path, ignored: bool) -> None:
    with opened(environment=runs(tmp_path), ignore_hangup=ignored) as terminal:
        terminal.see("No runs yet.")
        os.close(terminal.descriptor)
        lost = time.monotonic()
        while not terminal.ended():
            assert time.monotonic() - lost < 2.5, "it goes on without a terminal"
            time.sleep(0.02)
        assert terminal.code in (129, -signal.SIGHUP)


@pytest.mark.long
def test_a_hostile_log_in_a_real_terminal(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    evil = "A\x1b]52;c;UFdORUQ=\x07B\x1b[2JC\x1b]0;evil\x07D\x9b31mE\x1bPq#0\x1b\\F\n"
    replay.append("ray-driver.log", evil)
    with opened("--no-mouse", environment=runs(tmp_path)) as terminal:
        terminal.see("11/20")
        terminal.press(b"\r")
        terminal.see("Ray head up")
        terminal.press(b"3")
        terminal.see("ABCDEF")
        for sequence in (b"]52;", b"evil", b"\x1bPq", b"\xc2\x9b", b"\x1b[?1003h"):
            assert sequence not in terminal.written
        terminal.press(b"q")
        assert terminal.wait() == 0


@pytest.mark.long
def test_an_ended_run_costs_no_byte_and_keys_cost_few(tmp_path: Path) -> None:
    replay = running(tmp_path, "", host="elsewhere")
    replay.append("ray-driver.log", "".join(f"line-{number}\n" for number in range(500)))
    replay.finish(0)
    with opened(environment=runs(tmp_path)) as terminal:
        terminal.see("completed", "12/20")
        terminal.press(b"\r3")
        terminal.see("line-499")  # one word: of a line, only words that change are sent
        terminal.read(1.5)
        assert terminal.read(2.0) == b""
        terminal.press(b"\x1b[5~")
        page = terminal.read(1.5)
        assert 0 < len(page) < 10_000


@pytest.mark.long
def test_no_color_means_none(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    with opened(environment={"NO_COLOR": "1", **runs(tmp_path)}) as terminal:
        terminal.see("11/20")
        terminal.press(b"\r")
        terminal.see("Ray head up")
        codes = {
            code for group in re.findall(rb"\x1b\[([0-9;]*)m", terminal.written) for code in group.split(b";")
        }
        assert not codes & {b"%d" % code for code in [*range(30, 39), *range(40, 49), *range(90, 108)]}
        assert b"7" in codes  # the chosen run stands out all the same
        terminal.read(0.5)
        terminal.written = b""
        terminal.press(b"c")
        terminal.see("Cancel this run?", "keep it running")
        chosen = terminal.written.partition(b"keep it running")[0].rpartition(b"\x1b[")[2]
        assert re.match(rb"(?:\d+;)*4[;m]", chosen), chosen


@pytest.mark.long
def test_a_fault_of_ours_is_three_lines_and_restores_the_terminal(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tui.app import run_app
from tui.screens.home import HomeScreen
def fail(self): raise ZeroDivisionError("[bold]by zero")
HomeScreen.action_refresh_runs = fail
raise SystemExit(run_app(runs_root=Path(sys.argv[2])))
"""
    program = (sys.executable, "-c", code, str(ROOT), str(tmp_path / "runs"))
    with opened(program=program) as terminal:
        terminal.see("No runs yet.")
        terminal.press(b"\x1b[15~")  # F5
        assert terminal.wait() == 1
        after = terminal.written.rpartition(b"\x1b[?1049l")[2]
        assert b"internal error (ZeroDivisionError)" in after
        assert b"Traceback" not in terminal.written
    assert "by zero" in (tmp_path / "crash.txt").read_text()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_suspend_and_foreground_in_tmux(tmp_path: Path) -> None:
    running(tmp_path / "runs", "", host="elsewhere").finish(0)
    socket = str(tmp_path / "tmux")

    def tmux(*arguments: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def see(*wanted: str) -> None:
        deadline = time.monotonic() + 20
        while not all(part in tmux("capture-pane", "-p") for part in wanted):
            assert time.monotonic() < deadline, tmux("capture-pane", "-p")
            time.sleep(0.1)

    shell = "env PS1=READY: bash --norc --noprofile"
    tmux("new-session", "-d", "-x", "80", "-y", "24", shell)
    try:
        see("READY:")
        line = shlex.join(["env", f"DISTILL_TUI_RUNS={tmp_path / 'runs'}", *APP])
        tmux("send-keys", line, "Enter")
        see("✓ completed", "F1 help")
        tmux("send-keys", "C-z")
        see("Stopped", "READY:")
        tmux("send-keys", "fg", "Enter")
        see("✓ completed", "F1 help")
        tmux("send-keys", "q")
        see("READY:")
        assert "F1 help" not in tmux("capture-pane", "-p")
    finally:
        tmux("kill-server")
