"""The wizard on the test cluster, in a terminal of 80x24, by keyboard alone."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.slurm.test_submit import MILESTONES
from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


@dataclass(frozen=True)
class Tmux:
    """A tmux of its own, with the app in it as the user's."""

    socket: Path

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, argv: list[str], size: tuple[int, int] = (80, 24)) -> None:
        """Run a command in a terminal."""
        width, height = map(str, size)
        command = f"TERM=tmux-256color {shlex.join(argv)}"
        self("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, command)

    def resize(self, width: int, height: int) -> None:
        """Make the terminal larger or smaller."""
        self("resize-window", "-x", str(width), "-y", str(height))

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self("capture-pane", "-p")

    def see(self, *expected: str, limit_s: float = 30.0) -> None:
        """Wait until all of it is on the screen."""
        self.until(lambda text: all(part in text for part in expected), str(expected), limit_s)

    def until(self, holds: Callable[[str], bool], what: str, limit_s: float = 30.0) -> None:
        """Wait until something holds of the screen's text."""
        end = time.monotonic() + limit_s
        while not holds(text := self.text):
            assert time.monotonic() < end, f"never: {what}\n{text}"
            time.sleep(0.2)

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        for key in keys:
            self("send-keys", key)
            time.sleep(0.1)

    def type(self, text: str) -> None:
        """Type into the field that has the keys, in place of what stands there."""
        self.press("C-u")
        self("send-keys", "-l", text)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    one = Tmux(tmp_path / "tmux")
    yield one
    subprocess.run(["tmux", "-S", str(one.socket), "kill-server"], capture_output=True, check=False)


def open_wizard(tmux: Tmux, user: User) -> None:
    tmux.start(user.argv("--no-mouse"))
    tmux.see("No runs yet", "n new")
    tmux.press("n")
    tmux.see("1 Cluster", "booster", "distill", "1-00:00:00")


def to_profile(tmux: Tmux) -> None:
    """Choose the profile that suits pretended nodes, then go on."""
    tmux.press("Down", "Down", "Down", "Down", "Right")
    tmux.see("‹ light ›")
    tmux.press("NPage")
    tmux.see("‹ training ›")


def as_rehearsal(tmux: Tmux) -> None:
    tmux.press("Left")
    tmux.see("‹ rehearsal ›", "rehearsal.yaml")
    tmux.press("NPage")
    tmux.see("Nodes", "00:10:00")


@pytest.mark.ray
def test_a_rehearsal_on_two_nodes_from_the_first_key_to_the_last_milestone(user: User, tmux: Tmux) -> None:
    open_wizard(tmux, user)
    to_profile(tmux)
    as_rehearsal(tmux)
    tmux.type("2")
    tmux.see("0.333 node-h", "1.33 GPU-h")
    tmux.press("NPage")
    tmux.see("rehearsal of", "2 nodes × 4 GPUs of booster for 00:10:00, charged to distill")
    tmux.press("t")
    tmux.until(lambda text: "starts      now" in text or "starts      at 20" in text, "a start")
    tmux.press("s")
    tmux.see("Submit?", "rehearsal: 2 nodes")
    tmux.press("y")
    tmux.see("Ray head up", "All workers connected")
    tmux.see("✓ Completed", "✓ completed", limit_s=200)
    (run,) = user.runs.glob("2*")
    state = user.state(str(run))
    assert state["state"] == "completed"
    assert {item["id"] for item in state["milestones"]} == set(MILESTONES)
    spec = json.loads((run / "run.json").read_text())
    assert (spec["kind"], spec["nodes"], spec["gpus_per_node"]) == ("rehearsal", 2, 4)
    assert ray_processes(user.cluster) == {}
    tmux.press("b")
    tmux.see("✓ completed", "rehearsal")


def test_a_wrong_account_and_too_long_a_time_in_slurms_words(user: User, tmux: Tmux) -> None:
    open_wizard(tmux, user)
    tmux.press("Down")
    tmux.type("nosuch")
    tmux.see("! may not use booster")
    tmux.press("Down", "Down", "Down", "Right", "NPage")
    as_rehearsal(tmux)
    tmux.press("NPage")
    tmux.see("charged to nosuch")
    tmux.press("s")
    tmux.see("Submit?")
    tmux.press("y")
    tmux.see("Error", "Slurm refused: Invalid account", "account that may use")
    tmux.press("o", "Escape")
    tmux.see("Nodes")
    tmux.press("Escape", "Escape")
    tmux.see("Partition", "nosuch")
    tmux.press("Right", "Down")  # the partition for short jobs
    tmux.see("‹ develbooster ›")
    tmux.type("distill")
    tmux.press("NPage", "NPage")
    tmux.see("Nodes", "develbooster")
    tmux.press("Down")
    tmux.type("3:00:00")
    tmux.see("develbooster: 02:00:00 at most")
    tmux.press("NPage")
    tmux.see("of develbooster for 03:00:00, charged to distill")
    tmux.press("s")
    tmux.see("Submit?")
    tmux.press("y")
    tmux.see("Error", "Requested time limit is invalid", "shorter")
    assert user.jobs() == []
    runs = sorted(user.runs.glob("2*"))
    assert [user.state(str(run))["state"] for run in runs] == ["failed", "failed"]
    tmux.press("o", "q")
    tmux.see("Quit?", "would be lost")
    tmux.press("y")
