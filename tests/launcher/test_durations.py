"""Durations and time limits: as Slurm writes them, and as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.durations import DurationError, format_time_limit, parse_duration, parse_time_limit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800), ("30:00", 1800), ("4:00:00", 14400), ("1-00", 86400), ("1-2:30", 95400),
        ("30m", 1800), ("2h", 7200), ("2h30", 9000), ("2h30m", 9000), ("1d", 86400), ("1d12", 129600),
        ("90s", 90), ("5m30", 330), (" 2H ", 7200), ("2h 30m", 9000), ("1-00:00:00", 86400),
    ],
)  # fmt: skip
def test_time_limits_as_people_type_them(text: str, seconds: int) -> None:
    assert parse_time_limit(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "soon", "UNLIMITED", "-3", "1x", "m30", "2h3h", "30m2h", "5s3", "1:2:3:4", "٣٠m", "²"]
)
def test_texts_that_are_no_time_limit(text: str) -> None:
    with pytest.raises(DurationError, match="invalid time limit"):
        parse_time_limit(text)


@given(seconds=st.integers(1, 40 * 86400))
def test_a_time_limit_is_read_as_it_is_written(seconds: int) -> None:
    assert (
        parse_time_limit(format_time_limit(seconds)) == parse_duration(format_time_limit(seconds)) == seconds
    )
