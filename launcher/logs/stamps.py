"""The time that a line tells of itself.

Ray, torch, vLLM, NCCL and Slurm each write it in their own form, mostly without a zone and sometimes without
a year. All are taken as wall-clock time of the cluster, which is what comparing the lines of one run needs.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_FORMS = re.compile(
    r"""
      (?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,6}))?
    | ^\[?[DIWEF](?P<month2>\d\d)(?P<day2>\d\d)\ (?P<time2>\d\d:\d\d:\d\d)(?:\.(?P<fraction2>\d{1,6}))?
    | ^(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\ (?P<month3>\d\d)-(?P<day3>\d\d)\ (?P<time3>\d\d:\d\d:\d\d)
    """,
    re.VERBOSE,
)
_NEAR = 120
"""A stamp stands near the beginning of a line."""


def stamp_of(text: str, year: int) -> tuple[float, int] | None:
    """Return a cleaned line's time in seconds, and its year (`year` where the line tells none)."""
    match = _FORMS.search(text[:_NEAR])
    if match is None:
        return None
    year = int(match["year"] or year)
    month = match["month"] or match["month2"] or match["month3"]
    day = match["day"] or match["day2"] or match["day3"]
    time = match["time"] or match["time2"] or match["time3"]
    fraction = (match["fraction"] or match["fraction2"] or "0")[:6]
    try:
        moment = datetime.fromisoformat(f"{year}-{month}-{day}T{time}").replace(tzinfo=UTC)
    except ValueError:  # digits that are no date
        return None
    return moment.timestamp() + float(f"0.{fraction}"), year


def wall(time: float | None) -> float | None:
    """Return a moment (seconds since the epoch) as wall-clock seconds of this machine's zone."""
    if time is None:
        return None
    local = datetime.fromtimestamp(time).astimezone()
    return time + (local.utcoffset() or local - local).total_seconds()
