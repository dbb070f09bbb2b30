"""A machine that the app works on, as its screens see it, and how the connection to it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from recipes.errors import ExplainedError
from tui.formatting import duration

if TYPE_CHECKING:
    from launcher.runs import RunStore
    from launcher.transports.base import Transport


@dataclass(frozen=True, slots=True)
class LineState:
    """How the connection to a host is."""

    host: str
    kind: Literal["connecting", "asking", "up", "lost", "refused"]
    last_data: float | None = None
    """When the last answer came, in seconds since the epoch; None before the first."""
    next_attempt_s: float = 0.0
    problem: str = ""
    refusal: ExplainedError | None = None

    def in_words(self, now: float) -> str:
        """Return what a screen says of it; nothing of a connection that is up."""
        match self.kind:
            case "up":
                return ""
            case "connecting":
                return f"connecting to {self.host} …"
            case "asking":
                return f"{self.host} asks a question before it lets you in"
            case "refused":
                return f"not connected: {self.problem}"
            case "lost":
                return self._lost_in_words(now)

    def in_brief(self, now: float) -> str:
        """Return the same without the reason, for a title line."""
        match self.kind:
            case "refused":
                return f"not connected to {self.host}"
            case "lost":
                return self._reconnecting(now)
            case _:
                return self.in_words(now)

    def _reconnecting(self, now: float) -> str:
        data = ""
        if self.last_data is not None:
            data = f" (last data {duration(max(now - self.last_data, 0.0), tenths=False)} ago)"
        return f"reconnecting to {self.host}{data}"

    def _lost_in_words(self, now: float) -> str:
        wait = f"; next attempt in {self.next_attempt_s:.0f} s" if self.next_attempt_s >= 1 else ""
        return self._reconnecting(now) + f": {self.problem}{wait}" * bool(self.problem)


class WorkMachine(Protocol):
    """A machine with runs and recipes; what reaches it may wait, and is called on threads."""

    @property
    def name(self) -> str:
        """Name of the host as the user gives it; empty for this machine."""
        ...

    def transport(self) -> Transport:
        """Return a new transport to it.

        Raises:
            InputError: the name or its configuration is invalid.
            TransportError: it cannot be reached, or does not let the user in.
        """
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the user's shell there."""
        ...

    def path(self, text: str) -> Path:
        """Return a path there."""
        ...

    def store_at(self, root: str) -> RunStore:
        """Return the store of the runs below a directory there, which need not be the user's own."""
        ...

    def state(self) -> LineState | None:
        """Return how the connection is, without waiting; None for this machine."""
        ...
