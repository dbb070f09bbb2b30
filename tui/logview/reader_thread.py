"""The thread that reads the logs of all panes, each in its turn.

One thread, so that four panes take no more of the interpreter than one, and so that panes on the same file
share its line index without locks.
"""

from __future__ import annotations

import math
import posixpath
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Protocol
from weakref import WeakValueDictionary

from launcher.errors import TransportError
from launcher.logs.merged_log import MergedLog
from launcher.transports.base import Transport
from tui.background import Background
from tui.logview.line_index import LogText
from tui.logview.source import FileSource, LogSource

POLL_S = 0.33
QUIET_POLL_S = 0.7
"""Interval while a log has not grown for some polls: four panes mostly have three such."""
FLOOD_POLL_S = 1.1
"""Interval while a log grows at each poll: most of its pane is painted each time."""
SLOW_POLL_S = 1.5
"""Interval where the terminal is behind with what was painted."""
SETTLED_POLL_S = 2.0
"""Interval for the logs of a run that has ended."""
_TOGETHER_S = 0.15
"""Readers that are due so soon are run now: their panes are then painted together."""


class PaneReader(Protocol):
    """What the thread runs for each pane."""

    def step(self) -> float | None:
        """Do a part of the work; return the pause after it in seconds (None: until it is woken)."""
        ...


class ReaderThread(Background):
    """Runs the readers of panes; holds the line indexes of the files that they show."""

    def __init__(
        self,
        transport: Transport,
        slow_terminal: Callable[[], bool] = lambda: False,
        poll_s: float = POLL_S,
    ) -> None:
        super().__init__(self._run_due, "log")
        self._poll_s = poll_s
        self._transport = transport
        self._slow_terminal = slow_terminal
        self._lock = threading.Lock()
        self._due: dict[PaneReader, float] = {}
        self._texts: WeakValueDictionary[str, LogText] = WeakValueDictionary()
        self.settled = False
        """Set once the run has ended and little will change."""

    def run_now(self, reader: PaneReader) -> None:
        """Run a reader at once; a new one is run from now on."""
        with self._lock:
            self._due[reader] = 0.0
        self.wake()

    def drop(self, reader: PaneReader) -> None:
        """Run a reader no longer."""
        with self._lock:
            self._due.pop(reader, None)

    def set_settled(self, settled: bool) -> None:
        """Set whether the run has ended, so that its logs change little."""
        if settled != self.settled:
            self.settled = settled
            with self._lock:
                self._due = dict.fromkeys(self._due, 0.0)
            self.wake()

    def open(self, paths: tuple[str, ...], labels: tuple[str, ...]) -> tuple[LogSource, LogText]:
        """Return source and lines of logs; those of a single file are shared with the panes that show it."""
        if len(paths) > 1:
            merged = MergedLog(self._transport, list(zip(labels, paths, strict=True)))
            return merged, LogText(merged)
        text = self._texts.get(paths[0])
        if text is None:
            text = self._texts[paths[0]] = LogText(FileSource(self._transport, paths[0]))
        return text.source, text

    def pause(self, *, growing: bool, quiet: bool = False) -> float:
        """Return the pause between two polls of a log.

        `growing`: it grew at the last two polls. `quiet`: it has not grown for some polls.
        """
        if self.settled:
            return max(SETTLED_POLL_S, self._poll_s)
        if self._slow_terminal():
            return max(SLOW_POLL_S, self._poll_s)
        return max(self._poll_s, FLOOD_POLL_S if growing else QUIET_POLL_S if quiet else 0.0)

    def _run_due(self) -> float | None:
        limit = time.monotonic() + _TOGETHER_S
        with self._lock:
            readers = [reader for reader, due in self._due.items() if due <= limit]
        with ExitStack() as stack:
            with suppress(TransportError):  # each reader says so of its own log
                directories = dict.fromkeys(map(posixpath.dirname, self._texts))
                stack.enter_context(self._transport.looking_at(tuple(directories), 1, ""))
            for reader in readers:
                if self.stopped:
                    return None
                self._run(reader)
        with self._lock:
            due = min(self._due.values(), default=math.inf)
        return None if due == math.inf else max(due - time.monotonic(), 0.0)

    def _run(self, reader: PaneReader) -> None:
        """Run a reader, if it was not dropped meanwhile, and note when it is due again."""
        with self._lock:
            if reader not in self._due:
                return
            self._due[reader] = math.inf  # a request during the step makes it due again
        self.alive()
        pause = reader.step()
        with self._lock:
            if pause is not None and reader in self._due:
                self._due[reader] = min(self._due[reader], time.monotonic() + pause)
