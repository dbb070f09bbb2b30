"""Telling the user that a run began, failed or ended: by the bell, the terminal, or a command of theirs.

A terminal's notification is an escape sequence: OSC 9 (iTerm2, kitty, WezTerm, Windows Terminal), or OSC 777
(urxvt, foot, VTE); others ignore both. tmux and screen hand it on only when it is wrapped, tmux only with
`allow-passthrough on`. All text is cleaned and cut: a log's words must not become a sequence of their own.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from launcher.errors import InputError
from launcher.logs.events import JobState
from launcher.monitor.state import RunState
from launcher.paths import config_root
from launcher.text import clean

SETTINGS = "settings.toml"
TEXT_LIMIT = 200
COMMAND_TIMEOUT_S = 60.0
BELL = "\a"


class Kind(StrEnum):
    """What happened."""

    START = "start"
    """It has nodes and begins."""
    FAILURE = "failure"
    END = "end"
    """It completed, or was cancelled."""


@dataclass(frozen=True, slots=True)
class RunNotification:
    """What is told of a run; texts are cleaned."""

    kind: Kind
    run: str
    state: JobState
    reason: str = ""
    job: str = ""
    step: int = 0
    max_steps: int | None = None
    loss: float | None = None

    def in_words(self) -> str:
        """Say it in one line."""
        what = "has begun" if self.kind is Kind.START else self.state.value
        steps = f", step {self.step}/{self.max_steps or '?'}" if self.step else ""
        reason = f": {self.reason}" if self.reason and self.kind is not Kind.START else ""
        return f"{self.run} {what}{steps}{reason}"[:TEXT_LIMIT]

    def facts(self) -> dict[str, str]:
        """Return the facts as environment variables for a user's command."""
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
    """A way to tell."""

    def tell(self, note: RunNotification) -> str:
        """Tell; returns why it could not, empty when it could."""
        ...


Write = Callable[[str], str]
"""Writes to the terminal; returns why it could not, empty when it could."""


@dataclass(frozen=True, slots=True)
class BellChannel:
    """The terminal's bell."""

    write: Write

    def tell(self, note: RunNotification) -> str:
        """Ring."""
        del note
        return self.write(BELL)


@dataclass(frozen=True, slots=True)
class TerminalChannel:
    """A notification of the terminal emulator."""

    write: Write
    environment: Mapping[str, str]

    def tell(self, note: RunNotification) -> str:
        """Send it."""
        return self.write(sequence(note.in_words(), self.environment))


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """A command of the user's, run without a shell; the facts are in its environment."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]

    def tell(self, note: RunNotification) -> str:
        """Run it to its end."""
        try:
            done = subprocess.run(
                self.argv, env={**self.environment, **note.facts()}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, errors="replace", check=False, timeout=COMMAND_TIMEOUT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"'{self.argv[0]}' did not end within {COMMAND_TIMEOUT_S:.0f} s"
        except OSError as error:
            return f"'{self.argv[0]}' cannot be run: {error.strerror}"
        if done.returncode:
            said = clean((done.stderr or done.stdout).strip().rpartition("\n")[2])[:TEXT_LIMIT]
            return f"'{self.argv[0]}' ended with {done.returncode}: {said}".rstrip(": ")
        return ""


def sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the escape sequence that makes the terminal notify, as it must be written here."""
    # A semicolon separates parts of the sequence, and `4;` after OSC 9 draws a progress bar.
    bare = clean(text).replace(";", ",")[:TEXT_LIMIT]
    terminal = environment.get("TERM", "")
    if environment.get("VTE_VERSION") or terminal.startswith(("rxvt", "foot")):
        escaped = f"\x1b]777;notify;distill-tui;{bare}{BELL}"
    else:
        escaped = f"\x1b]9;distill-tui: {bare}{BELL}"
    if environment.get("TMUX"):
        return f"\x1bPtmux;{escaped.replace(chr(27), chr(27) * 2)}\x1b\\"
    if terminal.startswith("screen"):
        return f"\x1bP{escaped}\x1b\\"
    return escaped


def to_terminal(text: str) -> str:
    """Write to the terminal that this process belongs to, whatever its output is redirected to."""
    try:
        with Path("/dev/tty").open("w") as terminal:
            terminal.write(text)
    except OSError as error:
        return f"there is no terminal to notify: {error.strerror}"
    return ""


def channels(
    wanted: Sequence[str], environment: Mapping[str, str] = os.environ, write: Write = to_terminal
) -> tuple[Channel, ...]:
    """Return the channels for `bell`, `terminal`, or a command line.

    Raises:
        InputError: a command line cannot be understood, or there is no such command.
    """
    return tuple(_channel(item, environment, write) for item in wanted)


def _channel(item: str, environment: Mapping[str, str], write: Write) -> Channel:
    if item == "bell":
        return BellChannel(write)
    if item == "terminal":
        return TerminalChannel(write, environment)
    try:
        argv = shlex.split(item)
    except ValueError as error:
        raise InputError(f"this command cannot be understood: {item} ({error})") from error
    if not argv or shutil.which(argv[0], path=environment.get("PATH")) is None:
        raise InputError(
            f"there is no command '{argv[0] if argv else item}' to notify with",
            fix="Give bell, terminal, or a command; it gets the facts as DISTILL_TUI_… in its environment.",
        )
    return CommandChannel(tuple(argv), environment)


def wanted_by_settings(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return what the user's settings file asks for: `notify = "terminal"`, or a list.

    Raises:
        InputError: the file cannot be read.
    """
    path = config_root(environment) / SETTINGS
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8")).get("notify", ())
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"the settings cannot be read: {error}", where=path) from error
    items = [told] if isinstance(told, str) else told
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
        raise InputError("notify must be bell, terminal, a command, or a list of these", where=path)
    return tuple(items)


@dataclass(slots=True)
class Notifier:
    """Tells of a run's start and end as they happen; what had happened before it looked is not told."""

    run: str
    channels: tuple[Channel, ...]
    problems: set[str] = field(default_factory=set)
    _before: JobState | None = None

    def news(self, state: RunState) -> RunNotification | None:
        """Return what has happened since the last look and is worth telling."""
        if state.state is JobState.UNKNOWN:
            return None
        kind, self._before = change(self._before, state.state), state.state
        return note_of(self.run, kind, state) if kind is not None else None

    def send(self, note: RunNotification) -> tuple[str, ...]:
        """Tell, which takes as long as the user's command does; returns problems that are new."""
        problems = {problem for channel in self.channels if (problem := channel.tell(note))}
        fresh = problems - self.problems
        self.problems |= fresh
        return tuple(sorted(fresh))

    def look(self, state: RunState) -> tuple[str, ...]:
        """Look at the run and tell what has happened; returns problems that were not returned before."""
        note = self.news(state)
        return self.send(note) if note is not None else ()


def change(before: JobState | None, after: JobState) -> Kind | None:
    """Return what a change of state is worth telling; None where nothing is."""
    if before is None or before is after or before.ended:
        return None
    if after is JobState.FAILED:
        return Kind.FAILURE
    if after.ended:
        return Kind.END
    began = after in (JobState.STARTING, JobState.RUNNING) and before is JobState.QUEUED
    return Kind.START if began else None


def note_of(run: str, kind: Kind, state: RunState) -> RunNotification:
    """Return what is told of a run."""
    losses = state.metrics.get("loss", {})
    return RunNotification(
        kind,
        clean(run),
        state.state,
        clean(state.reason),
        state.job.job if state.job is not None else "",
        state.step,
        state.max_steps,
        losses[max(losses)] if losses else None,
    )
