"""Pace of a run: median of the last five steps, trend against the five before, and what is left."""

from __future__ import annotations

import pytest

from launcher.monitor.progress import Pace, pace_of


def times(*values: float) -> dict[int, float]:
    return dict(enumerate(values, 1))


def test_no_steps_no_pace() -> None:
    assert pace_of({}, 0, 10) == Pace()


@pytest.mark.parametrize(
    ("steps", "recent", "trend"),
    [
        ((9.0,) * 4, 9.0, None),
        ((100.0, *(8.0,) * 5), 8.0, None),  # five before are needed, and here is one
        ((*(8.0,) * 4, *(10.0,) * 5), 10.0, None),
        ((*(8.0,) * 5, *(10.0,) * 5), 10.0, 0.25),
        ((*(99.0,) * 7, *(8.0,) * 5, *(10.0,) * 5), 10.0, 0.25),  # earlier steps do not count
        ((1.0, 1.0, 20.0, 20.0, 20.0, 5.0, 5.0, 5.0, 1.0, 1.0), 5.0, -0.75),
        ((*(0.0,) * 5, *(10.0,) * 5), 10.0, None),
    ],
)
def test_the_trend_compares_five_steps_with_the_five_before(
    steps: tuple[float, ...], recent: float, trend: float | None
) -> None:
    pace = pace_of(times(*steps), len(steps), None)
    assert (pace.recent_s, pace.trend, pace.eta_s) == (recent, trend, None)


@pytest.mark.parametrize(("left", "fitting"), [(None, None), (-5.0, 0), (9.9, 0), (10.0, 1), (39.0, 3)])
def test_what_is_left(left: float | None, fitting: int | None) -> None:
    pace = pace_of(times(10.0, 10.0, 10.0), 3, 8, left)
    assert (pace.eta_s, pace.fitting) == (50.0, fitting)
    assert pace_of(times(10.0), 9, 8).eta_s == 0
