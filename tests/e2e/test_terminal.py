"""The demo in a real terminal: shown live, left, found again, cancelled."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command import Command, processes_of
from tests.e2e.test_demo import ENDLESS

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@dataclass(frozen=True)
class Terminal:
    """A terminal of a given size, in a tmux server of its own."""

    socket: Path

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self.socket, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def open(self, command: Command, *arguments: str, columns: int, rows: int) -> None:
        """Run the command in a new window."""
        line = shlex.join([f"DISTILL_TUI_RUNS={command.runs}", str(command.program), *arguments])
        # Test runners export a width of their own, which would be believed over the terminal's.
        line = f"env -u COLUMNS -u LINES {line}; echo END $?; sleep 600"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), line)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def wait_for(self, *words: str, within_s: float = 100) -> str:
        """Return the screen as soon as all words stand on it."""
        return self.wait_until(lambda text: all(word in text for word in words), within_s)

    def wait_until(self, shown: Callable[[str], bool], within_s: float = 60) -> str:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            text = self.screen()
            if shown(text):
                return text
            time.sleep(0.1)
        size = self.tmux("display", "-p", "#{window_width} x #{window_height}").strip()
        raise AssertionError(f"not shown within {within_s} s; the screen ({size}) is:\n{self.screen()}")

    def kill(self) -> None:
        """Take the terminal away from whatever runs in it."""
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path / "tmux")
    yield opened
    opened.kill()


@pytest.mark.slow
def test_a_killed_terminal_leaves_the_run_which_is_found_again_and_cancelled(
    terminal: Terminal, tmp_path: Path
) -> None:
    command = Command(tmp_path / "runs")
    # One of the usual length may end by itself before it is found again and cancelled.
    terminal.open(command, "demo", *ENDLESS, columns=80, rows=24)
    terminal.wait_for("starting", "Ray head up", "All workers connected")
    terminal.wait_for("running", "✓ Setup complete", "loss")
    terminal.kill()
    time.sleep(3)
    assert processes_of(command.runs), "the run ended with its terminal"
    terminal.open(command, columns=80, rows=24)
    terminal.wait_for("1 run", "running", "demo")
    terminal.press("Enter")
    terminal.wait_for("✓ First step done", "step")
    terminal.press("c")
    terminal.wait_for("Cancel this run?")
    terminal.press("y")
    terminal.wait_for("cancelled by you")
    assert processes_of(command.runs) == {}
    terminal.press("q")
    terminal.wait_for("END 0")


@pytest.mark.long
def test_ctrl_c_in_the_demo_stops_its_run(terminal: Terminal, tmp_path: Path) -> None:
    command = Command(tmp_path / "runs")
    terminal.open(command, "demo", columns=160, rows=48)
    terminal.wait_for("✓ Ray head up", "3 logs", "GCS up")
    terminal.press("C-c")
    terminal.wait_for("END ")
    assert processes_of(command.runs) == {}
    (listed,) = json.loads(command("runs", "--json").stdout)["runs"]
    assert listed["state"] == "cancelled"
