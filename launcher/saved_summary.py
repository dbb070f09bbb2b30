"""`summary.json`, the state of a run at its end: its model, and the file.

What a consumer reads has its type or a default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from launcher.errors import InputError, TransportError
from launcher.logs.events import JobState
from launcher.runs import SUMMARY, Run
from launcher.stored import read_stored
from launcher.transports.base import Transport

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


def save_summary(transport: Transport, run: Run, summary: Mapping[str, Any]) -> None:
    """Save a finished run's state; without effect where the directory cannot be written."""
    from recipes.secrets import Mask

    text = json.dumps(Mask.of().data(summary), ensure_ascii=False, indent=1)
    data = f"{text}\n".encode("utf-8", "backslashreplace")  # halves of surrogate pairs become JSON's escapes
    try:
        transport.write_atomic(str(Path(run.directory, SUMMARY)), data)
    except TransportError:
        return


def drop_summary(transport: Transport, run: Run) -> None:
    """Remove the saved state of a run that continues; it is computed again from the logs."""
    path = str(Path(run.directory, SUMMARY))
    if transport.stat(path) is not None:
        transport.remove(path)


def load_summary(transport: Transport, run: Run) -> dict[str, Any] | None:
    """Return the saved state of a finished run, or None."""
    path = Path(run.directory, SUMMARY)
    try:
        if transport.stat(str(path)) is None:
            return None
        return read_stored(transport, path, SavedSummary).as_json()
    except (InputError, TransportError):
        return None  # the state is computed from the logs again
