"""Commands that end within a deadline, with output up to a limit.

`subprocess.run` reads without limit, and after its timeout waits for as long as any child of the command
holds the pipes open: a Slurm wrapper that leaves a process behind costs minutes.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_OUTPUT_BYTES = 32 * 1024 * 1024
"""Limit of what a command prints: `squeue` of 100,000 jobs prints 10 MB."""
MAX_OUTPUT_LINES = 300_000
"""Limit of its lines: cleaning and reading a line takes some 10 us and 1 kB, whatever its length."""
_AFTER_END_S = 0.5
"""Time for output that is still in the pipes when the command has ended."""
_POLL_S = 0.05
_PIECE = 1 << 16


class OutputTooLargeError(Exception):
    """Error for a command that prints too much: `limit` says what it exceeds, as words."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"more than {limit}")
        self.limit = limit


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Exit code and output of a command."""

    code: int
    stdout: bytes
    stderr: bytes


def run_bounded(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float = 30.0,
    limit: int = MAX_OUTPUT_BYTES,
) -> CommandOutput:
    """Run a command to its end. What it leaves behind is ended where it takes too long or prints too much.

    Raises:
        TimeoutError: it does not end in time.
        OutputTooLargeError: it prints more than the limit.
        OSError: it cannot be run.
        ValueError: an argument has a null byte.
    """
    deadline = time.monotonic() + timeout_s
    with subprocess.Popen(
        list(argv),
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        process_group=0,
    ) as process:
        try:
            stdout, stderr = _read(process, deadline, limit)
            code = process.wait(max(deadline - time.monotonic(), 0.01))
        except subprocess.TimeoutExpired:
            _kill(process)
            raise TimeoutError from None
        except BaseException:
            _kill(process)
            raise
    return CommandOutput(code, stdout, stderr)


def _read(process: subprocess.Popen[bytes], deadline: float, limit: int) -> tuple[bytes, bytes]:
    """Read both pipes until they are closed, or until the command has ended and they are empty."""
    pieces: dict[int, list[bytes]] = {}
    size, lines, ended_at = 0, 0, None
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pieces[pipe.fileno()] = []
            selector.register(pipe.fileno(), selectors.EVENT_READ)
        order = list(pieces)
        while selector.get_map():
            now = time.monotonic()
            if ended_at is None and process.poll() is not None:
                ended_at = now
            if ended_at is not None and now > ended_at + _AFTER_END_S:
                break
            if now > deadline:
                raise TimeoutError
            for key, _ in selector.select(min(_POLL_S, max(deadline - now, 0))):
                piece = os.read(key.fd, _PIECE)
                size += len(piece)
                lines += piece.count(b"\n")
                if size > limit:
                    raise OutputTooLargeError(f"{limit >> 20} MiB")
                if lines > MAX_OUTPUT_LINES:
                    raise OutputTooLargeError(f"{MAX_OUTPUT_LINES:,} lines")
                if piece:
                    pieces[key.fd].append(piece)
                else:
                    selector.unregister(key.fd)
    stdout, stderr = (b"".join(pieces[descriptor]) for descriptor in order)
    return stdout, stderr


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError:  # it changed its user
        process.kill()
