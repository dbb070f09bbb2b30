"""Printing events as they happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from launcher.logs.events import Event, JobState
from launcher.monitor.notify import Notifier
from launcher.monitor.state import RunState
from launcher.monitor.summary import event_json
from launcher.monitor.watch import Watch
from recipes.errors import Exit
from tui.headless.output import print_json, say, show
from tui.headless.plain import EventPrinter

EXIT_REASON_TIMEOUT_S = 180.0
"""How long to wait for the scheduler's exit reason after a run failed.

Slurm reports it after the epilogs, that of a lost node only after the node's timeout.
"""


@dataclass(slots=True)
class EventStream:
    """Prints the events of a watch, as lines of text or of JSON."""

    as_json: bool
    poll_s: float = 1.0
    notifier: Notifier | None = None
    _printer: EventPrinter = field(default_factory=EventPrinter)
    _problem: str = ""
    _ended: float = 0.0

    def follow(self, watch: Watch, until: Callable[[RunState], bool]) -> None:
        """Poll and print until `until(state)` holds and all log data has been read."""
        while True:
            self.emit(watch.poll(), watch.state)
            if watch.problem and watch.problem != self._problem:
                say(watch.problem)
            self._problem = watch.problem
            if self.notifier is not None and not watch.behind:
                for problem in self.notifier.update(watch.state):
                    say(problem)
            if until(watch.state) and not watch.behind and self._is_settled(watch.state):
                return
            if not watch.behind:
                time.sleep(self.poll_s)

    def _is_settled(self, state: RunState) -> bool:
        """Tell whether the scheduler has given its exit reason, or the wait for it has timed out."""
        if not state.state.ended or state.settled:
            return True
        self._ended = self._ended or time.monotonic()
        return time.monotonic() - self._ended > EXIT_REASON_TIMEOUT_S

    def emit(self, events: Iterable[Event], state: RunState) -> None:
        """Print events."""
        for event in events:
            if self.as_json:
                print_json(event_json(event), line=True)
                continue
            for line in self._printer.lines(event, state):
                show(line, flush=True)

    def close(self, name: str, state: RunState) -> Exit:
        """Print how the run ended; return the exit code that says so."""
        if not self.as_json:
            for line in self._printer.end_lines(name, state):
                show(line, flush=True)
        return Exit.OK if state.state is JobState.COMPLETED else Exit.FAILED
