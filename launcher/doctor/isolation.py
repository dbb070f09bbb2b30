"""A process of its own for an examination: this program can end although a call in it never returns.

A process with a thread in a call that a dead file server does not answer cannot exit, not even by SIGKILL.
So the calls are made in a child, which is left behind then.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
_LENGTH = 8


def isolated(action: Callable[[], Result], limit_s: float) -> Result:
    """Return what an action returns in a child process; its result and its errors are pickled.

    Where this process has other threads it cannot be forked safely, and the action runs in it.

    Raises:
        TimeoutError: there is no result in time; the child is killed.
        Exception: whatever the action raises.
    """
    if threading.active_count() > 1:
        return action()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _leave_terminal()
        _run(action, writer)
    os.close(writer)
    try:
        data = _message(reader, time.monotonic() + limit_s)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        _reap(child)
    succeeded, value = pickle.loads(data)  # noqa: S301 - written by this program's own child
    if not succeeded:
        raise value
    result: Result = value
    return result


def _leave_terminal() -> None:
    """Let go of the standard streams: a child that is left behind would keep open what its caller reads."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)


def _run(action: Callable[[], object], writer: int) -> None:
    """Write the pickled result, after its length; end at once, without what else the parent has to do."""
    try:
        outcome: tuple[bool, object] = True, action()
    except BaseException as error:  # noqa: BLE001 - raised again in the parent
        outcome = False, error
    data = pickle.dumps(outcome)
    with os.fdopen(writer, "wb", closefd=False) as file:
        file.write(len(data).to_bytes(_LENGTH, "big") + data)
    os._exit(0)


def _message(reader: int, end: float) -> bytes:
    """Read one message; the end of the stream is not waited for, which a child that hangs never closes."""
    data = b""
    while len(data) < _LENGTH or len(data) < _LENGTH + int.from_bytes(data[:_LENGTH], "big"):
        ready, _, _ = select.select([reader], [], [], max(end - time.monotonic(), 0))
        piece = os.read(reader, 1 << 16) if ready else b""
        if not piece:
            raise TimeoutError("the examination gave no result")
        data += piece
    return data[_LENGTH:]


def _reap(child: int) -> None:
    """Wait for a killed child for a moment; one that hangs is left to init."""
    for _ in range(20):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
