"""Rules for lines: a literal to search for, a pattern to match, and the events that the match means.

A log's reader passes over its lines once, for its rules and for evidence of failures (`evidence.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, TypeVar

from launcher.logs.events import Event, MilestoneReached, Recovered, Role, Source, StepBegan
from launcher.logs.evidence import LITERALS, Evidence
from launcher.logs.lines import RawLine, Segment, segments

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """Line that a rule matched."""

    match: re.Match[str]
    segment: Segment
    source: Source
    time: float | None


@dataclass(frozen=True, slots=True)
class LineRule(Generic[State]):
    """Rule for one kind of line. The pattern is matched at the start of a cleaned segment."""

    literal: str
    """Text in every line of this kind; at least six characters, or the search hits too many lines."""
    pattern: re.Pattern[str]
    meaning: Callable[[State, MatchedLine], Iterator[Event]]
    own: bool = True
    """Match only lines of the process that owns the log, not what Ray forwards from workers."""


def rule(
    literal: str, pattern: str, meaning: Callable[[State, MatchedLine], Iterator[Event]], *, own: bool = True
) -> LineRule[State]:
    """Make a rule from a pattern's text."""
    return LineRule(literal, re.compile(pattern), meaning, own)


class RuleReader(Generic[State]):
    """Reader of a log: by rules, first match wins, and for evidence of failures.

    `state` carries what later lines need from earlier ones.
    """

    def __init__(self, log: str, role: Role, rules: tuple[LineRule[State], ...], state: State) -> None:
        self.log = log
        self.role = role
        self.state = state
        self.evidence = Evidence(role)
        literals = (*(item.literal for item in rules), *LITERALS, *self.evidence.catalogue.literals)
        self._rules_by_literal: dict[str, list[tuple[int, LineRule[State]]]] = {}
        for order, item in enumerate(rules):
            self._rules_by_literal.setdefault(item.literal, []).append((order, item))
        self._literals = tuple(dict.fromkeys(literals))
        self.literals = tuple(literal.encode() for literal in self._literals)

    def awaited(self, number: int) -> tuple[bytes, ...]:
        """Return what marks the lines of an open traceback, warning or script; see `Reader`."""
        return self.evidence.awaited(number)

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        """Yield the events of a line."""
        literals = {self._literals[number] for number in hits}
        ruled = not literals.isdisjoint(self._rules_by_literal)
        source = Source(self.log, self.role, line.number, line.offset)
        for segment in segments(line.data) or (Segment(""),):
            if self.evidence.is_text(segment, literals):
                continue
            if ruled:
                for event in self._apply(segment, source, time, literals):
                    if isinstance(event, (StepBegan, MilestoneReached, Recovered)):
                        self.evidence.progressed()
                    yield event
            yield from self.evidence.read(segment, source, time, literals)

    def _apply(
        self, segment: Segment, source: Source, time: float | None, literals: Collection[str]
    ) -> Iterator[Event]:
        own, text, body = segment.own, segment.text, ""
        rules = self._rules_by_literal
        entries = [entry for literal in literals if literal in rules for entry in rules[literal]]
        if len(entries) > 1:
            entries.sort(key=itemgetter(0))
        for _, item in entries:
            if item.own and not own:
                continue
            match = item.pattern.match(text)
            if match is None:  # it may have passed through a logger
                body = body or segment.body
                match = item.pattern.match(body) if body != text else None
            if match is not None:
                yield from item.meaning(self.state, MatchedLine(match, segment, source, time))
                return
