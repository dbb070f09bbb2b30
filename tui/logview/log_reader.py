"""The reader of one pane: it reads, filters and searches a log on the reading thread (`reader_thread`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from textual.message_pump import MessagePump

from launcher.errors import TransportError
from launcher.logs.merged_log import MergedLog
from launcher.text import clean
from tui.background import post
from tui.logview.filter import FilteredText
from tui.logview.line import Line
from tui.logview.line_index import STRIDE, Extent, LineSource, LogText
from tui.logview.match_count import MatchCount
from tui.logview.read_requests import (
    Jump,
    JumpResult,
    LinesRead,
    LogSelection,
    MatchesCounted,
    ReadRequest,
    Search,
    SearchFinished,
    SearchProgress,
    Unit,
)
from tui.logview.reader_thread import ReaderThread
from tui.logview.source import LogSource
from tui.logview.stride_search import StrideSearch

SLICE_S = 0.05
"""Time limit of a part of long work, after which the screen's requests are read again."""
PROGRESS_S = 0.15
"""Interval of progress messages."""
QUIET_POLLS = 6
"""Polls without growth after which a log is polled less often."""
MANY_LOGS = 50
"""Merged logs from which on they are polled less often."""


class LogReader:
    """Answers a pane's requests; polls its log for growth in between."""

    def __init__(self, thread: ReaderThread, target: MessagePump) -> None:
        self._thread = thread
        self._target = target
        self._lock = threading.Lock()
        self._request: ReadRequest | None = None
        self._search: Search | None = None
        self._jump: Jump | None = None
        self._line_search: tuple[Search, StrideSearch] | None = None
        self._count_request: tuple[Search, int] | None = None
        self._match_count: MatchCount | None = None
        self._selection = LogSelection()
        self._source: LogSource | None = None
        self._text: LogText | None = None
        self._lines: LineSource | None = None
        self._done: tuple[ReadRequest, Extent] | None = None
        self._progress_posted = 0.0
        self._bytes = 0
        """Size at the last poll."""
        self._growing = False
        """Whether the log had grown at the last poll."""
        self._quiet_polls = 0
        """Polls since it grew."""

    @property
    def busy_for(self) -> float:
        """Seconds since the step under way began; 0 between steps."""
        return self._thread.busy_for

    def stop(self) -> None:
        """Read no longer."""
        self._thread.drop(self)

    def resume(self) -> None:
        """Read again."""
        self._thread.run_now(self)

    def request(self, request: ReadRequest) -> None:
        """Set the lines to be read from now on."""
        with self._lock:
            changed = request != self._request
            self._request = request
        if changed:
            self._thread.run_now(self)

    def search(self, search: Search | None) -> None:
        """Start a search, replacing one under way; None only stops that."""
        with self._lock:
            self._search = search
            self._count_request = None
        self._thread.run_now(self)

    def count_matches(self, search: Search, line: int) -> None:
        """Count the matches of a search, and post the position of the one at a line."""
        with self._lock:
            self._count_request = (search, line)
        self._thread.run_now(self)

    def jump(self, jump: Jump | None) -> None:
        """Find the line of a jump, replacing an earlier one; None only cancels that."""
        with self._lock:
            self._jump = jump
        self._thread.run_now(self)

    def step(self) -> float | None:
        """Read, search or count for a slice of time; return the pause after it."""
        with self._lock:
            request, search, jump, count = self._request, self._search, self._jump, self._count_request
        if request is None or not request.selection.logs:
            return None
        try:
            self._open(request.selection)
            extent = self._read(request)
            ready = not extent.problem and extent.prepared >= 1
            if ready and self._continue(extent, search, jump):
                return 0.0
            if ready and extent.counted and count is not None and self._continue_count(count):
                return 0.0
        except TransportError as error:
            self._done = None
            self._line_search = self._match_count = None
            post(
                self._target,
                LinesRead(request.selection, Extent(problem=_problem(error, request.selection)), 0, []),
            )
            return self._thread.pause(growing=True) * 2
        if not extent.problem and (not extent.counted or extent.behind or extent.prepared < 1):
            return 0.0
        return self._pause(request, extent)

    def _pause(self, request: ReadRequest, extent: Extent) -> float:
        """Return the pause until the next poll: longer while the log grows at each."""
        grown, self._bytes = extent.bytes > self._bytes, extent.bytes
        growing = grown and self._growing
        self._growing = grown
        self._quiet_polls = 0 if grown else self._quiet_polls + 1
        pause = self._thread.pause(growing=growing, quiet=self._quiet_polls > QUIET_POLLS)
        return pause if len(request.selection.logs) < MANY_LOGS else pause * 4

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
        self._done, self._line_search, self._match_count = None, None, None
        if self._source is None or self._text is None or not self._extends(selection):
            labels, paths = zip(*selection.logs, strict=True)
            self._source, self._text = self._thread.open(paths, labels)
            self._bytes, self._growing = 0, False
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
        self._thread.alive()
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
        while (offset := text.offset_of(line)) is None and not self._thread.stopped:
            self._thread.alive()
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

    def _continue_count(self, request: tuple[Search, int]) -> bool:
        """Count matches for one slice of time; False when all are counted and nothing is left to do."""
        assert self._lines is not None
        search, line = request
        if self._match_count is None or self._match_count.query != search.query:
            self._match_count = MatchCount(self._lines, search.query)
        count = self._match_count
        complete = self._run_slice(lambda: count.step() or self._count_request is not request)
        if self._count_request is not request:
            return True
        if complete or self._due():
            post(self._target, MatchesCounted(search, count.position(line)))
        if not complete:
            return True
        with self._lock:
            if self._count_request is request:
                self._count_request = None
        count.reopen()
        return False

    def _run_slice(self, step: Callable[[], bool]) -> bool:
        """Run steps until one returns True; False when they take longer than a slice."""
        began = time.monotonic()
        while not step():
            self._thread.alive()
            if self._thread.stopped or time.monotonic() - began > SLICE_S:
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
