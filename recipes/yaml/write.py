"""Writing of values as text that every reader of a recipe reads back as the same typed value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yaml import YAMLError
from yaml.events import AliasEvent, ScalarEvent

from recipes.errors import RecipeError
from recipes.yaml.parser_events import parser_events
from recipes.yaml.scalars import Scalar, Unreadable, read_omegaconf, read_pyyaml, read_ruamel, same

if TYPE_CHECKING:
    from recipes.yaml.layout import Layout

Writable = Scalar | Mapping[Scalar, "Writable"] | Sequence["Writable"]
"""Plain data that can be written into a recipe."""

_EXPONENT = re.compile(r"(-?\d+)(\.\d+)?e([-+]?)0*(\d+)", re.IGNORECASE)
_LINE_BREAKS = re.compile(r"[\r\n\x85\u2028\u2029]")
_NOT_LITERAL = re.compile(r"[\r\t\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff]")
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\0": "\\0",
    "\x1b": "\\e",
    "\x07": "\\a",
    "\x08": "\\b",
}


@dataclass(frozen=True, slots=True)
class Manner:
    """Style of a scalar: inside brackets, as a key, like the old one (its quotes and its text)."""

    flow: bool = False
    key: bool = False
    quotes: str | None = None
    old: str = ""
    spelling: str = ""
    """Text that the user typed: taken if OmegaConf reads it as the value."""


PLAIN = Manner()
FLOW = Manner(flow=True)
KEY = Manner(key=True)
FLOW_KEY = Manner(flow=True, key=True)


def scalar_text(value: Scalar, manner: Manner = PLAIN) -> str:
    """Write a scalar on one line; raises `RecipeError` if no spelling reads back as the value.

    What the user typed needs only OmegaConf's reading; what is chosen here must mean the same to all readers.
    """
    typed = manner.spelling
    keeps_quotes = isinstance(value, str) and manner.quotes is not None and typed[:1] not in ("'", '"')
    if typed and not keeps_quotes and _reads_back(typed, value, manner, (read_omegaconf,)):
        return typed
    for candidate in _candidates(value, manner):
        if _reads_back(candidate, value, manner):
            return candidate
    raise RecipeError(f"No YAML spelling of {value!r} reads back as the same value")


def _candidates(value: Scalar, manner: Manner) -> list[str]:
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        word = "true" if value else "false"
        return [word.capitalize(), word] if manner.old in ("True", "False") else [word]
    if isinstance(value, int):
        return [str(value)]
    if isinstance(value, float):
        return [_float_text(value)]
    return _string_candidates(value, manner)


def _dotted(text: str) -> str:
    """Write 1e-5 as 1.0e-5: PyYAML takes a float for a string without dot and sign."""
    match = _EXPONENT.fullmatch(text)
    return f"{match[1]}{match[2] or '.0'}e{match[3] or '+'}{match[4]}" if match else text


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return _dotted(repr(value))


def _string_candidates(value: str, manner: Manner) -> list[str]:
    single, double = "'" + value.replace("'", "''") + "'", _double_quoted(value)
    one_line = not _LINE_BREAKS.search(value) and value.isprintable()
    candidates = []
    if manner.quotes == "'" and one_line:
        candidates.append(single)
    elif manner.quotes == '"':
        candidates.append(double)
    if one_line and value and value == value.strip() and _may_be_bare(value, tight=manner.flow or manner.key):
        candidates.append(value)
    if one_line and manner.quotes != '"' and ("\\" in value or '"' in value) and "'" not in value:
        candidates.append(single)
    return [*candidates, double]


def _may_be_bare(value: str, *, tight: bool) -> bool:
    """Return whether a string may go without quotes as far as parsers differ.

    libyaml, PyYAML and ruamel.yaml differ on a colon before a bracket or a comma, on tabs, and on a question
    mark in brackets.
    """
    if value.endswith(":") or "\t" in value or value in ("-", "?", ":"):
        return False
    if not tight:
        return True
    if re.search(r"[,\[\]{}?]|:(?![A-Za-z0-9_/])", value):
        return False
    return value[0] not in "?:-" or bool(re.match(r"-[0-9A-Za-z_.]+$", value))


def _double_quoted(value: str) -> str:
    return '"' + "".join(_escaped(character) for character in value) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or (character.isprintable() and character != "\ufeff"):
        return character
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


Typing = Callable[[str], Scalar | Unreadable]
"""Typing of a plain scalar by one reader."""

_ALL_READERS = (read_omegaconf, read_pyyaml, read_ruamel)


def _reads_back(text: str, value: Scalar, manner: Manner, readers: tuple[Typing, ...] = _ALL_READERS) -> bool:
    """Return whether a text in its context is one scalar that the readers type as the value."""
    if manner.flow and manner.key:
        probes = [(f"{{{text}: 0}}", 2, 0), (f"{{{text}: 0, z: 1}}", 4, 0)]
    elif manner.flow:
        probes = [(f"[{text}]", 1, 0), (f"[{text}, 0]", 2, 0), (f"{{k: {text}}}", 2, 1)]
    elif manner.key:
        probes = [(f"{text}: 0 # c", 2, 0)]
    else:
        probes = [(f"k: {text} # c", 2, 1), (f"- {text}", 1, 0)]
    return all(_probe(probe, value, size, index, readers) for probe, size, index in probes)


def _probe(probe: str, value: Scalar, size: int, index: int, readers: tuple[Typing, ...]) -> bool:
    """Return whether a probe is one collection of `size` scalars, the one at `index` being the value."""
    try:
        events = list(parser_events(probe))
    except (YAMLError, ValueError):
        return False
    scalars = [event for event in events if isinstance(event, ScalarEvent | AliasEvent)]
    # Stream, document and collection have a start and an end each.
    if len(events) != len(scalars) + 6 or len(scalars) != size:
        return False
    event = scalars[index]
    if not isinstance(event, ScalarEvent) or event.anchor or event.tag is not None:
        return False
    if event.style:
        return isinstance(value, str) and event.value == value
    return all(same(read(event.value), value) for read in readers)


def flow_text(value: Writable, manner: Manner = FLOW) -> str:
    """Write a value inside brackets, on one line."""
    if isinstance(value, Mapping):
        pairs = [f"{scalar_text(key, FLOW_KEY)}: {flow_text(item)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(flow_text(item) for item in value) + "]"
    return scalar_text(value, manner)


@dataclass(frozen=True, slots=True)
class BlockWriter:
    """Writer of what follows `key:` or `-` in block style, in a file's layout and with its line breaks."""

    layout: Layout
    newline: str
    literal: bool = True
    """False where the text ends without a line break: no literal block may be written there."""

    def after_key(self, value: Writable, column: int, manner: Manner = PLAIN) -> str:
        """Write what follows the ':' of a key that stands at a column."""
        if isinstance(value, Mapping):
            return self._mapping(value, column + self.layout.step) if value else " {}"
        if isinstance(value, Sequence) and not isinstance(value, str):
            return self._sequence(value, column + self.layout.dash) if value else " []"
        if isinstance(value, str) and "\n" in value and manner.quotes != '"' and self.literal:
            literal = self._literal(value, column + self.layout.step)
            if literal is not None:
                return " " + literal
        return " " + scalar_text(value, manner)

    def after_dash(self, value: Writable, column: int, gap: str = " ", manner: Manner = PLAIN) -> str:
        """Write what follows a '-' that stands at a column; `gap` is the space behind it."""
        if isinstance(value, Mapping) and value:
            lines = self._mapping(value, column + 1 + len(gap))
            return gap + lines[len(self.newline) :].lstrip(" ")
        if isinstance(value, Sequence) and not isinstance(value, str):
            return gap + flow_text(value)
        return gap + self.after_key(value, column, manner)[1:]

    def lines_of_mapping(self, value: Mapping[Scalar, Writable]) -> str:
        """Write a mapping at the left margin."""
        return self._mapping(value, 0).removeprefix(self.newline)

    def lines_of_sequence(self, value: Sequence[Writable]) -> str:
        """Write a list at the left margin."""
        return self._sequence(value, 0).removeprefix(self.newline)

    def _mapping(self, value: Mapping[Scalar, Writable], column: int) -> str:
        pad = self.newline + " " * column
        pairs = [
            f"{pad}{scalar_text(key, KEY)}:{self.after_key(item, column)}" for key, item in value.items()
        ]
        return "".join(pairs)

    def _sequence(self, value: Sequence[Writable], column: int) -> str:
        pad = self.newline + " " * column
        return "".join(f"{pad}-{self.after_dash(item, column)}" for item in value)

    def _literal(self, value: str, indent: int) -> str | None:
        """Write a string as a literal block; None if that would not read back or not be readable."""
        body = value.rstrip("\n")
        lines = body.split("\n")
        if not body or _NOT_LITERAL.search(value) or lines[0][:1] in (" ", ""):
            return None
        if any(line != line.rstrip() for line in lines) or not all(line.isprintable() for line in lines):
            return None
        ending = len(value) - len(body)
        header = "|" + ("-", "", "+")[min(ending, 2)]
        text = "".join(self.newline + (" " * indent + line if line else "") for line in lines)
        return header + text + self.newline * max(ending - 1, 0)
