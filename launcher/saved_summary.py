"""Model of `summary.json`, the state of a run at its end; what a consumer reads has its type or a default."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from launcher.logs.events import JobState

Seconds = Annotated[float, Field(ge=0, le=1e11)]
"""Seconds since the epoch, in a range that has a date."""
Step = Annotated[int, Field(ge=0, le=10**12)]


class _Saved(BaseModel):
    model_config = ConfigDict(extra="allow")


class SavedMetrics(_Saved):
    """Metrics, as parallel lists."""

    step: Step | None = None
    max_steps: Step | None = None
    loss: list[float | None] = []
    checkpoints: list[Step] = []


class SavedAttempt(_Saved):
    """One attempt of a run."""

    text: str = ""


class SavedSummary(_Saved):
    """State of a run at its end."""

    schema_version: Literal[1] = Field(alias="schema")
    state: JobState = JobState.UNKNOWN
    reason: str = ""
    ended: Seconds | None = None
    metrics: SavedMetrics = SavedMetrics()
    attempts: list[SavedAttempt] = []

    def as_json(self) -> dict[str, Any]:
        """Return the summary as it was saved, with what it lacked."""
        return self.model_dump(mode="json", by_alias=True)
