"""The thread that reads, filters and searches a log for the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import TransportError
from launcher.logs.merged_log import MergedLog
from launcher.text import clean
from launcher.transports.base import Transport
from tui.background import Background, post
from tui.logview.filter import FilteredText
from tui.logview.line import Line
from tui.logview.line_index import STRIDE, Extent, LineSource, LogText
from tui.logview.match import LineFilterTerm, Query
from tui.logview.source import FileSource, LogSource
from tui.logview.stride_search import StrideSearch

POLL_S = 0.33
FLOOD_POLL_S = 0.5
"""Interval while a log grows by more than the screen's lines at once: each time all of it is painted."""
SETTLED_POLL_S = 2.0
"""Interval for the logs of a run that has ended."""
SLICE_S = 0.05
"""Time limit of a part of long work, after which the screen's requests are read again."""
PROGRESS_S = 0.15
"""Interval of progress messages."""


@dataclass(frozen=True, slots=True)
class LogSelection:
    """The log to show, or several to merge, and the filter on its lines."""

    logs: tuple[tuple[str, str], ...] = ()
    """Label and path of each."""
    terms: tuple[LineFilterTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Lines that the screen wants of a selection."""

    selection: LogSelection
    first: int = 0
    count: int = 0
    follow: bool = True
    """The last `count` lines, wherever they are."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search; its number tells its answer from older ones."""

    query: Query
    line: int
    backwards: bool
    number: int


class Unit(StrEnum):
    """Unit in which a jump's target is given."""

    LINE = "line"
    """Line of the file, counted from 0; the next one that is shown where it is filtered out."""
    PERCENT = "percent"
    """Percentage of the lines that are shown."""
    OFFSET = "offset"
    """Byte offset in one of the files."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump to a line."""

    unit: Unit
    value: float
    number: int
    path: str = ""
    """The file of an offset; empty for an offset in the selection."""


class LinesRead(Message):
    """Lines of a log, and its size."""

    def __init__(
        self,
        selection: LogSelection,
        extent: Extent,
        first: int,
        lines: list[Line],
        untimed: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.selection = selection
        self.extent = extent
        self.first = first
        self.lines = lines
        self.untimed = untimed
        """Of merged logs, those without times."""


class SearchProgress(Message):
    """Progress of a search, from 0 to 1."""

    def __init__(self, search: Search, progress: float) -> None:
        super().__init__()
        self.search = search
        self.progress = progress


class SearchFinished(Message):
    """Result of a search; `line` is None where nothing matches."""

    def __init__(self, search: Search, line: int | None, wrapped: bool) -> None:
        super().__init__()
        self.search = search
        self.line = line
        self.wrapped = wrapped


class JumpResult(Message):
    """Line of a jump; None where the target is not in the selection."""

    def __init__(self, jump: Jump, line: int | None) -> None:
        super().__init__()
        self.jump = jump
        self.line = line


class LogReader(Background):
    """Answers the screen's requests; polls the log for growth in between."""

    def __init__(self, transport: Transport, target: MessagePump) -> None:
        super().__init__(self._poll, "log")
        self._transport = transport
        self._target = target
        self._lock = threading.Lock()
        self._request: ReadRequest | None = None
        self._search: Search | None = None
        self._jump: Jump | None = None
        self._line_search: tuple[Search, StrideSearch] | None = None
        self._selection = LogSelection()
        self._source: LogSource | None = None
        self._text: LogText | None = None
        self._lines: LineSource | None = None
        self._done: tuple[ReadRequest, Extent] | None = None
        self._progress_posted = 0.0
        self._line_count = 0
        """Number of lines at the last poll."""
        self.settled = False
        """Set once the run has ended and little will change."""

    def request(self, request: ReadRequest) -> None:
        """Set the lines to be read from now on."""
        with self._lock:
            changed = request != self._request
            self._request = request
        if changed:
            self.wake()

    def search(self, search: Search | None) -> None:
        """Start a search, replacing one under way; None only stops that."""
        with self._lock:
            self._search = search
        self.wake()

    def jump(self, jump: Jump | None) -> None:
        """Find the line of a jump, replacing an earlier one; None only cancels that."""
        with self._lock:
            self._jump = jump
        self.wake()

    def _poll(self) -> float | None:
        with self._lock:
            request, search, jump = self._request, self._search, self._jump
        if request is None or not request.selection.logs:
            return None
        try:
            self._open(request.selection)
            extent = self._read(request)
            if not extent.problem and extent.prepared >= 1 and self._continue(extent, search, jump):
                return 0.0
        except TransportError as error:
            self._done = None
            self._line_search = None
            post(
                self._target,
                LinesRead(request.selection, Extent(problem=_problem(error, request.selection)), 0, []),
            )
            return POLL_S * 4
        if not extent.problem and (not extent.counted or extent.behind or extent.prepared < 1):
            return 0.0
        if self.settled:
            return SETTLED_POLL_S
        growth, self._line_count = extent.lines - self._line_count, extent.lines
        pace = FLOOD_POLL_S if growth > request.count else POLL_S
        return pace if len(request.selection.logs) < 50 else POLL_S * 4

    def _continue(self, extent: Extent, search: Search | None, jump: Jump | None) -> bool:
        """Continue a jump or search that takes several polls; False when there is none."""
        if jump is not None and self._resolve_jump(jump, extent):
            return True
        if search is not None and extent.counted:
            self._continue_search(search)
            return True
        return False

    def _open(self, selection: LogSelection) -> None:
        """Open the sources of a selection; the line index of the same logs is kept."""
        if selection == self._selection and self._lines is not None:
            return
        self._done, self._line_search = None, None
        if self._source is None or self._text is None or not self._extends(selection):
            self._source = _source(self._transport, selection)
            self._text = LogText(self._source)
        self._selection = selection
        self._lines = FilteredText(self._source, selection.terms) if selection.terms else self._text

    def _extends(self, selection: LogSelection) -> bool:
        """Return whether the selection has the logs that are open, and perhaps more (these are opened)."""
        open_logs = self._selection.logs
        if selection.logs == open_logs:
            return True
        if (
            isinstance(self._source, MergedLog)
            and len(selection.logs) > 1
            and set(open_logs) <= set(selection.logs)
        ):
            self._source.add(selection.logs)
            return True
        return False

    def _read(self, request: ReadRequest) -> Extent:
        assert self._source is not None
        assert self._lines is not None
        prepared = self._run_slice(lambda: self._prepared() >= 1)
        if not prepared:
            extent = Extent(counted=False, prepared=self._prepared())
            self._post_lines(request, extent, 0, [])
            return extent
        lines = self._lines
        extent = lines.refresh()
        if not extent.counted and not extent.problem and self._done is not None:
            # Only after the tail has been shown.
            behind = extent.behind
            self._run_slice(lambda: lines.count(STRIDE).counted)
            extent = replace(lines.count(0), behind=behind)
        if self._done == (request, extent):
            return extent
        busy = not extent.counted or extent.behind > 0
        if busy and self._done is not None and self._done[0] == request and not self._due():
            return extent
        first = max(extent.lines - request.count, 0) if request.follow else request.first
        self._post_lines(request, extent, first, [] if extent.problem else lines.window(first, request.count))
        return extent

    def _prepared(self) -> float:
        assert self._source is not None
        self.alive()
        return self._source.prepare()

    def _post_lines(self, request: ReadRequest, extent: Extent, first: int, lines: list[Line]) -> None:
        self._done = (request, extent)
        source = self._source
        untimed: tuple[str, ...] = ()
        if isinstance(source, MergedLog):
            untimed = source.untimed
            lines = [_attributed(source, line) for line in lines]
        post(self._target, LinesRead(request.selection, extent, first, lines, untimed))

    def _resolve_jump(self, jump: Jump, extent: Extent) -> bool:
        """Post the line of a jump; False while it is unknown."""
        assert self._lines is not None
        line = self._line_of(jump, extent)
        if line is not None or extent.counted:
            with self._lock:
                if self._jump is jump:
                    self._jump = None
            post(self._target, JumpResult(jump, line))
            return True
        return False

    def _line_of(self, jump: Jump, extent: Extent) -> int | None:
        assert self._lines is not None
        assert self._text is not None
        assert self._source is not None
        last = max(extent.lines - 1, 0)
        match jump.unit:
            case Unit.PERCENT:
                return round(last * min(jump.value, 100) / 100) if extent.counted else None
            case Unit.LINE:
                if self._lines is self._text:
                    return min(int(jump.value), last) if extent.counted else None
                return self._line_at(self._offset_of(int(jump.value)), last)
            case Unit.OFFSET:
                offset = self._source.locate(jump.path, int(jump.value)) if jump.path else int(jump.value)
                return self._line_at(offset, last) if offset is not None else None

    def _line_at(self, offset: int, last: int) -> int | None:
        assert self._lines is not None
        line = self._lines.line_at(offset)
        return min(line, last) if line is not None else None

    def _offset_of(self, line: int) -> int:
        """Return the offset of a line of the file; counts the file's lines first where needed."""
        assert self._text is not None
        text = self._text
        text.refresh()
        while (offset := text.offset_of(line)) is None and not self.stopped:
            self.alive()
            text.count(STRIDE)
        return offset or 0

    def _continue_search(self, search: Search) -> None:
        """Search for one slice of time."""
        assert self._lines is not None
        if self._line_search is None or self._line_search[0] is not search:
            begun = StrideSearch(self._lines, search.query, search.line, backwards=search.backwards)
            self._line_search = (search, begun)
        line_search = self._line_search[1]
        if not self._run_slice(lambda: line_search.step() or self._search is not search):
            if self._due():
                post(self._target, SearchProgress(search, line_search.progress))
            return
        self._line_search = None
        with self._lock:
            if self._search is not search:
                return
            self._search = None
        post(
            self._target,
            SearchFinished(search, line_search.match, line_search.wrapped and line_search.match is not None),
        )

    def _run_slice(self, step: Callable[[], bool]) -> bool:
        """Run steps until one returns True; False when they take longer than a slice."""
        began = time.monotonic()
        while not step():
            self.alive()
            if self.stopped or time.monotonic() - began > SLICE_S:
                return False
        return True

    def _due(self) -> bool:
        """Return whether it is time for another progress message."""
        now = time.monotonic()
        if now - self._progress_posted < PROGRESS_S:
            return False
        self._progress_posted = now
        return True


def _problem(error: TransportError, selection: LogSelection) -> str:
    """Return the error; without the path of a single log, which would push the reason out of sight."""
    message = error.what.replace(selection.logs[0][1], "the log") if len(selection.logs) == 1 else error.what
    return clean(message)


def _attributed(source: MergedLog, line: Line) -> Line:
    """Return a line of merged logs with its log's label, its origin and its time."""
    at = line.offset
    return replace(line, label=source.label(at), origin=source.origin(at), time=source.moment(at))


def _source(transport: Transport, selection: LogSelection) -> LogSource:
    if len(selection.logs) == 1:
        return FileSource(transport, selection.logs[0][1])
    return MergedLog(transport, selection.logs)
