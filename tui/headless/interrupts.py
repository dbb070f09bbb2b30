"""Signals that are noted instead of raised."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupts:
    """Notes ctrl-c and SIGTERM, so that none is lost between starting something and knowing of it."""

    def __init__(self) -> None:
        self.got = 0
        """Number of the first signal that came; 0 for none."""

    def __enter__(self) -> Interrupts:
        """Take over the signals."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Let the signals end the process again."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.got = self.got or number
