"""Patterns that a user types, matched by RE2: in time that grows with the line only, whatever the pattern.

Python's own `re` tries every way of a match: `(a|aa)+$` or `.*.*.*x` never end on a long line, and hold the
interpreter's lock meanwhile. RE2 has neither look-around nor back-references.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice
from typing import Any

LONGEST = 1000
"""Characters of the longest pattern or text to search for."""
_LARGEST_PROGRAM = 2000
"""Instructions of a compiled pattern: one of these takes 0.15 s for a line of 64 KiB."""
_LINE = 64 * 1024
"""Characters of a line that are searched."""
_PAINTED, _MATCHES = 16 * 1024, 500
"""Characters of a line that is painted, and matches in it: each may have to look at all that follows."""


class PatternError(ValueError):
    """Pattern that cannot be used; the message gives the reason."""


class LinearPattern:
    """A compiled pattern."""

    def __init__(self, compiled: Any) -> None:  # noqa: ANN401 - RE2 ships no types
        self._compiled = compiled

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches somewhere in a line."""
        return self._compiled.search(text[:_LINE]) is not None

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each match in a line."""
        matches = self._compiled.finditer(text[:_PAINTED])
        return (match.span() for match in islice(matches, _MATCHES))


@lru_cache(maxsize=64)
def linear_pattern(pattern: str) -> LinearPattern:
    """Return a pattern compiled; it ignores case unless it holds a capital letter.

    Raises:
        PatternError: it is invalid, too large, or RE2 is not installed.
    """
    if len(pattern) > LONGEST:
        raise PatternError(f"longer than {LONGEST:,} characters")
    try:
        engine = import_module("re2")
    except ImportError:
        raise PatternError("patterns need the package google-re2, which is not installed") from None
    options = engine.Options()
    options.log_errors = False
    options.never_capture = True
    options.case_sensitive = any(letter.isupper() for letter in re.sub(r"\\[A-Za-z]", "", pattern))
    try:
        compiled = engine.compile(pattern, options)
    except (engine.error, UnicodeEncodeError) as error:
        raise PatternError(_reason(error)) from error
    if compiled.programsize > _LARGEST_PROGRAM:
        raise PatternError("its repeats make it too large")
    return LinearPattern(compiled)


def _reason(error: Exception) -> str:
    reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
    if "invalid perl operator" in reason or "invalid escape sequence: \\" in reason:
        reason += " (look-around and back-references are not available)"
    return reason
