"""A tmux of its own for a test: a program in a terminal, its keys and its screen."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Tmux:
    """A tmux of its own, with the app in it as the user's."""

    socket: Path
    pressed: list[str] = field(default_factory=list)
    """Keys that were pressed so far; typed text is not in it."""

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
            self.pressed.append(key)
            time.sleep(0.1)

    def type(self, text: str) -> None:
        """Type into the field that has the keys, in place of what stands there."""
        self.press("C-u")
        self("send-keys", "-l", text)
