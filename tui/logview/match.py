"""What a line must show: text, a pattern, a severity, who printed it; for searches and filters."""

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
from tui.logview.line import shown

# Possessive: half the time of what goes back to try less.
_COLOURS = re.compile(rb"\x1b\[[0-?]*+[ -/]*+[@-~]")
_ERROR = re.compile(
    r"\b(?:ERROR|CRITICAL|FATAL|FAILED|Traceback|fatal)\b|\b\w*(?:Error|Exception|Interrupt)\b|\berror:"
    r"|(?:^|\[|\) )[EF]\d{4} \d\d:"
)
_WARNING = re.compile(r"\bWARN(?:ING)?\b|\b\w*Warning\b|\b[Ww]arning:|(?:^|\[|\) )W\d{4} \d\d:")
_ERROR_LITERALS = (b"error", b"critical", b"fatal", b"failed", b"traceback", b"exception", b"interrupt")
_SOURCES = (b".cc:", b".cpp:", b".py:", b".h:")
"""Lines of glog and torch tell their severity by one letter, but all tell the place in the source."""


class TermError(ValueError):
    """What was typed is no term; the message says why."""


class LineFilterTerm(Protocol):
    """Something that a line shows or does not show."""

    @property
    def said(self) -> str:
        """The term as people write it."""
        ...

    @property
    def literals(self) -> tuple[bytes, ...]:
        """A line that holds none of these, in small letters, cannot match; empty where any line could."""
        ...

    def matches(self, raw: bytes, text: str) -> bool:
        """Tell whether a line matches: its bytes, and its text as it is shown."""
        ...


@dataclass(frozen=True, slots=True)
class TextQuery:
    """Text, without regard to case."""

    text: str

    @property
    def said(self) -> str:
        """The text in quotes."""
        return f"“{self.text}”"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """The longest part that is ASCII: bytes are folded for ASCII only."""
        literal = max(re.split(r"[^\x00-\x7f]+", self.text.lower()), key=len)
        return (literal.encode(),) if literal else ()

    def matches(self, raw: bytes, text: str) -> bool:
        """Tell whether the line shows it."""
        return self.text.lower() in text.lower()

    def places(self, line: str) -> list[tuple[int, int]]:
        """Return where it stands in a line as shown: start and end."""
        wanted, folded = self.text.lower(), line.lower()
        if not wanted or len(folded) != len(line):
            return []
        return [(found.start(), found.end()) for found in re.finditer(re.escape(wanted), folded)]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression of Python's, without regard to case unless it holds a capital letter."""

    pattern: str

    @property
    def said(self) -> str:
        """The pattern between slashes."""
        return f"/{self.pattern}/"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Text that stands in whatever the pattern matches, as far as there is any."""
        return _literals_of(self.pattern)

    def matches(self, raw: bytes, text: str) -> bool:
        """Tell whether the pattern matches somewhere in the line."""
        return _compiled(self.pattern).search(text) is not None

    def places(self, line: str) -> list[tuple[int, int]]:
        """Return where it matches in a line as shown: start and end."""
        found = (match.span() for match in _compiled(self.pattern).finditer(line))
        return [(start, stop) for start, stop in found if stop > start]


Query = TextQuery | Pattern
"""What can be searched for, and stands somewhere in a line."""


class Severity(IntEnum):
    """How bad a line says that things are."""

    ANY = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Level:
    """Lines that say of themselves that they are at least this bad."""

    least: Severity

    @property
    def said(self) -> str:
        """What is shown."""
        return "errors" if self.least is Severity.ERROR else "warnings and errors"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Words of which each such line holds one."""
        return _ERROR_LITERALS + _SOURCES + ((b"warn",) if self.least is Severity.WARNING else ())

    def matches(self, raw: bytes, text: str) -> bool:
        """Tell whether the line is as bad."""
        return severity_of(text) >= self.least


@dataclass(frozen=True, slots=True)
class Printed:
    """Lines that a certain process printed, as their Ray or torch prefixes tell."""

    field: str
    """`rank`, `actor`, `pid` or `ip`."""
    value: str

    @property
    def said(self) -> str:
        """As it is typed."""
        return f"{self.field}={self.value}"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """How a prefix says it."""
        value = self.value.lower().encode()
        match self.field:
            case "rank":
                return (b"rank=" + value + b"]", b"[rank" + value + b"]")
            case "actor" if self.value == "none":
                return ()
            case "actor":
                return (value,)
            case _:
                return (self.field.encode() + b"=" + value,)

    def matches(self, raw: bytes, text: str) -> bool:
        """Tell whether it printed a part of the line."""
        found = segments(raw)
        match self.field:
            case "actor" if self.value == "none":
                return not found or any(segment.own for segment in found)
            case "actor":
                wanted = self.value.lower()
                return any(segment.actor is not None and wanted in segment.actor.lower() for segment in found)
            case _:
                return any(str(getattr(segment, self.field)) == self.value for segment in found)


@dataclass(frozen=True, slots=True)
class Not:
    """Lines that something else does not match."""

    term: TextQuery | Pattern | Printed

    @property
    def said(self) -> str:
        """What must not be there."""
        return f"not {self.term.said}"

    @property
    def literals(self) -> tuple[bytes, ...]:
        """None: any line could match."""
        return ()

    def matches(self, raw: bytes, text: str) -> bool:
        """Tell whether the line lacks it."""
        return not self.term.matches(raw, text)


