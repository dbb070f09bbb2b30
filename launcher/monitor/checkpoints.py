"""Checkpoints of a run: the last complete one, the next one, and the steps lost by stopping now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.durations import in_words
from launcher.monitor.state import RunState
from launcher.transports.base import Transport


@dataclass(frozen=True, slots=True)
class LossAtRisk:
    """Steps lost by stopping a run now."""

    step: int
    """Finished steps."""
    checkpoint: int | None = None
    """Step of the last complete checkpoint."""
    age_s: float | None = None
    """Age of that checkpoint, in seconds."""

    @property
    def steps(self) -> int:
        """Finished steps that no checkpoint holds."""
        return self.step - (self.checkpoint or 0)

    def in_words(self) -> str:
        """Return the loss as one sentence."""
        if not self.step:
            return "No training step is finished yet."
        if self.checkpoint is None:
            return f"Step {self.step} is done and no checkpoint was saved: all of it would be lost."
        ago = f", saved {in_words(self.age_s)} ago" if self.age_s is not None else ""
        last = f"Step {self.step} is done; the last checkpoint is of step {self.checkpoint}{ago}"
        if self.steps <= 0:
            return f"{last}: no finished step is lost."
        return f"{last}: {self.steps} step{'' if self.steps == 1 else 's'} would be lost."


def complete_checkpoint(state: RunState) -> int | None:
    """Return the step of the last complete checkpoint: one whose step the driver has finished."""
    return max((step for step in state.checkpoints if step <= state.step), default=None)


def saving(state: RunState) -> int | None:
    """Return the step whose checkpoint is being saved now; None if there is none."""
    return max((step for step in state.checkpoints if step > state.step), default=None)


def loss_of(state: RunState, now: float) -> LossAtRisk:
    """Return the steps lost by stopping a run now."""
    checkpoint = complete_checkpoint(state)
    time = state.checkpoints[checkpoint].time if checkpoint is not None else None
    return LossAtRisk(state.step, checkpoint, max(now - time, 0.0) if time is not None else None)


def save_period(transport: Transport, directory: str) -> int | None:
    """Return the number of steps between two checkpoints; 0 if the run saves none, None if unknown.

    Raises:
        InputError: the effective recipe is damaged.
        TransportError: it cannot be read.
    """
    from launcher.runs import effective_values

    if transport.stat(str(Path(directory, "effective.yaml"))) is None:
        return None
    section = effective_values(transport, directory).get("checkpointing")
    if not isinstance(section, Mapping):
        return None
    if section.get("enabled") is False:
        return 0
    period = section.get("save_period")
    return period if isinstance(period, int) and not isinstance(period, bool) else None


def next_checkpoint(state: RunState, period: int | None) -> int | None:
    """Return the step of the next checkpoint; None if unknown."""
    current = saving(state)
    if current is not None:
        return current
    if not period:
        return None
    following = (state.step // period + 1) * period
    return min(following, state.max_steps) if state.max_steps is not None else following
