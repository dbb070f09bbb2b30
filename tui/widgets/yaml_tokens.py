"""Tokens of YAML text, line by line, for highlighting. Wrong YAML is coloured as far as it goes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple


class Token(NamedTuple):
    """A coloured part of a line: its columns and its kind."""

    start: int
    end: int
    kind: str


class ScanState(NamedTuple):
    """What the lines above leave open: a quote, or a block scalar by the indentation of its parent."""

    quote: str = ""
    block: int = -1


KINDS = ("key", "string", "number", "word", "comment", "anchor", "reference", "mark")
_PIECE = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>(?:(?<=\s)|^)\#.*)
    | (?P<reference>\$\{[^}]*\}?)
    | (?P<key>(?:
            "(?:[^"\\]|\\.)*" | '(?:[^']|'')*'
          | [^\s\#\[\]{},&*!|>'"%@`?:-][^\#\[\]{},]*? | -[^\s][^\#\[\]{},]*?
        )(?=\s*:(?:\s|$)))
    | (?P<anchor>[&*!][^\s,\[\]{}]*)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')
    | (?P<quote>["'].*)
    | (?P<block>[|>][+\-0-9]*(?=\s*(?:\#.*)?$))
    | (?P<mark>-(?=\s|$)|:(?=\s|$)|[\[\]{},?])
    | (?P<number>[-+]?(?:
            0x[\da-f]+ | \d[\d_]*\.?\d*(?:e[-+]?\d+)? | \.\d+(?:e[-+]?\d+)? | \.inf | \.nan
        )(?=\s*(?:$|[,\]}])|\s+\#))
    | (?P<word>(?:true|false|null|yes|no|on|off|~)(?=\s*(?:$|[,\]}]|\s\#)))
    | (?P<text>[^\s,\[\]{}$:]+|.)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_OF_GROUP = {"quote": "string", "block": "mark", "text": "", "space": ""}
_LONGEST = 2000
"""Characters of a line that are coloured."""


@lru_cache(maxsize=8192)
def scan_line(line: str, state: ScanState = ScanState()) -> tuple[tuple[Token, ...], ScanState]:  # noqa: B008 - immutable
    """Return a line's tokens, and the state for the next line."""
    indent = len(line) - len(line.lstrip(" "))
    if state.block >= 0:
        if not line.strip() or indent > state.block:
            return (Token(0, len(line), "string"),), state
        state = ScanState()
    tokens: list[Token] = []
    at = 0
    if state.quote:
        at = _quote_end(line, state.quote, 0)
        tokens.append(Token(0, at if at >= 0 else len(line), "string"))
        if at < 0:
            return tuple(tokens), state
    return _scan(line, at, indent, tokens)


def _scan(line: str, at: int, indent: int, tokens: list[Token]) -> tuple[tuple[Token, ...], ScanState]:
    after = ScanState()
    stop = min(len(line), _LONGEST)
    while at < stop:
        match = _PIECE.match(line, at)
        if match is None:
            break
        group = match.lastgroup or "text"
        kind = _OF_GROUP.get(group, group)
        if group == "quote":
            after = ScanState(quote=match[0][0])
        elif group == "block":
            after = ScanState(block=indent)
        if kind:
            tokens.append(Token(match.start(), match.end(), kind))
        at = match.end()
    return tuple(tokens), after


def _quote_end(line: str, quote: str, at: int) -> int:
    """Return the column behind the closing quote, -1 if the line has none."""
    if quote == "'":
        match = re.compile(r"(?:[^']|'')*'(?!')").match(line, at)
    else:
        match = re.compile(r'(?:[^"\\]|\\.)*"').match(line, at)
    return match.end() if match is not None else -1
