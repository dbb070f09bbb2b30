"""Following one run for the monitor: finding or starting it, polling it, sending what changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import TransportError
from launcher.logs.events import Event
from launcher.logs.summary import state_json
from launcher.text import clean
from launcher.transports.base import Transport
from launcher.transports.local import LocalTransport
from recipes.errors import ExplainedError
from tui.background import Background, post
from tui.view import About, RunView, Viewer

if TYPE_CHECKING:  # pydantic comes with these: they are imported on the threads, after the first paint
    from launcher.logs.watch import Watch
    from launcher.runs import Run

FILE_DEADLINE_S = 5.0
"""A file system that does not answer for so long is told to the user."""
POLL_S = 1.0
SETTLED_S = 10.0
"""A run that ended is followed for as long again: the launcher writes its last lines after the driver's."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A run, or logs alone, ready to be watched."""

    about: About
    watch: Watch
    transport: Transport
    """For looking at the logs' text; not the one that polls, so that neither waits for the other."""
    run: Run | None = None


Opener = Callable[[], Opened]


def local() -> LocalTransport:
    """Return a new transport to this machine."""
    return LocalTransport(FILE_DEADLINE_S)


def opened(run: Run) -> Opened:
    """Return a run ready to be watched."""
    from launcher.watching import watch_run

    return Opened(about(run), watch_run(local(), run), local(), run)


def found(root: Path, reference: str) -> Opened:
    """Find a run by its id, a part of it, or its directory.

    Raises:
        InputError: there is none, or more than one.
    """
    from launcher.runs import RunStore

    return opened(RunStore(local(), str(root)).find(reference))


def about(run: Run) -> About:
    """Return what a run's directory tells before its logs are read."""
    spec = run.spec
    started = run.job.submitted if run.job is not None else spec.created
    gpus = f", {spec.gpus_per_node} GPUs each" if spec.gpus_per_node else ", no GPU"
    where = f"{clean(spec.host)} · {spec.nodes} node{'' if spec.nodes == 1 else 's'}{gpus}"
    kind = "rehearsal, stand-in models · " if spec.kind == "rehearsal" else ""
    return About(f"{clean(spec.name)}  {clean(spec.id)}", kind + where, run.directory, started.timestamp())


class RunOpened(Message):
    """The run is found (or started); its state follows."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened


class Failed(Message):
    """What was asked for cannot be done."""

    def __init__(self, error: ExplainedError) -> None:
        super().__init__()
        self.error = error


class Viewed(Message):
    """The run's state changed."""

    def __init__(self, view: RunView) -> None:
        super().__init__()
        self.view = view


class MonitorFeed(Background):
    """Opens one run and follows it until some time after its end."""

    def __init__(self, opener: Opener, target: MessagePump) -> None:
        super().__init__(self._look, "monitor")
        self._opener = opener
        self._target = target
        self._opened: Opened | None = None
        self._viewer = Viewer(About(""))
        self._said: RunView | None = None
        self._changed = time.monotonic()

    def _look(self) -> float | None:
        if self._opened is None and not self._open():
            return None
        assert self._opened is not None
        watch = self._opened.watch
        events = watch.poll()
        self._say(events)
        if watch.behind and not watch.problem:
            return 0.0
        if not watch.state.state.ended or time.monotonic() - self._changed < SETTLED_S:
            return POLL_S
        self._say(watch.catch_up(final=True))
        self._keep_summary()
        return None

    def _open(self) -> bool:
        try:
            self._opened = self._opener()
        except ExplainedError as error:
            post(self._target, Failed(error))
            return False
        self._viewer = Viewer(self._opened.about)
        post(self._target, RunOpened(self._opened))
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
            post(self._target, Viewed(view))

    def _keep_summary(self) -> None:
        from launcher.runs import load_summary, save_summary

        assert self._opened is not None
        run, watch = self._opened.run, self._opened.watch
        try:
            if run is not None and not watch.problem and load_summary(watch.transport, run) is None:
                save_summary(watch.transport, run, state_json(run.spec.id, watch.state))
        except TransportError:
            return  # the logs tell the same; they are read again next time
