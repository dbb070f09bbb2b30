"""Kinds of exceptions that have a title and advice of their own, from `kinds.toml`.

Signatures recognise lines wherever they stand; these recognise what a traceback ended in. Their words are
those of many harmless lines as well, so they cost no search, and one that was caught stays no failure. They
explain an exception, and do not choose between exceptions: `launcher.monitor.failure_graph` does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from launcher.logs.signatures import Nature, SuggestedEdit, advice_of


@dataclass(frozen=True, slots=True)
class ExceptionKind:
    """Kind of exception."""

    id: str
    title: str
    patterns: tuple[re.Pattern[str], ...]
    """Each is searched for in the exception's line and the one of its message that explains."""
    fix: str
    edits: tuple[SuggestedEdit, ...]
    nature: Nature
    source: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Return True for an exception of this kind."""
        return any(pattern.search(text) for pattern in self.patterns)


@cache
def exception_kinds() -> dict[str, ExceptionKind]:
    """Return the kinds by id, in the order in which they are tried."""
    tables = tomllib.loads((files(__name__) / "kinds.toml").read_text(encoding="utf-8"))
    return {identity: _kind(identity, table) for identity, table in tables.items()}


def _kind(identity: str, table: Mapping[str, Any]) -> ExceptionKind:
    advice = advice_of(table)
    return ExceptionKind(
        identity,
        table["title"],
        tuple(re.compile(pattern) for pattern in table["match"]),
        advice.fix,
        advice.edits,
        Nature(table.get("nature", "own")),
        tuple(table["source"]),
    )


@lru_cache(1024)
def exception_kind(text: str) -> ExceptionKind | None:
    """Return the first kind that an exception's text is of; None for an unrecognised one."""
    return next((kind for kind in exception_kinds().values() if kind.matches(text)), None)
