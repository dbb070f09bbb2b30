"""Following one run for the monitor: polling it, and sending what changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import TransportError
from launcher.logs.events import Event
from recipes.errors import ExplainedError
from tui.background import Background, in_background, post
from tui.opening import OpenedRun, Opener, OpenFailed, RunSummary
from tui.run_view import RunView, Viewer

if TYPE_CHECKING:
    from launcher.monitor.notify import Channel, Notifier, RunNotification
    from launcher.monitor.state import RunState

POLL_S = 1.0
BEHIND_S = 0.25
"""How often the screen is told of a backlog: painting each part of it took longer than reading it."""
SETTLED_S = 10.0
"""A run that ended is followed for as long again: the launcher writes its last lines after the driver's."""


class RunOpened(Message):
    """The run is found (or started); its state follows."""

    def __init__(self, opened: OpenedRun) -> None:
        super().__init__()
        self.opened = opened


class RunViewChanged(Message):
    """The run's state changed."""

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self.view = view


class MonitorPoller(Background):
    """Opens one run and follows it until some time after its end."""

    def __init__(
        self,
        opener: Opener,
        target: MessagePump,
        in_front: Callable[[], bool] = lambda: True,
        channels: Callable[[], tuple[Channel, ...]] = tuple,
    ) -> None:
        super().__init__(self._look, "monitor")
        self._in_front = in_front
        self._channels = channels
        self._notifier: Notifier | None = None
        self._opener = opener
        self._target = target
        self._opened: OpenedRun | None = None
        self._viewer = Viewer(RunSummary(""))
        self._said: RunView | None = None
        self._unsaid: list[Event] = []
        self._painted = 0.0
        self._changed = time.monotonic()

    def _look(self) -> float | None:
        if self._opened is None and not self._open():
            return None
        assert self._opened is not None
        watch = self._opened.watch
        watch.in_front = self._in_front()
        self._unsaid += watch.poll()
        behind = watch.behind and not watch.problem
        if behind and time.monotonic() - self._painted < BEHIND_S:
            return 0.0
        self._painted = time.monotonic()
        self._say(self._unsaid)
        self._unsaid = []
        if behind:
            return 0.0
        self._notify(watch.state)
        if not watch.state.settled or time.monotonic() - self._changed < SETTLED_S:
            return POLL_S
        self._say(watch.catch_up(final=True))
        self._keep_summary()
        return None

    def _open(self) -> bool:
        try:
            self._opened = self._opener()
        except ExplainedError as error:
            post(self._target, OpenFailed(error))
            return False
        self._viewer = Viewer(self._opened.about)
        post(self._target, RunOpened(self._opened))
        self._opened.watch.find_logs()
        self._say([])
        return True

    def _say(self, events: Sequence[Event]) -> None:
        assert self._opened is not None
        watch = self._opened.watch
        view = self._viewer.view(
            watch.state, events, watch.known_logs, problem=watch.problem, reading=watch.behind
        )
        if view != self._said:
            self._said = view
            self._changed = time.monotonic()
            post(self._target, RunViewChanged(view))

    def _notify(self, state: RunState) -> None:
        """Tell of start, failure and end, as the user asked for; a way that fails is said once."""
        assert self._opened is not None
        if self._notifier is None:
            from launcher.monitor.notify import Notifier

            try:
                wanted = self._channels()
            except ExplainedError as error:
                post(self._target, OpenFailed(error))
                wanted = ()
            run = self._opened.run
            self._notifier = Notifier(run.spec.id if run is not None else self._opened.about.title, wanted)
        note = self._notifier.news(state)
        if note is not None:
            in_background(
                lambda: self._send(note), "notify", lambda error: post(self._target, OpenFailed(error))
            )

    def _send(self, note: RunNotification) -> None:
        assert self._notifier is not None
        for problem in self._notifier.send(note):
            raise TransportError(f"you could not be notified: {problem}")

    def _keep_summary(self) -> None:
        from launcher.monitor.watch_run import summarise
        from launcher.runs import load_summary

        assert self._opened is not None
        run, watch = self._opened.run, self._opened.watch
        try:
            if run is not None and load_summary(watch.transport, run) is None:
                summarise(watch.transport, run, watch)
        except TransportError:
            return  # the logs tell the same; they are read again next time
