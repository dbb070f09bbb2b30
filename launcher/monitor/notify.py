"""Notifications that a run began, failed or ended: by the bell, the terminal, or the user's own command.

A terminal notification is an escape sequence: OSC 9 (iTerm2, kitty, WezTerm, Windows Terminal), or OSC 777
(urxvt, foot, VTE); others ignore both. tmux and screen pass it on only when it is wrapped, tmux only with
`allow-passthrough on`. All text is cleaned and cut: text from a log must not become an escape sequence.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from launcher.errors import InputError
from launcher.logs.events import JobState
from launcher.monitor.state import RunState
from launcher.settings import load_settings
from launcher.text import clean
from recipes.secrets import masked

TEXT_LIMIT = 200
COMMAND_TIMEOUT_S = 60.0
BELL = "\a"


class Kind(StrEnum):
    """Kind of change that is notified."""

    START = "start"
    """The run got its nodes and begins."""
    FAILURE = "failure"
    END = "end"
    """The run completed, or was cancelled."""


@dataclass(frozen=True, slots=True)
class RunNotification:
    """Content of a notification; texts are cleaned."""

    kind: Kind
    run: str
    state: JobState
    reason: str = ""
    job: str = ""
    step: int = 0
    max_steps: int | None = None
    loss: float | None = None

    def in_words(self) -> str:
        """Return the notification as one line."""
        change = "has begun" if self.kind is Kind.START else self.state.value
        steps = f", step {self.step}/{self.max_steps or '?'}" if self.step else ""
        reason = f": {self.reason}" if self.reason and self.kind is not Kind.START else ""
        return f"{self.run} {change}{steps}{reason}"[:TEXT_LIMIT]

    def environment(self) -> dict[str, str]:
        """Return the content as environment variables for a user's command."""
        values = {
            "EVENT": self.kind.value,
            "RUN": self.run,
            "STATE": self.state.value,
            "REASON": self.reason,
            "JOB": self.job,
            "STEP": str(self.step),
            "MAX_STEPS": "" if self.max_steps is None else str(self.max_steps),
            "LOSS": "" if self.loss is None else f"{self.loss:g}",
            "TEXT": self.in_words(),
        }
        return {f"DISTILL_TUI_{name}": value for name, value in values.items()}


class Channel(Protocol):
    """Way to notify the user."""

    def send(self, note: RunNotification) -> str:
        """Send a notification; return the problem, empty on success."""
        ...


Write = Callable[[str], str]
"""Writes to the terminal; returns the problem, empty on success."""


@dataclass(frozen=True, slots=True)
class BellChannel:
    """Bell of the terminal."""

    write: Write

    def send(self, note: RunNotification) -> str:
        """Ring the bell."""
        del note
        return self.write(BELL)


@dataclass(frozen=True, slots=True)
class TerminalChannel:
    """Notification by the terminal emulator."""

    write: Write
    environment: Mapping[str, str]

    def send(self, note: RunNotification) -> str:
        """Write the escape sequence."""
        return self.write(sequence(note.in_words(), self.environment))


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """Command of the user, run without a shell; its environment holds the content."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]

    def send(self, note: RunNotification) -> str:
        """Run the command to its end."""
        try:
            completed = subprocess.run(
                self.argv, env={**self.environment, **note.environment()}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", check=False, timeout=COMMAND_TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"'{self.argv[0]}' did not end within {COMMAND_TIMEOUT_S:.0f} s"
        except OSError as error:
            return f"'{self.argv[0]}' cannot be run: {error.strerror}"
        if completed.returncode:
            output = completed.stderr or completed.stdout
            last_line = clean(output.strip().rpartition("\n")[2])[:TEXT_LIMIT]
            return f"'{self.argv[0]}' ended with exit code {completed.returncode}: {last_line}".rstrip(": ")
        return ""


def sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the escape sequence for a notification by this terminal, wrapped for tmux or screen."""
    # A semicolon separates parts of the sequence, and `4;` after OSC 9 draws a progress bar.
    plain = clean(text).replace(";", ",")[:TEXT_LIMIT]
    terminal = environment.get("TERM", "")
    if environment.get("VTE_VERSION") or terminal.startswith(("rxvt", "foot")):
        escaped = f"\x1b]777;notify;distill-tui;{plain}{BELL}"
    else:
        escaped = f"\x1b]9;distill-tui: {plain}{BELL}"
    if environment.get("TMUX"):
        return f"\x1bPtmux;{escaped.replace(chr(27), chr(27) * 2)}\x1b\\"
    if terminal.startswith("screen"):
        return f"\x1bP{escaped}\x1b\\"
    return escaped


