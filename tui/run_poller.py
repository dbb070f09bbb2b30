"""Polling of one run for the monitor, on a thread."""

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
from tui.opening import ActionFailed, OpenedRun, Opener, OpeningFailed, RunSummary
from tui.run_view import RunView, ViewBuilder

if TYPE_CHECKING:
    from launcher.monitor.notify import Channel, Notifier, RunNotification
    from launcher.monitor.state import RunState

POLL_S = 1.0
BEHIND_S = 0.25
"""Interval of views while catching up: painting each part took longer than reading it."""
SETTLED_S = 10.0
"""Polling continues for so long after a run's end: the launcher writes its last lines after the driver."""


class RunOpened(Message):
    """The run was opened or started; its state follows."""

    def __init__(self, opened: OpenedRun) -> None:
        super().__init__()
        self.opened = opened


class RunViewChanged(Message):
    """The run's state changed."""

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self.view = view


class MonitorPoller(Background):
    """Opens one run and polls it until some time after its end."""

    def __init__(
        self,
        opener: Opener,
        target: MessagePump,
        in_front: Callable[[], bool] = lambda: True,
        channels: Callable[[], tuple[Channel, ...]] = tuple,
    ) -> None:
        super().__init__(self._poll, "monitor")
        self._in_front = in_front
        self._channels = channels
        self._notifier: Notifier | None = None
        self._opener = opener
        self._target = target
        self._opened: OpenedRun | None = None
        self._views = ViewBuilder(RunSummary(""))
        self._posted: RunView | None = None
        self._pending: list[Event] = []
        self._posted_at = 0.0
        self._changed = time.monotonic()

    def _poll(self) -> float | None:
        if self._opened is None and not self._open():
            return None
        assert self._opened is not None
        watch = self._opened.watch
        watch.in_front = self._in_front()
        self._pending += watch.poll()
        behind = watch.behind and not watch.problem
        if behind and time.monotonic() - self._posted_at < BEHIND_S:
            return 0.0
        self._posted_at = time.monotonic()
        self._post_view(self._pending)
        self._pending = []
        if behind:
            return 0.0
        self._notify(watch.state)
        if not watch.state.settled or time.monotonic() - self._changed < SETTLED_S:
            return POLL_S
        self._post_view(watch.catch_up(final=True))
        self._keep_summary()
        return None

    def _open(self) -> bool:
        try:
            self._opened = self._opener()
        except ExplainedError as error:
            post(self._target, OpeningFailed(error))
            return False
        self._views = ViewBuilder(self._opened.summary)
        post(self._target, RunOpened(self._opened))
        self._opened.watch.find_logs()
        self._post_view([])
        return True

    def _post_view(self, events: Sequence[Event]) -> None:
        assert self._opened is not None
        watch = self._opened.watch
        view = self._views.build(
            watch.state, events, watch.known_logs, problem=watch.problem, reading=watch.behind
        )
        if view != self._posted:
            self._posted = view
            self._changed = time.monotonic()
            post(self._target, RunViewChanged(view))

    def _notify(self, state: RunState) -> None:
        """Send notifications of start, failure and end; a channel that fails is reported once."""
        assert self._opened is not None
        if self._notifier is None:
            from launcher.monitor.notify import Notifier

            try:
                channels = self._channels()
            except ExplainedError as error:
                post(self._target, ActionFailed(error))
                channels = ()
            run = self._opened.run
            self._notifier = Notifier(
                run.spec.id if run is not None else self._opened.summary.title, channels
            )
        note = self._notifier.news(state)
        if note is not None:
            in_background(
                lambda: self._send(note), "notify", lambda error: post(self._target, ActionFailed(error))
            )

    def _send(self, note: RunNotification) -> None:
        assert self._notifier is not None
        for problem in self._notifier.send(note):
            raise TransportError(f"notification failed: {problem}")

    def _keep_summary(self) -> None:
        from launcher.monitor.watch_run import summarise
        from launcher.saved_summary import load_summary

        assert self._opened is not None
        run, watch = self._opened.run, self._opened.watch
        try:
            if run is not None and load_summary(watch.transport, run) is None:
                summarise(watch.transport, run, watch)
        except TransportError:
            return  # the logs hold the same facts and are read again next time
