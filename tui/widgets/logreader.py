"""The thread that reads a log's text for the screen."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import TransportError
from launcher.text import clean
from launcher.transports.base import Transport
from tui.background import Background, post
from tui.widgets.logtext import Extent, LogText, Needle

POLL_S = 0.25
SETTLED_POLL_S = 2.0
"""Pace for the logs of a run that has ended."""
COUNT_BUDGET = 32 * 1024 * 1024
"""Bytes counted before the screen's wishes are looked at again; a quarter of a second from a slow disk."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the screen wants to see of a log."""

    path: str
    first: int = 0
    count: int = 0
    follow: bool = True
    """The last `count` lines, wherever they are."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search; each has its own number, so that an old answer is not taken for a new one."""

    needle: Needle
    line: int
    backwards: bool
    number: int


class LinesRead(Message):
    """Lines of a log, and how far it reaches."""

    def __init__(self, path: str, extent: Extent, first: int, lines: list[str]) -> None:
        super().__init__()
        self.path = path
        self.extent = extent
        self.first = first
        self.lines = lines


class SearchEnded(Message):
    """A search found a line, or nothing."""

    def __init__(self, search: Search, line: int | None, wrapped: bool) -> None:
        super().__init__()
        self.search = search
        self.line = line
        self.wrapped = wrapped


class LogReader(Background):
    """Reads what is wished for; polls the log for growth in between."""

    def __init__(self, transport: Transport, target: MessagePump) -> None:
        super().__init__(self._look, "log")
        self._transport = transport
        self._target = target
        self._lock = threading.Lock()
        self._wish: Wish | None = None
        self._search: Search | None = None
        self._text: LogText | None = None
        self._path = ""
        self._done: tuple[Wish, Extent] | None = None
        self.settled = False
        """Set once the run has ended and little will change."""

    def wish(self, wish: Wish) -> None:
        """Say what is to be seen from now on."""
        with self._lock:
            changed = wish != self._wish
            self._wish = wish
        if changed:
            self.wake()

    def search(self, search: Search | None) -> None:
        """Search, in place of a search under way; None only ends that."""
        with self._lock:
            self._search = search
        self.wake()

    def _look(self) -> float | None:
        with self._lock:
            wish, search = self._wish, self._search
        if wish is None or not wish.path:
            return None
        try:
            extent = self._read(wish)
            if search is not None and extent.counted and not extent.problem:
                self._find(search)
                return 0.0
        except TransportError as error:
            self._done = None
            post(self._target, LinesRead(wish.path, Extent(problem=clean(error.what)), 0, []))
            return POLL_S * 4
        if not extent.counted:
            return 0.0
        return SETTLED_POLL_S if self.settled else POLL_S

    def _read(self, wish: Wish) -> Extent:
        if self._text is None or self._path != wish.path:
            self._text, self._path, self._done = LogText(self._transport, wish.path), wish.path, None
        text = self._text
        extent = text.refresh()
        if not extent.counted and not extent.problem and self._done is not None:
            extent = text.count(COUNT_BUDGET)  # only after the tail was shown
        if self._done is not None and self._done == (wish, extent):
            return extent
        first = max(extent.lines - wish.count, 0) if wish.follow else wish.first
        lines = [] if extent.problem else text.window(first, wish.count)
        self._done = (wish, extent)
        post(self._target, LinesRead(wish.path, extent, first, lines))
        return extent

    def _find(self, search: Search) -> None:
        text = self._text
        assert text is not None

        def going() -> bool:
            self.alive()
            return self._search is search and not self.stopped

        line = text.find(search.needle, search.line, backwards=search.backwards, going=going)
        wrapped = line is None
        if wrapped and going():
            end = 1 << 62 if search.backwards else 0
            line = text.find(search.needle, end, backwards=search.backwards, going=going)
        if going():
            with self._lock:
                self._search = None
            post(self._target, SearchEnded(search, line, wrapped and line is not None))
