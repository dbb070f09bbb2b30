"""The time that a line tells of itself.

Ray, torch, vLLM, NCCL and Slurm each write it in their own form, mostly without a zone and sometimes without
a year. All are taken as wall-clock time of the cluster, which is what comparing the lines of one run needs.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_SHORT = re.compile(
    r"(?:\[?[DIWEF](?=\d{4} )|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) )"
    r"(\d\d)-?(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?"
)
_NEAR = 120
"""A stamp stands near the beginning of a line."""


def stamp_of(text: str, year: int) -> tuple[float, int] | None:
    """Return a cleaned line's time in seconds, and its year (`year` where the line tells none)."""
    if match := _DATE.search(text, 0, _NEAR):
        told, month, day, time, fraction = match.groups()
        year = int(told)
    elif match := _SHORT.match(text):
        month, day, time, fraction = match.groups()
    else:
        return None
    try:
        moment = datetime.fromisoformat(f"{year}-{month}-{day}T{time}").replace(tzinfo=UTC)
    except ValueError:  # digits that are no date
        return None
    return moment.timestamp() + float(f"0.{(fraction or '0')[:6]}"), year


def wall(time: float | None) -> float | None:
    """Return a moment (seconds since the epoch) as wall-clock seconds of this machine's zone."""
    if time is None:
        return None
    local = datetime.fromtimestamp(time).astimezone()
    return time + (local.utcoffset() or local - local).total_seconds()
