"""State of a run, apart from the other events, whose import takes 40 ms: a list of runs needs no more."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """State of a run, as displayed and printed."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"
    STOPPED = "stopped"
    """Ended early, after a save, to be resumed."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """True if nothing more will happen."""
        return self in (JobState.COMPLETED, JobState.STOPPED, JobState.FAILED, JobState.CANCELLED)


ENDED_STATES = frozenset(state.value for state in JobState if state.ended)
"""Names of the states in which nothing more will happen."""
