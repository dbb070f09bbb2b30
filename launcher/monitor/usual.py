"""Usual durations of a recipe: of its milestones and steps in earlier runs of the same size. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from launcher.durations import in_words
from launcher.logs.milestones import MILESTONE_TITLES, MILESTONES

LEAST_RUNS = 1
LONGER = 2.0
"""Times the usual duration at which something takes notably long."""
LONGER_S = 60.0
"""Seconds over the usual duration below which that is no news."""
Durations = Mapping[str, float]
"""Milestone -> seconds since the one before it; `step` -> median seconds of a step."""
_BY_RECIPE = frozenset({"first-validation", "first-checkpoint", "completed"})
"""Milestones whose time depends on the recipe's periods and steps, not on the machine."""


@dataclass(frozen=True, slots=True)
class Usual:
    """Medians over earlier runs."""

    runs: int = 0
    durations: Durations = field(default_factory=dict)

    def expected_s(self, milestone: str) -> float | None:
        """Return the usual seconds until a milestone since the one before it; None where unknown."""
        return self.durations.get(milestone) if self.runs >= LEAST_RUNS else None

    @property
    def step_s(self) -> float | None:
        """The usual seconds of a step; None where unknown."""
        return self.durations.get("step")

    @property
    def setup_s(self) -> float | None:
        """The usual seconds from the job's first sign to the end of the first step; None where unknown."""
        upto = [kind.id for kind in MILESTONES if kind.id not in _BY_RECIPE]
        if "first-step" not in self.durations:
            return None
        return sum(self.durations.get(name, 0.0) for name in upto)

    def longer(self, milestone: str, seconds: float) -> str:
        """Return in words that a milestone took, or takes, notably longer than usual; empty where not."""
        usual = self.expected_s(milestone)
        if usual is None or seconds < max(LONGER * usual, usual + LONGER_S):
            return ""
        title = MILESTONE_TITLES.get(milestone, milestone)
        return f"{title}: {in_words(seconds)}, usually {in_words(usual)}"


def durations_of(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the durations of a run by its summary, a file that may have been edited."""
    milestones = summary.get("milestones")
    times = [
        (item["id"], float(item["time"]))
        for item in (milestones if isinstance(milestones, list) else [])
        if isinstance(item, dict)
        and isinstance(item.get("id"), str)
        and item["id"] in MILESTONE_TITLES
        and isinstance(item.get("time"), int | float)
    ]
    durations = since_previous(times)
    metrics = summary.get("metrics")
    step = metrics.get("step_time_recent_s") if isinstance(metrics, dict) else None
    if isinstance(step, int | float):
        durations["step"] = float(step)
    return durations


def since_previous(times: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return the seconds of each milestone since the one reached before it; of the first there are none."""
    ordered = sorted(times, key=lambda item: item[1])
    pairs = zip(ordered[1:], ordered, strict=False)
    return {name: time - before for (name, time), (_, before) in pairs if name not in _BY_RECIPE}


def usual_of(earlier: Iterable[Durations]) -> Usual:
    """Return the medians over earlier runs; a run without durations does not count."""
    runs = [item for item in earlier if item]
    names = {name for item in runs for name in item}
    return Usual(len(runs), {name: median(item[name] for item in runs if name in item) for name in names})
