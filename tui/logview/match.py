"""Conditions on a line, for searches and filters: text, pattern, severity, or the process that printed it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

from launcher.logs.lines import segments
from launcher.logs.search import Finder, PlainFinder, finder_for
from tui.logview.line import display_text
from tui.logview.linear_pattern import LONGEST, PatternError, linear_pattern

# Possessive: half the time of a pattern that backtracks.
_COLOURS = re.compile(rb"\x1b\[[0-?]*+[ -/]*+[@-~]")
_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|FAILED|Traceback|fatal)\b|\b\w*(?:Error|Exception|Interrupt)\b|\berror:"
    r"|(?:^|\[|\) )[EF]\d{4} \d\d:"
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\b\w*Warning\b|\b[Ww]arning:|(?:^|\[|\) )W\d{4} \d\d:")
_ERROR_LITERALS = (b"error", b"critical", b"fatal", b"failed", b"traceback", b"exception", b"interrupt")
_SOURCE_SUFFIXES = (b".cc:", b".cpp:", b".py:", b".h:")
"""Lines of glog and torch give their severity as one letter, but all of them name a source file."""
_RANK_FORMS = (b"rank=%b", b"[rank%b]", b"[rank: %b]", b",%b]<std", b"[%b] ")
"""Prefixes that name a rank: of Ray and vLLM, torch, Lightning, mpirun, and MPICH's launcher."""


class TermError(ValueError):
    """Invalid search or filter term; the message gives the reason."""


