"""Secrets in a text: where they are, and the text without them.

    find_secrets(text, values)        spans of secrets, by the rules of `secret_rules` and by known values
    without_secrets(text, values)     the text with a mark for each

A secret that escape sequences, control or invisible characters cut into pieces is found as one: they are
taken out before the search, and belong to what is removed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from recipes.printable import INVISIBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_SHORT = 8
"""Characters below which a known value counts only as a word of its own."""
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_INTERRUPTION = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]{0,4000}(?:\x07|\x1b\\|\x9c)?"
    rf"|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{INVISIBLE}]"
)
_UNSAFE = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{INVISIBLE}]")


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """Place of a secret in a text."""

    start: int
    stop: int
    kind: str
    """Kind, or the name of the variable that has the value."""
    is_value: bool = False
    """Whether it is a known value."""


def find_secrets(
    text: str, values: Sequence[tuple[str, str]] = (), *, broad: bool = False
) -> list[SecretSpan]:
    """Return the secrets of a text in order, without overlaps.

    Args:
        text: Any text.
        values: Known secret values with their names, the longest first.
        broad: Whether to find rather too much than too little.
    """
    if (text.isascii() and text.isprintable()) or _UNSAFE.search(text) is None:
        return _merged(_spans(text, values, broad=broad))
    starts, pieces, position = [0], [], 0
    removed = [0]
    for match in _INTERRUPTION.finditer(text):
        pieces.append(text[position : match.start()])
        starts.append(starts[-1] + match.start() - position)
        removed.append(removed[-1] + match.end() - match.start())
        position = match.end()
    pieces.append(text[position:])

    def original(offset: int) -> int:
        return offset + removed[bisect_right(starts, offset) - 1]

    spans = _merged(_spans("".join(pieces), values, broad=broad))
    return [
        SecretSpan(original(span.start), original(span.stop - 1) + 1, span.kind, span.is_value)
        for span in spans
    ]


def without_interruptions(text: str) -> str:
    """Return a text without what may cut a secret into pieces: escape sequences, invisible characters."""
    return _INTERRUPTION.sub("", text)


def without_secrets(
    text: str,
    values: Sequence[tuple[str, str]] = (),
    mark: Callable[[SecretSpan], str] | None = None,
    *,
    broad: bool = False,
    keep_lines: bool = False,
) -> str:
    """Return a text with a mark for each secret; by default «NAME» of a value, «removed: KIND» of others.

    `keep_lines`: the text keeps its number of lines, also where a secret goes over several.
    """
    spans = find_secrets(text, values, broad=broad)
    if not spans:
        return text
    parts, position = [], 0
    for span in spans:
        parts += [text[position : span.start], (mark or _named)(span)]
        if keep_lines:
            parts.append("\n" * text.count("\n", span.start, span.stop))
        position = span.stop
    return "".join([*parts, text[position:]])


def hidden(text: str, values: Sequence[tuple[str, str]] = ()) -> str:
    """Return a text with dots in the place of each secret's characters: positions stay what they are."""
    spans = find_secrets(text, values)
    for span in spans:
        text = text[: span.start] + "•" * (span.stop - span.start) + text[span.stop :]
    return text


def _named(span: SecretSpan) -> str:
    return f"«{span.kind}»" if span.is_value else f"«removed: {span.kind}»"


def _spans(text: str, values: Sequence[tuple[str, str]], *, broad: bool) -> Iterator[SecretSpan]:
    for value, name in values:
        if value in text:
            for match in _pattern(value).finditer(text):
                yield SecretSpan(*match.span(), name, is_value=True)
    if len(text) < _SHORT:
        return
    from recipes.secret_rules import secret_rules

    folded = text.lower()
    if len(folded) != len(text):  # a letter that has two in lower case
        folded = text.translate(_ASCII_LOWER)
    for rule in secret_rules(broad=broad):
        for match in rule.matches(text, folded):
            if rule.is_none is None or not rule.is_none(match):
                yield SecretSpan(*match.span(match.lastgroup or 0), rule.kind)


def _merged(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Return spans in order; of overlapping ones one that covers all, of the kind that begins first."""
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.stop, not span.is_value)):
        if merged and span.start < merged[-1].stop:
            last = merged[-1]
            if span.stop > last.stop:
                merged[-1] = SecretSpan(last.start, span.stop, last.kind, last.is_value)
        else:
            merged.append(span)
    return merged


@lru_cache(maxsize=256)
def _pattern(value: str) -> re.Pattern[str]:
    exact = re.escape(value)
    if len(value) >= _SHORT:
        return re.compile(exact)
    return re.compile(rf"(?<![A-Za-z0-9]){exact}(?![A-Za-z0-9])")
