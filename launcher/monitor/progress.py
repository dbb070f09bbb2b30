"""Pace of a run, the time it still needs, and the usual time of its phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from launcher.durations import in_words, moment
from launcher.logs.events import PhaseBegan

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


def phase_with_usual_time(phase: PhaseBegan | None, metrics: Mapping[str, Mapping[int, float]]) -> str:
    """Return a phase in words, since when, and how long it took before, as far as that is known."""
    if phase is None:
        return ""
    since = f" since {moment(phase.time)}" if phase.time is not None else ""
    times = list(metrics.get(f"{phase.phase}_time_s", {}).values())
    usual = f" (before, this took {in_words(median(times))})" if times else ""
    return f"{phase.in_words()}{since}{usual}"
