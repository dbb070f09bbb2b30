"""The terminal's manners: where the app refuses to open, and how it leaves.

Textual is not imported here: a refusal must not cost a second, and the guard works while the app cannot.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping

HANGUP_CODE = 128 + signal.SIGHUP
HEADLESS_HINT = (
    "Without a terminal: `distill-tui watch RUN --plain`, `distill-tui runs`, or `distill-tui demo --plain`."
)
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


def refuse_reason(environ: Mapping[str, str], stdin_isatty: bool, stdout_isatty: bool) -> str | None:
    """Return why the app cannot be shown here, with what to do instead; None where it can.

    Textual would paint a full screen into a pipe or a dumb terminal all the same. The exit code is 2.
    """
    if not stdin_isatty:
        what = "the app needs a terminal to read keys from, and standard input is none"
    elif not stdout_isatty:
        what = "the app needs a terminal to paint on, and standard output is none"
    elif environ.get("TERM", "") in ("", "dumb", "unknown"):
        term = environ.get("TERM")
        told = f"TERM={term} is one that cannot be painted on" if term else "TERM is not set"
        what = f"the app needs a terminal that it can paint on, and {told}"
    else:
        return None
    return f"{what}.\n  {HEADLESS_HINT}"


def terminal_gone(descriptor: int, timeout_ms: int | None = 0) -> bool:
    """Tell whether the terminal behind a descriptor has hung up; waits for that up to `timeout_ms`."""
    poller = select.poll()
    poller.register(descriptor, 0)  # errors and hang-ups are always reported
    return any(events & _GONE for _, events in poller.poll(timeout_ms))


def leave_when_terminal_is_gone() -> None:
    """End the process when its terminal goes away, also where SIGHUP is ignored (nohup, some shells).

    Textual's input thread takes the end of a vanished terminal for a pipe's and spins at half a core for
    ever; a polite exit hangs, since the terminal can no longer be restored. Hence `os._exit`, from a thread
    that sleeps in poll(2) until then.
    """
    descriptor = sys.__stdin__.fileno() if sys.__stdin__ is not None else 0

    def wait() -> None:
        while not terminal_gone(descriptor, None):
            pass
        os._exit(HANGUP_CODE)

    threading.Thread(target=wait, name="terminal", daemon=True).start()


def on_signals(leave: Callable[[int], None], interrupt: Callable[[], None]) -> None:
    """Call `leave(exit code)` on SIGTERM and SIGHUP, and `interrupt` on SIGINT; needs a running event loop.

    Without this a signal ends the process and leaves the alternate screen and the mouse mode behind. A signal
    that was ignored from the start (nohup) stays ignored.
    """
    loop = asyncio.get_running_loop()

    def hang_up() -> None:
        if sys.__stdin__ is not None and terminal_gone(sys.__stdin__.fileno()):
            os._exit(HANGUP_CODE)
        leave(HANGUP_CODE)

    handlers: dict[signal.Signals, Callable[[], None]] = {
        signal.SIGTERM: lambda: leave(128 + signal.SIGTERM),
        signal.SIGHUP: hang_up,
        signal.SIGINT: interrupt,
    }
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, handler)