def to_terminal(text: str) -> str:
    """Write to this process's terminal, whatever its output is redirected to; return the problem."""
    try:
        with Path("/dev/tty").open("w") as terminal:
            terminal.write(text)
    except OSError as error:
        return f"no terminal to notify: {error.strerror}"
    return ""


def channels(
    names: Sequence[str], environment: Mapping[str, str] = os.environ, write: Write = to_terminal
) -> tuple[Channel, ...]:
    """Return the channels for names: `bell`, `terminal`, or a command line.

    Raises:
        InputError: a command line cannot be parsed, or its command does not exist.
    """
    return tuple(_channel(item, environment, write) for item in names)


def _channel(item: str, environment: Mapping[str, str], write: Write) -> Channel:
    if item == "bell":
        return BellChannel(write)
    if item == "terminal":
        return TerminalChannel(write, environment)
    try:
        argv = shlex.split(item)
    except ValueError as error:
        raise InputError(f"invalid notification command '{item}': {error}") from error
    if not argv or shutil.which(argv[0], path=environment.get("PATH")) is None:
        raise InputError(
            f"invalid notification command '{argv[0] if argv else item}': not found in PATH",
            fix="Give bell, terminal, or a command; its environment gets DISTILL_TUI_… variables.",
        )
    return CommandChannel(tuple(argv), environment)


def channels_in_settings(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the channel names in the user's settings file: `notify = "terminal"`, or a list.

    Raises:
        InputError: the file cannot be read.
    """
    return load_settings(environment).notify


@dataclass(slots=True)
class Notifier:
    """Sender of notifications when a run starts or ends; earlier changes are not notified."""

    run: str
    channels: tuple[Channel, ...]
    problems: set[str] = field(default_factory=set)
    _last_state: JobState | None = None

    def news(self, state: RunState) -> RunNotification | None:
        """Return the notification for the change since the last call; None where there is none."""
        if state.state is JobState.UNKNOWN:
            return None
        kind, self._last_state = change(self._last_state, state.state), state.state
        return notification_of(self.run, kind, state) if kind is not None else None

    def send(self, note: RunNotification) -> tuple[str, ...]:
        """Send a notification, which takes as long as the user's command; return new problems."""
        problems = {problem for channel in self.channels if (problem := channel.send(note))}
        fresh = problems - self.problems
        self.problems |= fresh
        return tuple(sorted(fresh))

    def update(self, state: RunState) -> tuple[str, ...]:
        """Notify of a change of the run since the last call; return new problems."""
        note = self.news(state)
        return self.send(note) if note is not None else ()


def change(before: JobState | None, after: JobState) -> Kind | None:
    """Return the kind of a change of state; None where it is not notified."""
    if before is None or before is after or before.ended:
        return None
    if after is JobState.FAILED:
        return Kind.FAILURE
    if after.ended:
        return Kind.END
    began = after in (JobState.STARTING, JobState.RUNNING) and before is JobState.QUEUED
    return Kind.START if began else None


def notification_of(run: str, kind: Kind, state: RunState) -> RunNotification:
    """Return a notification about a run."""
    losses = state.metrics.get("loss", {})
    return RunNotification(
        kind,
        clean(run),
        state.state,
        masked(clean(state.reason)),
        state.job.job if state.job is not None else "",
        state.step,
        state.max_steps,
        losses[max(losses)] if losses else None,
    )
