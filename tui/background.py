"""Work beside the screen, on daemon threads.

Not Textual's thread workers: those cannot be killed, and a file system that hangs would keep the process
alive after the user has left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from textual.message import Message
from textual.message_pump import MessagePump

from recipes.errors import ExplainedError


def post(target: MessagePump, message: Message) -> None:
    """Send a message from a thread; one for a screen that is gone is dropped."""
    try:
        target.post_message(message)
    except RuntimeError:
        # The event loop was closed between our last look and this.
        return


class Background:
    """Calls a step again and again, at the pace that the step itself asks for."""

    def __init__(self, step: Callable[[], float | None], name: str) -> None:
        self._step = step
        self._wanted = threading.Condition()
        self._stopped = False
        self._woken = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Let the next step come at once."""
        with self._wanted:
            self._woken = True
            self._wanted.notify()

    def stop(self) -> None:
        """Let no further step begin; does not wait for one that is under way."""
        with self._wanted:
            self._stopped = True
            self._wanted.notify()

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return self._stopped

    @property
    def busy_for(self) -> float:
        """Seconds since the step under way began; 0 between steps."""
        since = self._busy_since
        return time.monotonic() - since if since is not None else 0.0

    def alive(self) -> None:
        """Tell, from within a long step, that it gets on."""
        self._busy_since = time.monotonic()

    def _work(self) -> None:
        while True:
            self.alive()
            pause = self._step()
            self._busy_since = None
            with self._wanted:
                if not self._woken and not self._stopped:
                    self._wanted.wait(pause)
                self._woken = False
                if self._stopped:
                    return


def in_background(
    action: Callable[[], None], name: str, failed: Callable[[ExplainedError], None]
) -> threading.Thread:
    """Do one thing on a thread; `failed` is called there with an error that a user can act on."""

    def work() -> None:
        try:
            action()
        except ExplainedError as error:
            failed(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
