"""Warnings that Python's `warnings` module prints: a line with file, number and category, then more lines.

The lines below the first hold whatever the warning quotes, such as the exception that a library overcame.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from launcher.logs.lines import Segment, segments
from launcher.logs.tracebacks import BEGIN, Key, key_of

LITERAL = "Warning: "
_FIRST = re.compile(r"(?:\S+|<[^>]+>):\d+: (?:[\w.]+\.)?\w*Warning: (?P<message>.*)")
_FIRST_BYTES = re.compile(rb":\d+: (?:[\w.]+\.)?\w*Warning: (?P<message>.*)")
_CONTINUES = (":", ",", "(")
"""Ends of a first line that the message goes on after."""
_NEAR = 4
"""Lines of a log within which the source line of a warning follows it, among those of other processes."""
_LINES = 12
"""Lines of a process that may belong to one warning."""
_DISTANCE = 200
"""Lines of other processes between those of one warning at most."""


@dataclass(slots=True)
class PythonWarnings:
    """Open warnings of all processes in one log."""

    _last: int = 0
    """Line of the last warning."""
    _left: dict[Key, int] = field(default_factory=dict)
    _postponed: list[tuple[int, bytes]] = field(default_factory=list)
    """Numbers and bytes of lines that began a warning of one line, and were not read."""

    def postpone(self, number: int, raw: bytes) -> bool:
        """Return True if a line that may begin a warning need not be read unless something follows it.

        Most warnings are followed by nothing that matters; to read them would cost a sixth of a dense log.
        """
        match = _FIRST_BYTES.search(raw)
        if match is None:
            return True
        if match["message"].rstrip().decode(errors="replace").endswith(_CONTINUES):
            return False
        self._postponed = [item for item in self._postponed if number - item[0] < _NEAR]
        self._postponed.append((number, raw))
        return True

    def recall(self, number: int) -> None:
        """Read the postponed lines that are near to a line."""
        if not self._postponed:
            return
        postponed, self._postponed = self._postponed, []
        for line, raw in postponed:
            if number - line <= _NEAR:
                for segment in segments(raw):
                    self.take(segment, line, marked=True)

    @property
    def any_open(self) -> bool:
        """True if the next lines may belong to a warning."""
        return bool(self._left)

    @property
    def open_keys(self) -> Collection[Key]:
        """Processes whose next lines may belong to a warning."""
        return self._left

    def take(self, segment: Segment, line: int, marked: bool) -> bool:
        """Read a line; return True if it belongs to a warning. `marked`: it holds `LITERAL`."""
        self.forget_old(line)
        key, text = key_of(segment), segment.body
        if marked:
            self._last = line
        if marked and LITERAL in text and (match := _FIRST.match(text)):
            self._left[key] = _LINES if match["message"].rstrip().endswith(_CONTINUES) else 1
            return True
        left = self._left.get(key)
        if left is None:
            return False
        quoted_source = text.startswith("  ") and not text.startswith("  File ")
        if quoted_source or BEGIN in text or segment.text != text or left <= 1:
            del self._left[key]
            return quoted_source
        self._left[key] = left - 1
        return True

    def forget_old(self, line: int) -> None:
        """Close all warnings if the last one is far above a line: their processes printed nothing more."""
        if self._left and line - self._last > _DISTANCE:
            self._left.clear()
