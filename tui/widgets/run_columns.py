"""Columns of the list of runs: declared once; which of them are shown follows from the width."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from launcher.durations import day_and_time
from launcher.logs.job_state import JobState
from launcher.overview.rows import RunRow
from tui.formatting import GLYPHS, clock_time, duration, file_size, number, sparkline
from tui.widgets.panel import fitted

STATE_WIDTH = 12
_STATELESS = {"damaged": "!", "draft": "◇", "reading": "…"}
"""Glyphs of rows without a state, by their word."""
_NAME_LEAST, _NAME_MOST, _REASON_LEAST = 17, 30, 21
_SPARK_WIDTH = 7
_MODELS_WIDTH = 20
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class RunColumn:
    """A column: its heading, its width, and its text for a row at a time."""

    title: str
    width: int
    text: Callable[[RunRow, float], str]
    right: bool = False

    def cell(self, row: RunRow, now: float) -> str:
        """Return the text of a row, exactly as wide as the column."""
        text = self.text(row, now)
        return fitted(text.rjust(self.width) if self.right else text, self.width)

    @property
    def heading(self) -> str:
        """The heading, as wide as the column."""
        return fitted(self.title.rjust(self.width) if self.right else self.title, self.width)


def state_label(row: RunRow) -> str:
    """Return the state's glyph and name; `~` marks one that the scheduler does not confirm now."""
    glyph = _STATELESS[row.state_word] if row.state is None else GLYPHS[row.state]
    return f"{glyph} {row.state_word}{'~' if row.as_of is not None else ''}"


def _steps(row: RunRow, _: float) -> str:
    return f"{row.step}/{row.max_steps}" if row.max_steps else str(row.step or "")


def _loss(row: RunRow, _: float) -> str:
    return number(row.losses[-1]) if row.losses else ""


def _time(row: RunRow, now: float) -> str:
    """Return how long a run took; of one that lives, what is left or when it is expected to start."""
    if row.state is None:
        return ""
    if row.state.ended:
        return duration(row.ended - row.started) if None not in (row.ended, row.started) else ""  # type: ignore[operator]
    if row.state is JobState.QUEUED and row.expected is not None:
        return _moment(row.expected, now)
    if row.deadline is not None:
        return f"{duration(row.deadline - now, tenths=False)} left"
    if row.started is None or row.state is JobState.UNKNOWN:
        return ""
    return duration(now - row.started, tenths=False)


def _moment(moment: float, now: float) -> str:
    """Return an expected time: of today only the clock."""
    text = clock_time(moment)[:5]
    return f"at {text}" if abs(moment - now) < _DAY_S else time.strftime("%b %d", time.localtime(moment))


def _spark(row: RunRow, _: float) -> str:
    return sparkline([value for value in row.losses if math.isfinite(value)], _SPARK_WIDTH)


def _models(row: RunRow, _: float) -> str:
    if not row.student:
        return ""
    student, teacher = PurePath(row.student).name, PurePath(row.teacher).name
    text = f"{student} <- {teacher}" if teacher else student
    if len(text) > _MODELS_WIDTH:  # Qwen3-1.7B <- 8B
        family = student.partition("-")[0]
        text = f"{student} <- {teacher.removeprefix(f'{family}-')}" if teacher else student
    return text


_TIME = RunColumn("time", 11, _time, right=True)
_HOST = "host"
COLUMNS: tuple[RunColumn, ...] = (
    RunColumn(_HOST, 10, lambda row, _: row.host or "here"),
    RunColumn("step", 9, _steps, right=True),
    RunColumn("loss", 8, _loss, right=True),
    RunColumn("", _SPARK_WIDTH, _spark),
    RunColumn("started", 12, lambda row, _: day_and_time(row.started) if row.started is not None else ""),
    _TIME,
    RunColumn("job", 8, lambda row, _: row.job),
    RunColumn("nodes", 5, lambda row, _: "" if row.nodes is None else str(row.nodes), right=True),
    RunColumn("partition", 9, lambda row, _: row.partition),
    RunColumn("size", 7, lambda row, _: "" if row.bytes is None else file_size(row.bytes), right=True),
    RunColumn("student <- teacher", _MODELS_WIDTH, _models),
)
"""In the order in which they stand."""
_PRECEDENCE = (
    "step",
    "loss",
    "time",
    "started",
    _HOST,
    "reason",
    "",
    "job",
    "nodes",
    "student <- teacher",
    "size",
    "partition",
)
"""Columns by their headings; where there is no room for all (159 columns), the first ones are shown.

That of the host is left out where all rows are of this machine.
"""


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """Columns that are shown in a width."""

    name: int
    columns: tuple[RunColumn, ...]
    reason: int

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, width: int, offset: int = 0, *, hosts: bool = False) -> ColumnLayout:
        """Return the columns that fit; `offset`: so many of those that come first are left out.

        `hosts`: whether there are rows of hosts.
        """
        rest = max(width - STATE_WIDTH - 2 - _NAME_LEAST, 0)
        by_title = {column.title: column for column in COLUMNS}
        taken: list[RunColumn] = []
        with_reason = False
        precedence = [title for title in _PRECEDENCE if hosts or title != _HOST]
        for title in precedence[offset:]:
            needed = (_REASON_LEAST if title == "reason" else by_title[title].width) + 1
            if needed > rest:
                if title == "reason":
                    continue
                break
            rest -= needed
            with_reason = with_reason or title == "reason"
            if title != "reason":
                taken.append(by_title[title])
        spare = min(rest, _NAME_MOST - _NAME_LEAST)
        name = _NAME_LEAST + (spare if with_reason else rest)
        reason = _REASON_LEAST + rest - spare if with_reason else 0
        return cls(name, tuple(column for column in COLUMNS if column in taken), reason)

    def with_time(self, cells: Sequence[str], row: RunRow, now: float) -> Sequence[str]:
        """Return a row's texts at another time: one column depends on it."""
        if _TIME not in self.columns:
            return cells
        index = 2 + self.columns.index(_TIME)
        text = _TIME.cell(row, now)
        return cells if cells[index] == text else [*cells[:index], text, *cells[index + 1 :]]

    def header(self) -> str:
        """Return the headings."""
        texts = [f"{' state':<{STATE_WIDTH}}", f"{'run':<{self.name}}"]
        texts += [column.heading for column in self.columns]
        return " ".join([*texts, "reason"] if self.reason else texts)

    def cells(self, row: RunRow, now: float) -> Sequence[str]:
        """Return a row's texts, each as wide as its column: state, name, and the others."""
        texts = [fitted(f" {state_label(row)}", STATE_WIDTH), fitted(row.name, self.name)]
        texts += [column.cell(row, now) for column in self.columns]
        return [*texts, fitted(row.damaged or row.reason, self.reason)] if self.reason else texts


LAST_OFFSET = len(_PRECEDENCE) - 2
