"""Durations and time limits: as Slurm writes them, and as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.durations import DurationError, format_time_limit, in_words, parse_duration, parse_time_limit


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


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("0:5", "0:5 is 5 seconds in Slurm: write 5m or 00:05:00"),
        ("0:30", "0:30 is 30 seconds in Slurm: write 30m or 00:30:00"),
        ("00:30", "00:30 is 30 seconds in Slurm: write 30m or 00:30:00"),
        ("2:30", "2:30 is 2 minutes 30 seconds in Slurm: write 2h30 or 02:30:00"),
        ("2:3", "2:3 is 2 minutes 3 seconds in Slurm: write 2h03 or 02:03:00"),
        ("1:01", "1:01 is 1 minute 1 second in Slurm: write 1h01 or 01:01:00"),
        ("0:90", "0:90 is 90 seconds in Slurm: write 1h30 or 01:30:00"),
        ("4:0", "4:0 is 4 minutes in Slurm: write 4h or 04:00:00"),
    ],
)
def test_two_parts_with_seconds_are_asked_back(text: str, answer: str) -> None:
    with pytest.raises(DurationError) as error:
        parse_time_limit(text)
    assert str(error.value) == answer


@given(hours=st.integers(0, 99), minutes=st.integers(1, 59), padded=st.booleans())
def test_what_is_offered_instead_means_hours_and_minutes(hours: int, minutes: int, padded: bool) -> None:
    text = f"{hours:02d}:{minutes:02d}" if padded else f"{hours}:{minutes}"
    with pytest.raises(DurationError) as error:
        parse_time_limit(text)
    short, long = str(error.value).partition("write ")[2].split(" or ")
    assert parse_time_limit(short) == parse_time_limit(long) == hours * 3600 + minutes * 60


@pytest.mark.parametrize("text", ["0:00", "00:00"])
def test_no_time_at_all_is_no_ambiguity(text: str) -> None:
    with pytest.raises(DurationError, match="invalid time limit"):
        parse_time_limit(text)


@given(seconds=st.integers(1, 40 * 86400))
def test_a_time_limit_is_read_as_it_is_written(seconds: int) -> None:
    assert (
        parse_time_limit(format_time_limit(seconds)) == parse_duration(format_time_limit(seconds)) == seconds
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"), (8.24, "8.24 s"), (99, "99 s"), (100, "2 min"), (7000, "117 min"), (7200, "2 h"),
        (7830, "2 h 10 min"), (86400, "24 h"), (172799, "2 d"), (273600, "3 d 4 h"),
    ],
)  # fmt: skip
def test_a_span_of_time_in_a_sentence(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