class LineFilterTerm(Protocol):
    """A condition that a line meets or does not meet."""

    @property
    def label(self) -> str:
        """The term as it is shown to the user."""
        ...

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Lower-case texts of which every matching line holds one; empty where any line could match."""
        ...

    def matches(self, raw: bytes, text: str) -> bool:
        """Return whether a line matches, given its bytes and its text as it is shown."""
        ...


@dataclass(frozen=True, slots=True)
class TextQuery:
    """Text, ignoring case."""

    text: str

    @property
    def label(self) -> str:
        """The text in quotes."""
        return f"“{self.text}”"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """The longest ASCII part: bytes are lower-cased for ASCII only."""
        literal = max(re.split(r"[^\x00-\x7f]+", self.text.lower()), key=len)
        return (literal.encode(),) if literal else ()

    def matches(self, raw: bytes, text: str) -> bool:
        """Return whether the line holds the text."""
        return self.text.lower() in text.lower()

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return the start and end of each match in a line as it is shown."""
        text, folded = self.text.lower(), line.lower()
        if not text or len(folded) != len(line):
            return []
        return [match.span() for match in re.finditer(re.escape(text), folded)]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression (RE2's), ignoring case unless it holds a capital letter."""

    pattern: str

    @property
    def label(self) -> str:
        """The pattern between slashes."""
        return f"/{self.pattern}/"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Text that every match of the pattern contains; empty where there is none."""
        return _literals_of(self.pattern)

    def matches(self, raw: bytes, text: str) -> bool:
        """Return whether the pattern matches somewhere in the line."""
        return linear_pattern(self.pattern).matches(text)

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return the start and end of each match in a line as it is shown."""
        return [(start, stop) for start, stop in linear_pattern(self.pattern).spans(line) if stop > start]


Query = TextQuery | Pattern
"""A search term; its matches have positions in the line."""


class Severity(IntEnum):
    """Severity that a line states."""

    ANY = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Level:
    """Lines that state at least a severity."""

    minimum: Severity

    @property
    def label(self) -> str:
        """The level in words."""
        return "errors" if self.minimum is Severity.ERROR else "warnings and errors"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Words of which each such line holds one."""
        return _ERROR_LITERALS + _SOURCE_SUFFIXES + ((b"warn",) if self.minimum is Severity.WARNING else ())

    def matches(self, raw: bytes, text: str) -> bool:
        """Return whether the line is at least as severe."""
        return severity_of(text) >= self.minimum


@dataclass(frozen=True, slots=True)
class Printed:
    """Lines that a process printed, by their Ray or torch prefixes."""

    field: str
    """`rank`, `actor`, `pid` or `ip`."""
    value: str

    @property
    def label(self) -> str:
        """As it is typed."""
        return f"{self.field}={self.value}"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """The prefix's forms."""
        value = self.value.lower().encode()
        match self.field:
            case "rank":
                return tuple(form % value for form in _RANK_FORMS)
            case "actor" if self.value == "none":
                return ()
            case "actor":
                return (value,)
            case _:
                return (self.field.encode() + b"=" + value,)

    def matches(self, raw: bytes, text: str) -> bool:
        """Return whether the process printed a part of the line."""
        parts = segments(raw)
        match self.field:
            case "actor" if self.value == "none":
                return not parts or any(segment.own for segment in parts)
            case "actor":
                actor = self.value.lower()
                return any(segment.actor is not None and actor in segment.actor.lower() for segment in parts)
            case _:
                return any(str(getattr(segment, self.field)) == self.value for segment in parts)


@dataclass(frozen=True, slots=True)
class Not:
    """Lines that do not match another term."""

    term: TextQuery | Pattern | Printed

    @property
    def label(self) -> str:
        """The negated term."""
        return f"not {self.term.label}"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Empty: any line could match."""
        return ()

    def matches(self, raw: bytes, text: str) -> bool:
        """Return whether the term does not match."""
        return not self.term.matches(raw, text)


def severity_of(text: str) -> Severity:
    """Return the severity that a cleaned line states."""
    if _ERROR.search(text):
        return Severity.ERROR
    return Severity.WARNING if _WARNING.search(text) else Severity.ANY


def parse_query(typed: str) -> Query:
    """Parse the search field: text, or a pattern between slashes.

    Raises:
        TermError: it is too long, or the pattern is invalid.
    """
    if len(typed) > LONGEST:
        raise TermError(f"longer than {LONGEST:,} characters")
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        check_pattern(typed[1:-1])
        return Pattern(typed[1:-1])
    return TextQuery(typed)


def parse_term(typed: str) -> LineFilterTerm:
    """Parse the filter field: a search term, or `rank=3` and the like; a leading `!` negates.

    Raises:
        TermError: the term is invalid.
    """
    typed = typed.strip()
    if typed.startswith("!") and len(typed) > 1:
        return Not(_positive(typed[1:].strip()))
    return _positive(typed)


def _positive(typed: str) -> TextQuery | Pattern | Printed:
    if match := re.fullmatch(r"(rank|pid|ip|actor)=(\S+)", typed):
        field, value = match.groups()
        if field in ("rank", "pid") and not value.isdigit():
            raise TermError(f"{field}= must be a number")
        return Printed(field, value)
    if not typed:
        raise TermError("the filter is empty")
    return parse_query(typed)


def check_pattern(pattern: str) -> None:
    """Reject a pattern that cannot be used.

    Raises:
        TermError: gives the reason.
    """
    try:
        linear_pattern(pattern)
    except PatternError as error:
        raise TermError(f"invalid pattern: {error}") from error


@lru_cache(maxsize=64)
def _literals_of(pattern: str) -> tuple[bytes, ...]:
    if "[:" in pattern or "\\Q" in pattern:  # means something else to `re`
        return ()
    try:
        return _required(import_module("re._parser").parse(pattern))
    except (re.error, OverflowError, RecursionError):  # RE2's own syntax
        return ()


def _required(tree: Any) -> tuple[bytes, ...]:  # noqa: ANN401 - `re` gives its parser no types
    """Return lower-case ASCII texts of which every match holds one; () where there are none."""
    runs = [""]
    branches: list[tuple[bytes, ...]] = []
    for name, value in tree:
        if str(name) == "LITERAL" and value < 128 and chr(value) != "\n":
            runs[-1] += chr(value).lower()
            continue
        runs.append("")
        if str(name) == "SUBPATTERN":
            branches.append(_required(value[3]))
        elif str(name) == "BRANCH":
            parts = [_required(part) for part in value[1]]
            branches.append(tuple(dict.fromkeys(sum(parts, ()))) if all(parts) else ())
    longest = max(runs, key=len)
    if longest:
        return (longest.encode(),)
    return next((branch for branch in branches if branch), ())


def matching(data: bytes, terms: Sequence[LineFilterTerm]) -> list[int]:
    """Return the lines of `data`, counted from 0, that match all terms."""
    literals = min((term.literals for term in terms if term.literals), key=len, default=())
    if not literals and terms:
        return _all_matching(data, terms)
    numbers = []
    for number, raw in _candidates(data, literals) if literals else enumerate(data.split(b"\n")):
        text = display_text(raw)
        if all(term.matches(raw, text) for term in terms):
            numbers.append(number)
    return numbers


def _all_matching(data: bytes, terms: Sequence[LineFilterTerm]) -> list[int]:
    """Match every line; once colours are removed, most are printable as they are."""
    raws = data.split(b"\n")
    texts = (
        (_COLOURS.sub(b"", data) if b"\x1b" in data else data).decode("utf-8", errors="replace").split("\n")
    )
    numbers = []
    for number, text in enumerate(texts):
        line = text.rstrip() if text.isprintable() else display_text(raws[number])
        if all(term.matches(raws[number], line) for term in terms):
            numbers.append(number)
    return numbers


def _candidates(data: bytes, literals: tuple[bytes, ...]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold a literal, with their numbers."""
    coloured = b"\x1b" in data
    folded = (_COLOURS.sub(b"", data) if coloured else data).lower()
    number = counted = position = skipped = 0
    for offset in _hits(folded, literals):
        if offset < counted:
            continue  # in the same line as the one before
        number += folded.count(b"\n", counted, offset)
        end = folded.find(b"\n", offset)
        end = len(folded) if end < 0 else end
        if coloured:  # offsets without the colours are none in the data: count lines instead
            while skipped < number:
                position = data.find(b"\n", position) + 1
                skipped += 1
            stop = data.find(b"\n", position)
            yield number, data[position : stop if stop >= 0 else len(data)]
        else:
            yield number, data[folded.rfind(b"\n", 0, offset) + 1 : end]
        counted = end + 1
        number += 1


def _hits(folded: bytes, literals: tuple[bytes, ...]) -> Iterator[int]:
    """Yield offsets of the literals, in order; at least the first one of each line."""
    if len(literals) > 1:
        finder: Finder = finder_for(literals) if literals[0] in _ERROR_LITERALS else PlainFinder(literals)
        yield from (offset for offset, _ in finder.hits(folded))
        return
    offset = folded.find(literals[0])
    while offset >= 0:
        yield offset
        end = folded.find(b"\n", offset)
        offset = folded.find(literals[0], end + 1) if end >= 0 else -1
