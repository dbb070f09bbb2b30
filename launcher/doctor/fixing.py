"""Remedies that can be run one after the other: each is shown, confirmed, run, and left out when it is done.

Nothing remembers what was done: the checks are made again, so that an interrupted fixing goes on there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from launcher.doctor.verdict import Examination, HealthReport

_STOPS_WITHIN_S = 10.0
_CHUNK_BYTES = 1 << 16


@contextmanager
def _interrupts_raise() -> Iterator[None]:
    """Have ctrl-c raise KeyboardInterrupt, whatever an event loop has set; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True, slots=True)
class FixStep:
    """One command that makes checks pass."""

    command: str
    changes: str
    checks: tuple[str, ...]
    """Ids of the checks that it helps."""
    automatic: bool = True
    """False: it is only shown, for the user to adapt and to run."""


def steps(report: HealthReport) -> tuple[FixStep, ...]:
    """Return the commands of a report's remedies, each once, in the order of the checks."""
    by_command: dict[str, FixStep] = {}
    for item in report.examinations:
        remedy = item.verdict.remedy
        if remedy is None or item.verdict.outcome == "pass":
            continue
        for command in remedy.commands:
            earlier = by_command.get(command)
            checks = (*earlier.checks, item.check.id) if earlier is not None else (item.check.id,)
            automatic = remedy.automatic or (earlier is not None and earlier.automatic)
            by_command[command] = FixStep(command, remedy.changes, checks, automatic)
    return tuple(by_command.values())


def script(report: HealthReport) -> str:
    """Return a shell script of all remedies: those that cannot be run as they are stand behind `#`."""
    lines = [
        "#!/bin/bash",
        "# Made by `distill-tui doctor --print`. Run it on a login node with internet, in tmux or screen;",
        "# it can be interrupted and run again.",
        "set -eu",
    ]
    for item in report.examinations:
        if (remedy := item.verdict.remedy) is None or item.verdict.outcome == "pass":
            continue
        lines += ["", f"# {item.check.id} {item.check.title}: {_comment(item)}"]
        if remedy.changes:
            lines.append(f"# changes: {remedy.changes}")
        lines += [_line(command) if remedy.automatic else f"# {command}" for command in remedy.commands]
    return "\n".join(_once(lines)) + "\n"


def _line(command: str) -> str:
    """Return a command as a line of the script; one that changes its directory changes no other's."""
    return f"({command})" if command.startswith("cd ") else command


def _comment(item: Examination) -> str:
    return " ".join(item.verdict.evidence.split())


def _once(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines; of equal commands, only the first."""
    commands: set[str] = set()
    for line in lines:
        if line and not line.startswith("#"):
            if line in commands:
                continue
            commands.add(line)
        yield line


@runtime_checkable
class TerminalOpener(Protocol):
    """A transport that runs commands on a terminal of its machine."""

    def terminal(self, command: str, columns: int, rows: int) -> TerminalSession:
        """Return a terminal on which a command of bash runs; it ends with the terminal.

        Raises:
            TransportError: it cannot be started.
        """
        ...


class TerminalSession(Protocol):
    """A terminal of another machine, with one command on it."""

    def recv(self, size: int, /) -> bytes:
        """Return what has been printed, at most `size` bytes; nothing at the end."""
        ...

    def recv_exit_status(self) -> int:
        """Return the exit code; -1 where the connection broke before."""
        ...

    def close(self) -> object:
        """Close it, which ends the command."""
        ...


def terminal_opener(machine: object) -> TerminalOpener | None:
    """Return a transport as one that runs commands on a terminal there; None for this machine's."""
    return machine if isinstance(machine, TerminalOpener) else None


def run_step_there(step: FixStep, opener: TerminalOpener, output: int) -> int:
    """Run a step's command on another machine and return its exit code; its output goes on as it comes.

    An interrupt ends the command, and so does the end of the connection; the exit code is -1 then.

    Args:
        step: The step.
        opener: Its machine.
        output: Descriptor for its output.

    Raises:
        KeyboardInterrupt: the user interrupted.
        TransportError: the machine cannot be reached.
    """
    columns, rows = shutil.get_terminal_size()
    session = opener.terminal(f"set -eu; {step.command}", columns, rows)
    try:
        with _interrupts_raise():
            while data := session.recv(_CHUNK_BYTES):
                os.write(output, data)
            return session.recv_exit_status()
    finally:
        session.close()


def run_step(step: FixStep, environment: Mapping[str, str], output: int | None = None) -> int:
    """Run a step's command to its end and return its exit code; its output goes on as it comes.

    An interrupt ends the command with everything that it started.

    Args:
        step: The step.
        environment: The user's.
        output: Descriptor for its output; None is this program's own.

    Raises:
        KeyboardInterrupt: the user interrupted; the command has ended.
    """
    process = subprocess.Popen(
        ["/bin/bash", "-c", f"set -eu; {step.command}"],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        with _interrupts_raise():
            return process.wait()
    except BaseException:
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            try:
                process.wait(_STOPS_WITHIN_S)
                break
            except subprocess.TimeoutExpired:
                continue
        raise
