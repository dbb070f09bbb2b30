"""Requests to the reading thread, and the messages that answer them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from textual.message import Message

from tui.logview.line import Line
from tui.logview.line_index import Extent
from tui.logview.match import LineFilterTerm, Query


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


@dataclass(frozen=True, slots=True)
class MatchPosition:
    """Position of a match among all matches of a query, as far as they are counted."""

    number: int | None
    """Counted from 1; None while the matches before it are not counted."""
    total: int
    complete: bool
    """Whether `total` counts the whole log."""

    def in_words(self) -> str:
        """Return `match 3 of 41`; `41+` while there may be more."""
        number = f"{self.number:,}" if self.number is not None else "…"
        return f"match {number} of {self.total:,}{'' if self.complete else '+'}"


class MatchesCounted(Message):
    """Position of the current match of a search."""

    def __init__(self, search: Search, position: MatchPosition) -> None:
        super().__init__()
        self.search = search
        self.position = position
