"""Rows of the picker of logs: their text, and those that match what was typed, the exact number first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from launcher.logs.events import Role
from launcher.logs.log_survey import LogHealth, SurveyedLog
from launcher.logs.node_names import worker_number
from tui.formatting import duration, file_size
from tui.logview.tabs import ROLE_TITLES
from tui.theme import CURRENT

HEALTH_MARKS = {
    LogHealth.FAILING: ("✗ failing", "$text-error bold"),
    LogHealth.MISSING: ("? missing", "$text-error bold"),
    LogHealth.SILENT: ("◌ silent", "$text-warning bold"),
    LogHealth.WARNING: ("! warning", "$text-warning"),
    LogHealth.WELL: ("", ""),
}
_MARKED = "▪"
_MARK, _TITLE, _AGE, _SIZE = 9, 30, 9, 9
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_DIGITS = 9
"""Digits above which a number is no worker's, node's or rank's."""
_LAST_NUMBER = re.compile(r"(\d+)\D*$")


class LogMatcher:
    """The logs that match what is typed."""

    def __init__(self, logs: Sequence[SurveyedLog]) -> None:
        self._logs = [(log, _text(log).lower(), _LogNumbers.of(log)) for log in logs]

    def matching(self, typed: str) -> list[SurveyedLog]:
        """Return the logs that have every typed word, in the order given.

        A number is also that of a worker, of a node (without its zeros) or of a rank, in this order: such
        logs stand first, so that any of hundreds is reached by its number alone.
        """
        words = [(word, _number(word)) for word in typed.lower().split()]
        matches = []
        for log, text, numbers in self._logs:
            closeness = [numbers.closeness(number) for _, number in words]
            if all(close or word in text for (word, _), close in zip(words, closeness, strict=True)):
                matches.append((-max(closeness, default=0), log))
        return [log for _, log in sorted(matches, key=lambda match: match[0])]


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() and len(word) <= _DIGITS else None


@dataclass(frozen=True, slots=True)
class _LogNumbers:
    """The numbers by which a log is known."""

    worker: int | None
    node: int | None
    ranks: tuple[tuple[int, int], ...]
    """First and last of each range."""

    @classmethod
    def of(cls, log: SurveyedLog) -> _LogNumbers:
        """Return the numbers of a log."""
        address = log.node.replace(".", "").isdecimal()
        node = None if address else _LAST_NUMBER.search(log.node.partition(".")[0])
        ranks = ((_number(first), _number(last or first)) for first, last in _RANGE.findall(log.ranks))
        return cls(
            worker_number(log.name),
            _number(node[1]) if node is not None else None,
            tuple((first, last) for first, last in ranks if first is not None and last is not None),
        )

    def closeness(self, number: int | None) -> int:
        """Return 3 for the worker's number, 2 for its node's, 1 for one of its ranks, else 0."""
        if number is None:
            return 0
        if number == self.worker:
            return 3
        if number == self.node:
            return 2
        return 1 if any(first <= number <= last for first, last in self.ranks) else 0


@dataclass(frozen=True, slots=True)
class RowLayout:
    """The columns of all rows."""

    width: int
    title: int
    """Columns of role, node and ranks."""
    folders: bool
    """Whether names are shown with their folders: several logs have the same name."""

    @classmethod
    def of(cls, logs: Sequence[SurveyedLog], width: int) -> RowLayout:
        """Return the layout for rows of these logs."""
        title = min(max((cell_len(_title(log)) for log in logs), default=0), _TITLE)
        return cls(width, title, len({_base(log) for log in logs}) < len(logs))


def _base(log: SurveyedLog) -> str:
    return log.name.rpartition("/")[2]


def log_row(log: SurveyedLog, now: float, layout: RowLayout, *, current: bool, marked: bool) -> Content:
    """Return the row of a log at the time `now`; `current`: it is under the cursor."""
    mark, style = HEALTH_MARKS[log.health]
    age = f"{duration(now - log.written, tenths=False)} ago" if log.written is not None else ""
    size = file_size(log.bytes) if log.path else ""
    parts: list[tuple[str, str]] = [
        (f"{CURRENT.glyph if current else ' '}{_MARKED if marked else ' '} ", CURRENT.style),
        (set_cell_size(mark, _MARK), style),
        (" ", ""),
        (set_cell_size(_title(log), layout.title), "bold" if log.health is not LogHealth.WELL else ""),
    ]
    left = layout.width - sum(cell_len(text) for text, _ in parts)
    name = log.name if layout.folders and cell_len(log.name) < left - cell_len(log.reason) else _base(log)
    named = log.node or log.role is not Role.WORKER
    if not (named and log.reason) or cell_len(name) + cell_len(log.reason) + 3 <= left:
        parts.append((f" {name}", "dim"))
        left -= cell_len(name) + 1
    if log.reason:
        parts.append((f"  {log.reason}", style))
    elif left > _AGE + _SIZE + 2:
        parts.append((f"{' ' * (left - _AGE - _SIZE - 2)}{age:>{_AGE}} {size:>{_SIZE}}", "dim"))
    return Content.assemble(*parts).truncate(layout.width, ellipsis=True)


def _title(log: SurveyedLog) -> str:
    place = " ".join(
        part for part in (f"{log.node}," if log.node and log.ranks else log.node, log.ranks) if part
    )
    return f"{ROLE_TITLES[log.role]} {place}".rstrip()


def _text(log: SurveyedLog) -> str:
    return f"{_title(log)} {log.name} {HEALTH_MARKS[log.health][0]} {log.reason}"
