"""Time limits as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.clusters.slurm.parse import parse_duration, slurm_time
from launcher.time_limit import TimeLimitError, parse_time_limit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800), ("30:00", 1800), ("4:00:00", 14400), ("04:00:00", 14400), ("1-00", 86400),
        ("1-12:30", 131400), ("1-12:30:15", 131415), ("0:30", 30), (" 8:00 ", 480),
        ("30m", 1800), ("2h", 7200), ("2h30", 9000), ("2h30m", 9000), ("2H30", 9000), ("90s", 90),
        ("1d", 86400), ("1d12h", 129600), ("1d2h3m4s", 93784), ("2h30m15s", 9015), ("1d30m", 88200),
    ],
)  # fmt: skip
def test_notations(text: str, seconds: int) -> None:
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "0", "0:00:00", "0h", "soon", "-5", "1-", "2h3x", "h", "1:2:3:4", "1d30", "2 h", "30m2h",
     "1.5h", "UNLIMITED", "٣", "1" * 5000],
)  # fmt: skip
def test_what_is_no_time_limit(text: str) -> None:
    with pytest.raises(TimeLimitError, match=r"invalid time limit .*expected MM, HH:MM:SS"):
        parse_time_limit(text)


@given(st.integers(1, 100 * 86400))
def test_slurms_notation_is_read_as_slurm_reads_it(seconds: int) -> None:
    assert parse_time_limit(slurm_time(seconds)) == seconds == parse_duration(slurm_time(seconds))


@given(st.integers(0, 30), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_units(days: int, hours: int, minutes: int, seconds: int) -> None:
    numbers = zip((days, hours, minutes, seconds), "dhms", strict=True)
    parts = [f"{number}{unit}" for number, unit in numbers if number]
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if parts:
        assert parse_time_limit("".join(parts)) == total
