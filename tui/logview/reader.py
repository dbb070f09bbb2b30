"""The thread that reads a log's text for the screen."""

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
from tui.logview.line_index import STRIDE, Extent, LineSource, LogText, Seek
from tui.logview.match import LineFilterTerm, Query
from tui.logview.source import FileSource, LogSource

POLL_S = 0.33
FLOOD_POLL_S = 0.5
"""Pace while more comes than the screen has lines: nobody reads that, and each time all is painted anew."""
SETTLED_POLL_S = 2.0
"""Pace for the logs of a run that has ended."""
SLICE_S = 0.05
"""Time for what takes long, before the screen's wishes are looked at again."""
TELL_S = 0.15
"""How often progress is told."""


@dataclass(frozen=True, slots=True)
class LogSelection:
    """What is looked at: one log, or several as one; and which of its lines."""

    logs: tuple[tuple[str, str], ...] = ()
    """Label and path of each."""
    terms: tuple[LineFilterTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What the screen wants to see of a scene."""

    scene: LogSelection
    first: int = 0
    count: int = 0
    follow: bool = True
    """The last `count` lines, wherever they are."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search; each has its own number, so that an old answer is not taken for a new one."""

    query: Query
    line: int
    backwards: bool
    number: int


class Unit(StrEnum):
    """What a place to go to is given in."""

    LINE = "line"
    """Of the file, counted from 0; where lines are left out, the next one that is shown."""
    PERCENT = "percent"
    """Of the lines that are shown."""
    OFFSET = "offset"
    """Bytes of one of the files."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A place to go to."""

    unit: Unit
    value: float
    number: int
    path: str = ""
    """The file that an offset is meant of; empty for the place in what is looked at."""


class LinesRead(Message):
    """Lines of a log, and how far it reaches."""

    def __init__(
        self,
        scene: LogSelection,
        extent: Extent,
        first: int,
        lines: list[Line],
        untimed: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        self.scene = scene
        self.extent = extent
        self.first = first
        self.lines = lines
        self.untimed = untimed
        """Logs of several without times."""


class Searching(Message):
    """How far a search is."""

    def __init__(self, search: Search, done: float) -> None:
        super().__init__()
        self.search = search
        self.done = done


class SearchEnded(Message):
    """A search found a line, or nothing."""

    def __init__(self, search: Search, line: int | None, wrapped: bool) -> None:
        super().__init__()
        self.search = search
        self.line = line
        self.wrapped = wrapped


class JumpResult(Message):
    """A place to go to is known; None where it is not in what is looked at."""

    def __init__(self, jump: Jump, line: int | None) -> None:
        super().__init__()
        self.jump = jump
        self.line = line


class LogReader(Background):
    """Reads what is wished for; polls the log for growth in between."""

    def __init__(self, transport: Transport, target: MessagePump) -> None:
        super().__init__(self._look, "log")
        self._transport = transport
        self._target = target
        self._lock = threading.Lock()
        self._wish: ReadRequest | None = None
        self._search: Search | None = None
        self._jump: Jump | None = None
        self._seek: tuple[Search, Seek] | None = None
        self._scene = LogSelection()
        self._source: LogSource | None = None
        self._text: LogText | None = None
        self._lines: LineSource | None = None
        self._done: tuple[ReadRequest, Extent] | None = None
        self._told = 0.0
        self._counted = 0
        """Lines there were at the last look."""
        self.settled = False
        """Set once the run has ended and little will change."""

    def wish(self, wish: ReadRequest) -> None:
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

    def jump(self, jump: Jump | None) -> None:
        """Find a place to go to; None gives up the one that was to be found."""
        with self._lock:
            self._jump = jump
        self.wake()

    def _look(self) -> float | None:
        with self._lock:
            wish, search, jump = self._wish, self._search, self._jump
        if wish is None or not wish.scene.logs:
            return None
        try:
            self._open(wish.scene)
            extent = self._read(wish)
            if not extent.problem and extent.prepared >= 1 and self._under_way(extent, search, jump):
                return 0.0
        except TransportError as error:
            self._done = None
            self._seek = None
            post(self._target, LinesRead(wish.scene, Extent(problem=_why(error, wish.scene)), 0, []))
            return POLL_S * 4
        if not extent.problem and (not extent.counted or extent.behind or extent.prepared < 1):
            return 0.0
        if self.settled:
            return SETTLED_POLL_S
        grown, self._counted = extent.lines - self._counted, extent.lines
        pace = FLOOD_POLL_S if grown > wish.count else POLL_S
        return pace if len(wish.scene.logs) < 50 else POLL_S * 4

    def _under_way(self, extent: Extent, search: Search | None, jump: Jump | None) -> bool:
        """Go on with what takes several looks; False when there is nothing of the kind."""
        if jump is not None and self._land(jump, extent):
            return True
        if search is not None and extent.counted:
            self._find(search)
            return True
        return False

    def _open(self, scene: LogSelection) -> None:
        """Make what reads a scene; what is known of the same logs stays known."""
        if scene == self._scene and self._lines is not None:
            return
        self._done, self._seek = None, None
        if self._source is None or self._text is None or not self._goes_on(scene):
            self._source = _source(self._transport, scene)
            self._text = LogText(self._source)
        self._scene = scene
        self._lines = FilteredText(self._source, scene.terms) if scene.terms else self._text

    def _goes_on(self, scene: LogSelection) -> bool:
        """Tell whether a scene is of the logs that are open, to which others may have come."""
        before = self._scene.logs
        if scene.logs == before:
            return True
        if isinstance(self._source, MergedLog) and len(scene.logs) > 1 and set(before) <= set(scene.logs):
            self._source.add(scene.logs)
            return True
        return False

    def _read(self, wish: ReadRequest) -> Extent:
        assert self._source is not None
        assert self._lines is not None
        prepared = self._until(lambda: self._prepared() >= 1)
        if not prepared:
            extent = Extent(counted=False, prepared=self._prepared())
            self._tell(wish, extent, 0, [])
            return extent
        lines = self._lines
        extent = lines.refresh()
        if not extent.counted and not extent.problem and self._done is not None:
            # Only after the tail was shown.
            behind = extent.behind
            self._until(lambda: lines.count(STRIDE).counted)
            extent = replace(lines.count(0), behind=behind)
        if self._done == (wish, extent):
            return extent
        busy = not extent.counted or extent.behind > 0
        if busy and self._done is not None and self._done[0] == wish and not self._due():
            return extent
        first = max(extent.lines - wish.count, 0) if wish.follow else wish.first
        self._tell(wish, extent, first, [] if extent.problem else lines.window(first, wish.count))
        return extent

    def _prepared(self) -> float:
        assert self._source is not None
        self.alive()
        return self._source.prepare()

    def _tell(self, wish: ReadRequest, extent: Extent, first: int, lines: list[Line]) -> None:
        self._done = (wish, extent)
        source = self._source
        untimed: tuple[str, ...] = ()
        if isinstance(source, MergedLog):
            untimed = source.untimed
            lines = [_told_by(source, line) for line in lines]
        post(self._target, LinesRead(wish.scene, extent, first, lines, untimed))

    def _land(self, jump: Jump, extent: Extent) -> bool:
        """Tell which line a place is; False while that is not known."""
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
        """Return where a line of the file begins; counts the file's lines first where that was not done."""
        assert self._text is not None
        text = self._text
        text.refresh()
        while (offset := text.offset_of(line)) is None and not self.stopped:
            self.alive()
            text.count(STRIDE)
        return offset or 0

    def _find(self, search: Search) -> None:
        """Search on, for a moment."""
        assert self._lines is not None
        if self._seek is None or self._seek[0] is not search:
            self._seek = (search, Seek(self._lines, search.query, search.line, backwards=search.backwards))
        seek = self._seek[1]
        if not self._until(lambda: seek.step() or self._search is not search):
            if self._due():
                post(self._target, Searching(search, seek.done))
            return
        self._seek = None
        with self._lock:
            if self._search is not search:
                return
            self._search = None
        post(self._target, SearchEnded(search, seek.found, seek.wrapped and seek.found is not None))

    def _until(self, step: Callable[[], bool]) -> bool:
        """Do steps until one is the last; False when that takes longer than the screen can wait."""
        began = time.monotonic()
        while not step():
            self.alive()
            if self.stopped or time.monotonic() - began > SLICE_S:
                return False
        return True

    def _due(self) -> bool:
        """Tell whether progress is to be told again."""
        now = time.monotonic()
        if now - self._told < TELL_S:
            return False
        self._told = now
        return True


def _why(error: TransportError, scene: LogSelection) -> str:
    """Return what is wrong; without the path of the one log looked at, which would hide the reason."""
    what = error.what.replace(scene.logs[0][1], "the log") if len(scene.logs) == 1 else error.what
    return clean(what)


def _told_by(source: MergedLog, line: Line) -> Line:
    """Return a line with what the merging knows of it."""
    at = line.offset
    return replace(line, label=source.label(at), origin=source.origin(at), moment=source.moment(at))


def _source(transport: Transport, scene: LogSelection) -> LogSource:
    if len(scene.logs) == 1:
        return FileSource(transport, scene.logs[0][1])
    return MergedLog(transport, scene.logs)
