"""Pace of a run, and the time it still needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

_RECENT = 5


@dataclass(frozen=True, slots=True)
class Pace:
    """Times of steps, in seconds; None if there are too few."""

    recent_s: float | None = None
    """Median of the last five steps."""
    trend: float | None = None
    """Recent steps relative to the five before them: 0.1 means a tenth slower."""
    eta_s: float | None = None
    """Time until the last step is done."""
    fitting: int | None = None
    """Steps that fit into the remaining time of the allocation."""


def pace_of(
    step_times: Mapping[int, float], step: int, max_steps: int | None, left_s: float | None = None
) -> Pace:
    """Return the pace of a run that is at `step`; `left_s`: remaining time of its allocation."""
    times = [step_times[number] for number in sorted(step_times)]
    if not times:
        return Pace()
    recent = median(times[-_RECENT:])
    before = times[-2 * _RECENT : -_RECENT]
    trend = recent / median(before) - 1 if len(before) == _RECENT and median(before) > 0 else None
    eta = max(0, max_steps - step) * recent if max_steps is not None else None
    fitting = int(max(0.0, left_s) // recent) if left_s is not None and recent > 0 else None
    return Pace(recent, trend, eta, fitting)