def severity_of(text: str) -> Severity:
    """Return how bad a cleaned line says that things are."""
    if _ERROR.search(text):
        return Severity.ERROR
    return Severity.WARNING if _WARNING.search(text) else Severity.ANY


def parse_query(typed: str) -> Query:
    """Return what was typed into the search field: text, or a pattern between slashes.

    Raises:
        TermError: the pattern is none, or could take for ever.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        check_pattern(typed[1:-1])
        return Pattern(typed[1:-1])
    return TextQuery(typed)


def parse_term(typed: str) -> LineFilterTerm:
    """Return what was typed into the filter field: as for a search, or `rank=3` and the like; `!` means not.

    Raises:
        TermError: it is none of these.
    """
    typed = typed.strip()
    if typed.startswith("!") and len(typed) > 1:
        return Not(_positive(typed[1:].strip()))
    return _positive(typed)


def _positive(typed: str) -> TextQuery | Pattern | Printed:
    if match := re.fullmatch(r"(rank|pid|ip|actor)=(\S+)", typed):
        field, value = match.groups()
        if field in ("rank", "pid") and not value.isdigit():
            raise TermError(f"{field}= wants a number")
        return Printed(field, value)
    if not typed:
        raise TermError("nothing was typed")
    return parse_query(typed)


def check_pattern(pattern: str) -> None:
    """Refuse what is no pattern, and what can take for ever on a single line.

    Raises:
        TermError: says why.
    """
    try:
        re.compile(pattern)
        tree = import_module("re._parser").parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise TermError(f"no pattern: {error}") from error
    if _nested(tree, within=False):
        raise TermError("no repeat may stand within a repeat, as in (a+)+: one line could take for ever")


def _nested(tree: Any, *, within: bool) -> bool:  # noqa: ANN401 - `re` gives its parser no types
    """Tell whether an open repeat holds another one."""
    for name, value in tree:
        repeats = str(name) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[1] > 99
        if repeats and within:
            return True
        parts = value if isinstance(value, (list, tuple)) else (value,)
        for part in parts:
            inner = part if isinstance(part, list) else [part]
            for item in inner:
                if type(item).__name__ == "SubPattern" and _nested(item, within=within or repeats):
                    return True
    return False


@lru_cache(maxsize=64)
def _literals_of(pattern: str) -> tuple[bytes, ...]:
    return _required(import_module("re._parser").parse(pattern))


def _required(tree: Any) -> tuple[bytes, ...]:  # noqa: ANN401 - `re` gives its parser no types
    """Return small ASCII texts of which all that a pattern matches holds one; () where none is known."""
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


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, 0 if any(letter.isupper() for letter in pattern) else re.IGNORECASE)


def matching(data: bytes, terms: Sequence[LineFilterTerm]) -> list[int]:
    """Return the lines of `data`, counted from 0, that match all terms."""
    literals = min((term.literals for term in terms if term.literals), key=len, default=())
    if not literals and terms:
        return _all_matching(data, terms)
    found = []
    for number, raw in _candidates(data, literals) if literals else enumerate(data.split(b"\n")):
        text = shown(raw)
        if all(term.matches(raw, text) for term in terms):
            found.append(number)
    return found


def _all_matching(data: bytes, terms: Sequence[LineFilterTerm]) -> list[int]:
    """Look at every line; most are text as they are, once colours are gone."""
    raws = data.split(b"\n")
    texts = (
        (_COLOURS.sub(b"", data) if b"\x1b" in data else data).decode("utf-8", errors="replace").split("\n")
    )
    found = []
    for number, text in enumerate(texts):
        line = text.rstrip() if text.isprintable() else shown(raws[number])
        if all(term.matches(raws[number], line) for term in terms):
            found.append(number)
    return found


def _candidates(data: bytes, literals: tuple[bytes, ...]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold a literal, with their numbers."""
    coloured = b"\x1b" in data
    folded = (_COLOURS.sub(b"", data) if coloured else data).lower()
    number = counted = position = walked = 0
    for place in _hits(folded, literals):
        if place < counted:
            continue  # the line before held this one too
        number += folded.count(b"\n", counted, place)
        end = folded.find(b"\n", place)
        end = len(folded) if end < 0 else end
        if coloured:  # a place without the colours is none in the data: walk there by lines
            while walked < number:
                position = data.find(b"\n", position) + 1
                walked += 1
            stop = data.find(b"\n", position)
            yield number, data[position : stop if stop >= 0 else len(data)]
        else:
            yield number, data[folded.rfind(b"\n", 0, place) + 1 : end]
        counted = end + 1
        number += 1


def _hits(folded: bytes, literals: tuple[bytes, ...]) -> Iterator[int]:
    """Yield places of the literals, in order; of those in one line, the first at least."""
    if len(literals) > 1:
        finder: Finder = finder_for(literals) if literals[0] in _ERROR_LITERALS else PlainFinder(literals)
        yield from (place for place, _ in finder.places(folded))
        return
    place = folded.find(literals[0])
    while place >= 0:
        yield place
        end = folded.find(b"\n", place)
        place = folded.find(literals[0], end + 1) if end >= 0 else -1
