"""Rules for lines: a literal to search for, a pattern to match, and the events that the match means.

A log's reader passes over its lines once, for its rules and for evidence of failures (`evidence.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from launcher.logs.events import Event, MilestoneReached, Recovered, Role, Source, StepBegan
from launcher.logs.evidence import LITERALS, Evidence, EvidenceMarks
from launcher.logs.lines import RawLine, Segment, segments
from launcher.logs.python_warnings import LITERAL as WARNING

State = TypeVar("State")
_PROGRESS = (StepBegan, MilestoneReached, Recovered)
_EMPTY_LINE = (Segment(""),)
_WARNING_ALONE = frozenset((WARNING,))
_COMBINATIONS = 4096
"""Combinations of literals in one line that are kept with what they mean."""


class MatchedLine(NamedTuple):
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
    meaning: Callable[[State, MatchedLine], Iterable[Event]]
    own: bool = True
    """Match only lines of the process that owns the log, not what Ray forwards from workers."""


def rule(
    literal: str, pattern: str, meaning: Callable[[State, MatchedLine], Iterable[Event]], *, own: bool = True
) -> LineRule[State]:
    """Make a rule from a pattern's text."""
    return LineRule(literal, re.compile(pattern), meaning, own)


class _Literals(NamedTuple, Generic[State]):
    """Literals that a line holds, and what they can mean."""

    rules: tuple[LineRule[State], ...]
    """Those that search for one of them, in their order."""
    marks: EvidenceMarks
    texts: tuple[bytes, ...]
    begins_warning: bool
    """They can mean nothing but a warning of Python."""


class RuleReader(Generic[State]):
    """Reader of a log: by rules, first match wins, and for evidence of failures.

    `state` carries what later lines need from earlier ones.
    """

    def __init__(self, log: str, role: Role, rules: tuple[LineRule[State], ...], state: State) -> None:
        self.log = log
        self.role = role
        self.state = state
        self.evidence = Evidence(role)
        self.awaited = self.evidence.awaited
        self._rules: dict[str, list[tuple[int, LineRule[State]]]] = {}
        for number, item in enumerate(rules):
            self._rules.setdefault(item.literal, []).append((number, item))
        literals = (*(item.literal for item in rules), *LITERALS, *self.evidence.catalogue.literals)
        self._texts = tuple(dict.fromkeys(literals))
        self._literals: dict[tuple[int, ...], _Literals[State]] = {}
        self.literals = tuple(literal.encode() for literal in self._texts)

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        """Yield the events of a line."""
        literals = self._literals.get(key := tuple(hits)) or self._meaning_of(key)
        rules, marks, evidence, data = literals.rules, literals.marks, self.evidence, line.data
        if literals.begins_warning and evidence.postpone_warning(line.number, data):
            return
        if b"\r" in data and evidence.is_idle:
            data = _pieces_with(literals.texts, data)
        source = Source(self.log, self.role, line.number, line.offset)
        for segment in segments(data) or _EMPTY_LINE:
            if evidence.is_text(segment, marks):
                continue
            if rules and (rule_match := _first_match(rules, segment)):
                item, match = rule_match
                for event in item.meaning(self.state, MatchedLine(match, segment, source, time)):
                    if isinstance(event, _PROGRESS):
                        evidence.progressed()
                    yield event
            if evidence.concerns(segment, marks):
                yield from evidence.read(segment, source, time, marks)

    def _meaning_of(self, hits: tuple[int, ...]) -> _Literals[State]:
        """Return what a combination of literals can mean; a log has few of them."""
        numbers = set(hits)
        texts = frozenset(map(self._texts.__getitem__, numbers))
        rules = [item for text in texts if text in self._rules for item in self._rules[text]]
        if len(rules) > 1:
            rules.sort(key=itemgetter(0))
        made = _Literals(
            tuple([item for _, item in rules]), self.evidence.marks(texts),
            tuple(map(self.literals.__getitem__, numbers)), begins_warning=texts == _WARNING_ALONE,
        )  # fmt: skip
        if len(self._literals) >= _COMBINATIONS:
            self._literals.clear()
        self._literals[hits] = made
        return made


def _pieces_with(texts: tuple[bytes, ...], data: bytes) -> bytes:
    """Return a line without the states of a progress bar that hold none of some texts.

    The first piece stays, as it has the carriers' prefixes.
    """
    first, *others = data.split(b"\r")
    if len(texts) == 1:
        (text,) = texts
        return b"\r".join([first, *[piece for piece in others if text in piece]])
    return b"\r".join([first, *(piece for piece in others if any(text in piece for text in texts))])


def _first_match(
    rules: tuple[LineRule[State], ...], segment: Segment
) -> tuple[LineRule[State], re.Match[str]] | None:
    own, text, body = segment.own, segment.text, ""
    for item in rules:
        if item.own and not own:
            continue
        match = item.pattern.match(text)
        if match is None:  # it may have passed through a logger
            body = body or segment.body
            match = item.pattern.match(body) if body != text else None
        if match is not None:
            return item, match
    return None
