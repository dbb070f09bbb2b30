"""The demo's run: started with the app, and stopped with it on request."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.opening import OpenedRun, open_run

if TYPE_CHECKING:
    from launcher.runs import Run


@dataclass(frozen=True, slots=True)
class DemoStart:
    """Start of the demo's run; takes less than a second and is called on a thread."""

    start: Callable[[], Run]
    """Raises an error of the ExplainedError family where the run cannot start."""


class DemoRun:
    """The run that the demo started: set by a thread, for which `stop` waits."""

    def __init__(self, start: DemoStart) -> None:
        self._start = start
        self._settled = threading.Event()
        self._run: Run | None = None
        self.ended = False
        """Whether the monitor has shown its end."""

    def open(self) -> OpenedRun:
        """Start the run."""
        try:
            self._run = self._start.start()
            return open_run(self._run)
        finally:
            self._settled.set()

    def stop(self) -> None:
        """Stop the run, if there is one; waits until it has ended."""
        self._settled.wait()
        if self._run is not None:
            from tui.screens.cancelling import cancel

            cancel(self._run.directory)
