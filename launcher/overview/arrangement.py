"""Order, filter and groups of the list: pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from launcher.logs.job_state import JobState
from launcher.overview.rows import RunRow

_STATES = (
    JobState.RUNNING,
    JobState.STARTING,
    JobState.QUEUED,
    JobState.STOPPED,
    JobState.FAILED,
    JobState.CANCELLED,
    JobState.UNKNOWN,
    JobState.COMPLETED,
)


@dataclass(frozen=True, slots=True)
class SortOrder:
    """An order of the rows; `descending` is its first direction."""

    title: str
    key: Callable[[RunRow], float | str | None]
    """None sorts last in both directions."""
    descending: bool = True


SORT_ORDERS: Mapping[str, SortOrder] = {
    "started": SortOrder("start", lambda row: row.started),
    "state": SortOrder("state", lambda row: _rank_of_state(row), descending=False),
    "name": SortOrder("name", lambda row: row.name.casefold(), descending=False),
    "loss": SortOrder("loss", lambda row: _last_finite(row.losses), descending=False),
    "step": SortOrder("step", lambda row: row.step or None),
    "took": SortOrder("time taken", lambda row: _took(row)),
    "nodes": SortOrder("nodes", lambda row: row.nodes),
    "size": SortOrder("size on disk", lambda row: row.bytes),
}
"""By name, in the order in which they are offered."""


@dataclass(frozen=True, slots=True)
class GroupHeading:
    """Heading of the rows of one recipe."""

    title: str
    rows: int
    live: int
    noun: str = "run"
    """Name of one row."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the list is shown."""

    order: str = "started"
    reverse: bool = False
    text: str = ""
    """Words that a row must all contain."""
    grouped: bool = False

    def next_order(self) -> Arrangement:
        """Return it in the next order."""
        names = list(SORT_ORDERS)
        following = names[(names.index(self.order) + 1) % len(names)]
        return Arrangement(following, reverse=False, text=self.text, grouped=self.grouped)

    def in_words(self) -> str:
        """Return the order as the title shows it; empty for the usual one."""
        if self == Arrangement(text=self.text, grouped=self.grouped):
            return "by recipe" if self.grouped else ""
        order = SORT_ORDERS[self.order]
        arrow = "↓" if order.descending != self.reverse else "↑"
        return f"by {'recipe, ' if self.grouped else ''}{order.title} {arrow}"


Entry = RunRow | GroupHeading


def arranged(rows: Iterable[RunRow], arrangement: Arrangement) -> tuple[Entry, ...]:
    """Return the rows that match, in order; grouped by recipe, each group under its heading."""
    words = arrangement.text.casefold().split()
    shown = [row for row in rows if not words or _matches(row, words)]
    if arrangement != Arrangement(text=arrangement.text, grouped=arrangement.grouped):
        shown = _sorted(shown, arrangement)
    if not arrangement.grouped:
        return tuple(shown)
    groups: dict[str, list[RunRow]] = {}
    for row in shown:
        groups.setdefault(recipe_title(row), []).append(row)
    entries: list[Entry] = []
    for title, members in groups.items():
        nouns = {_noun(row) for row in members}
        noun = nouns.pop() if len(nouns) == 1 else "entry"
        entries += [GroupHeading(title, len(members), sum(row.live for row in members), noun), *members]
    return tuple(entries)


def merged(runs: Sequence[RunRow], others: Sequence[RunRow]) -> tuple[RunRow, ...]:
    """Return runs, which come newest first, and other rows as one list, newest first."""
    if not others:
        return tuple(runs)
    return tuple(
        sorted((*runs, *others), key=lambda row: -(row.started if row.started is not None else math.inf))
    )


def recipe_title(row: RunRow) -> str:
    """Return what a row is grouped under."""
    if row.recipe:
        return PurePath(row.recipe).name
    return "damaged" if row.damaged else "drafts" if row.draft else "jobs of other programs"


def searched_text(row: RunRow) -> str:
    """Return the text that a filter searches, without case."""
    parts = (row.name, row.id, row.state_word, row.reason, row.damaged, row.recipe, row.student, row.teacher)
    return " ".join((*parts, row.partition, row.job, row.host)).casefold()


def _matches(row: RunRow, words: Sequence[str]) -> bool:
    text = searched_text(row)
    return all(word in text for word in words)


def _sorted(rows: list[RunRow], arrangement: Arrangement) -> list[RunRow]:
    order = SORT_ORDERS[arrangement.order]
    keys = {id(row): order.key(row) for row in rows}
    valued = [row for row in rows if keys[id(row)] is not None]
    missing = [row for row in rows if keys[id(row)] is None]
    valued.sort(key=lambda row: keys[id(row)], reverse=order.descending != arrangement.reverse)  # type: ignore[arg-type, return-value]
    return valued + missing


def _noun(row: RunRow) -> str:
    return "draft" if row.draft else "run" if row.directory else "job"


def _rank_of_state(row: RunRow) -> float:
    if row.draft:  # to be gone on with, as what is queued
        return _STATES.index(JobState.QUEUED) + 0.5
    return _STATES.index(row.state) if row.state is not None else len(_STATES)


def _last_finite(values: Sequence[float]) -> float | None:
    return next((value for value in reversed(values) if math.isfinite(value)), None)


def _took(row: RunRow) -> float | None:
    return row.ended - row.started if row.ended is not None and row.started is not None else None
