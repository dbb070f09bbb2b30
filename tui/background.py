"""Background work on daemon threads.

Not Textual's thread workers: those cannot be killed, and a file system that hangs would keep the process
alive after the user has left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from textual.events import Callback
from textual.message import Message
from textual.message_pump import MessagePump

from recipes.errors import ExplainedError


def post(target: MessagePump, message: Message) -> None:
    """Send a message from a thread; one for a screen that is gone is dropped."""
    try:
        target.post_message(message)
    except RuntimeError:
        # The event loop is closed.
        return


def call_on(target: MessagePump, action: Callable[[], None]) -> None:
    """Call an action on the event loop, from a thread; dropped where the target is gone."""
    post(target, Callback(callback=action))


class Background:
    """A thread that repeats a step, which returns the pause after it in seconds (None: until `wake`)."""

    def __init__(self, step: Callable[[], float | None], name: str) -> None:
        self._step = step
        self._condition = threading.Condition()
        self._stopped = False
        self._woken = False
        self._busy_since: float | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next step at once."""
        with self._condition:
            self._woken = True
            self._condition.notify()

    def stop(self) -> None:
        """Begin no further step; does not wait for one under way."""
        with self._condition:
            self._stopped = True
            self._condition.notify()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    @property
    def busy_for(self) -> float:
        """Seconds since the step under way began; 0 between steps."""
        since = self._busy_since
        return time.monotonic() - since if since is not None else 0.0

    def alive(self) -> None:
        """Report progress from within a long step: `busy_for` restarts."""
        self._busy_since = time.monotonic()

    def _work(self) -> None:
        while True:
            self.alive()
            pause = self._step()
            self._busy_since = None
            with self._condition:
                if not self._woken and not self._stopped:
                    self._condition.wait(pause)
                self._woken = False
                if self._stopped:
                    return


def in_background(
    action: Callable[[], None], name: str, failed: Callable[[ExplainedError], None]
) -> threading.Thread:
    """Run an action on a thread; `failed` is called there with an error that the user can act on."""

    def work() -> None:
        try:
            action()
        except ExplainedError as error:
            failed(error)

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
