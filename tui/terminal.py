"""The terminal and its signals: where the app refuses to open, how it leaves, and interrupts that are noted.

Neither textual nor asyncio is imported at module level: a refusal must not cost a second, and commands
without a screen use this too.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from types import FrameType

from recipes.errors import Exit, ExplainedError

HANGUP_CODE = 128 + signal.SIGHUP
HEADLESS_HINT = (
    "Without a terminal: `distill-tui watch RUN --plain`, `distill-tui runs`, or `distill-tui demo --plain`."
)
_ENDING = (
    signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
    signal.SIGXCPU, signal.SIGIO,
)  # fmt: skip
"""Signals that nobody needs here and that end a process; Slurm sends some of them before a time limit."""
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


def refuse_reason(environ: Mapping[str, str], stdin_isatty: bool, stdout_isatty: bool) -> str | None:
    """Return why the app cannot be shown here, with what to do instead; None where it can.

    Textual would paint a full screen into a pipe or a dumb terminal all the same. The exit code is 2.
    """
    if not stdin_isatty:
        what = "the app needs a terminal, and standard input is not one"
    elif not stdout_isatty:
        what = "the app needs a terminal, and standard output is not one"
    elif environ.get("TERM", "") in ("", "dumb", "unknown"):
        term = environ.get("TERM")
        problem = f"TERM={term} has no cursor control" if term else "TERM is not set"
        what = f"the app needs a full-screen terminal, and {problem}"
    else:
        return None
    return f"{what}.\n  {HEADLESS_HINT}"


class NoTerminalError(ExplainedError):
    """The app cannot be shown here."""

    exit_code = Exit.USAGE


def require_terminal() -> None:
    """Refuse to open the app where it could not be seen or left.

    Raises:
        NoTerminalError: there is no terminal that can show it.
    """
    _forget_settings_of_textual(os.environ)
    reason = refuse_reason(os.environ, sys.stdin.isatty(), sys.stdout.isatty())
    if reason is not None:
        what, _, fix = reason.partition("\n  ")
        raise NoTerminalError(what, fix=fix)


def _forget_settings_of_textual(environ: MutableMapping[str, str]) -> None:
    """Remove variables that Textual and Rich read when they are imported.

    A number that is none ends them there; with COLUMNS=10000000 the first screen takes minutes. The terminal
    knows its size.
    """
    for name in list(environ):
        if name in ("COLUMNS", "LINES") or (name.startswith("TEXTUAL_") and name != "TEXTUAL_THEME"):
            del environ[name]


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
    """Call `leave(exit code)` on signals that end a process, `interrupt` on SIGINT; needs a running loop.

    Without this a signal ends the process and leaves the alternate screen and the mouse mode behind. A signal
    that was ignored from the start (nohup) stays ignored.
    """
    import asyncio

    loop = asyncio.get_running_loop()

    def hang_up() -> None:
        if sys.__stdin__ is not None and terminal_gone(sys.__stdin__.fileno()):
            os._exit(HANGUP_CODE)
        leave(HANGUP_CODE)

    handlers: dict[signal.Signals, Callable[[], None]] = {
        **{number: partial(leave, 128 + number) for number in _ENDING},
        signal.SIGTERM: lambda: leave(128 + signal.SIGTERM),
        signal.SIGHUP: hang_up,
        signal.SIGINT: interrupt,
    }
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, handler)


class Interrupts:
    """Notes ctrl-c and SIGTERM, so that none is lost between starting something and recording it."""

    def __init__(self) -> None:
        self.got = 0
        """Number of the first signal that came; 0 for none."""

    def __enter__(self) -> Interrupts:
        """Take over the signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the signals end the process again."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.got = self.got or number
