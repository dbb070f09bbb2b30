"""Pace of painting what depends on the time: together with a log's lines where these come, else at ticks.

Each paint costs some milliseconds, however little has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TICK_S = 1.0
_WITH_LINES_S = 0.9
"""Least time between two paints of what depends on the time, where it is painted with lines."""
_LINES_SOON_S = 1.25
"""Lines that came so recently come again: a log that grows at each poll is read once in 1.1 s."""


class PaintPace:
    """Decides when to paint what depends on the time."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._painted = self._lines = float("-inf")

    def paint(self) -> None:
        """Note that it is painted."""
        self._painted = self._now()

    def lines_shown(self) -> bool:
        """Note that lines are painted; returns whether to paint the rest with them."""
        self._lines = self._now()
        return self._lines - self._painted >= _WITH_LINES_S

    def tick(self) -> bool:
        """Return whether to paint at a tick: lines that are about to come are waited for, but only once."""
        now = self._now()
        return now - self._lines >= _LINES_SOON_S or now - self._painted >= 1.5 * TICK_S
