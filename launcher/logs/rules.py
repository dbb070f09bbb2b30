"""Rules: a literal to find a line by, a pattern to understand it, and what it means.

A log's reader goes over its lines once, for its rules and for evidence of failures (`evidence.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Generic, TypeVar

from launcher.logs.events import Event, MilestoneReached, Recovered, Role, Source, StepBegan
from launcher.logs.evidence import LITERALS, Evidence
from launcher.logs.lines import RawLine, Segment, segments

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """A line that a rule matched."""

    match: re.Match[str]
    segment: Segment
    source: Source
    time: float | None


@dataclass(frozen=True, slots=True)
class LineRule(Generic[State]):
    """Understands one kind of line. The pattern is matched at the start of a cleaned segment."""

    literal: str
    """Stands in every line of this kind; at least six characters, or the search finds too much."""
    pattern: re.Pattern[str]
    meaning: Callable[[State, MatchedLine], Iterator[Event]]
    own: bool = True
    """Only lines of the process that owns the log count, not what Ray forwards from workers."""


def rule(
    literal: str, pattern: str, meaning: Callable[[State, MatchedLine], Iterator[Event]], *, own: bool = True
) -> LineRule[State]:
    """Make a rule from a pattern's text."""
    return LineRule(literal, re.compile(pattern), meaning, own)


class RuleReader(Generic[State]):
    """Reads a log: by rules, first match wins, and for evidence of failures.

    `state` is what later lines need to know of earlier ones.
    """

    def __init__(self, log: str, role: Role, rules: tuple[LineRule[State], ...], state: State) -> None:
        self.log = log
        self.role = role
        self.state = state
        self.evidence = Evidence(role)
        words = (*(item.literal for item in rules), *LITERALS, *self.evidence.known.literals)
        self._by_word: dict[str, list[tuple[int, LineRule[State]]]] = {}
        for order, item in enumerate(rules):
            self._by_word.setdefault(item.literal, []).append((order, item))
        self._words = tuple(dict.fromkeys(words))
        self.literals = tuple(word.encode() for word in self._words)

    @property
    def wants_all(self) -> bool:
        """The lines of a traceback are needed up to its end."""
        return self.evidence.wants_all

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        """Yield what the line tells."""
        words = {self._words[number] for number in hits}
        ruled = not words.isdisjoint(self._by_word)
        source = Source(self.log, self.role, line.number, line.offset)
        for segment in segments(line.data) or (Segment(""),):
            if self.evidence.is_text(segment, words):
                continue
            if ruled:
                for event in self._apply(segment, source, time, words):
                    if isinstance(event, (StepBegan, MilestoneReached, Recovered)):
                        self.evidence.progressed()
                    yield event
            yield from self.evidence.read(segment, source, time, words)

    def _apply(
        self, segment: Segment, source: Source, time: float | None, words: Collection[str]
    ) -> Iterator[Event]:
        own = segment.own
        entries = [entry for word in words if word in self._by_word for entry in self._by_word[word]]
        if len(entries) > 1:
            entries.sort(key=itemgetter(0))
        for _, item in entries:
            if (own or not item.own) and (match := item.pattern.match(segment.text)):
                yield from item.meaning(self.state, MatchedLine(match, segment, source, time))
                return


def stamp(text: str | None) -> float | None:
    """Return the time of an ISO 8601 stamp with a zone, as seconds since the epoch; None if it is not one."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None
