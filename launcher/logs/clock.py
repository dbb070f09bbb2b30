"""Times of log lines: from the lines' own timestamps, else from the launcher's clock of the logs.

Most log lines carry no time. `ray_bare.sub` records the sizes of the logs every few seconds in
`log-clock.tsv`, so that each line has a time, also in a copy of the logs that is read much later.

Ray, torch, vLLM, NCCL and Slurm each write timestamps in their own form, mostly without a zone and sometimes
without a year. All are taken as wall-clock time of the cluster, which is what comparing the lines of one run
needs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from launcher.logs.lines import LineSplitter, Segment, segments
from launcher.transports.base import FileStat, Transport

CLOCK_NAME = "log-clock.tsv"
LATEST_S = 1e11
"""Latest time that is taken from a clock file: the year 5138."""
MOST_BYTES = 2**60
"""Largest size of a log that is taken from a clock file."""
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_US_DATE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d)")
# glog's month may have no leading zero (c10/util/Logging.cpp writes a number): 218 is 18 February.
_SHORT_DATE = re.compile(
    r"(?:\[?[DIWEFC](?=\d{3,4} )|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) )"
    r"(\d{1,2})-?(\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMED_MONTH = re.compile(
    rf"(?:(\d{{4}}) )?({'|'.join(_MONTHS)}) +(\d{{1,2}}) (\d\d:\d\d:\d\d)(?:\.(\d{{1,9}}))?"
)
_BEFORE_DATES = frozenset("[DIWEFC0123456789JMASON")
"""First characters of the lines that begin with another form of date."""
_SEARCHED_CHARACTERS = 120
"""A timestamp stands near the beginning of a line."""
_CHUNK = 1024 * 1024
_LINE = 64 * 1024
_TIME_OF_DAY = re.compile(rb"\d\d:\d\d:\d\d")
_EVERY_LINE_UP_TO = 8 * 1024 * 1024
"""Of a log up to this size every timestamp counts; of a larger one the first in each block of 64 KiB."""


# ------------------------------------------------------------ the launcher's clock of the logs


@dataclass(slots=True)
class LogClock:
    """Sizes of the logs of one directory over time; fed with the clock file's bytes as they come."""

    _splitter: LineSplitter = field(default_factory=LineSplitter)
    _sizes: dict[str, list[int]] = field(default_factory=dict)
    _times: dict[str, list[float]] = field(default_factory=dict)

    @property
    def offset(self) -> int:
        """Bytes of the clock file taken so far."""
        return self._splitter.offset

    def feed(self, data: bytes) -> None:
        """Take more of the clock file: lines of `epoch seconds`, file name, size, separated by tabs."""
        for line in self._splitter.feed(data):
            parts = line.data.decode("utf-8", errors="replace").split("\t")
            try:
                time, name, size = float(parts[0]), parts[1], int(parts[2])
            except (ValueError, IndexError):
                continue  # a line cut by a full disk says nothing
            if not (0 <= time <= LATEST_S and 0 <= size <= MOST_BYTES):
                continue  # inf, nan, and what no clock shows
            sizes = self._sizes.setdefault(name, [])
            if sizes and size < sizes[-1]:  # the log began anew
                sizes.clear()
                self._times[name] = []
            sizes.append(size)
            self._times.setdefault(name, []).append(time)

    def follow(self, read: Callable[[int, int], bytes], size: int) -> None:
        """Take the clock file up to a size, in pieces; `read` takes an offset and a number of bytes."""
        while self.offset < size and (data := read(self.offset, min(size - self.offset, _CHUNK))):
            self.feed(data)

    def time_of(self, name: str, offset: int) -> float | None:
        """Return the time by which the byte at `offset` was there; None where the clock does not reach."""
        sizes = self._sizes.get(name)
        if sizes is None:
            return None
        index = bisect_right(sizes, offset)
        return self._times[name][index] if index < len(sizes) else None

    def ticks(self, name: str, size: int) -> Iterator[tuple[float, int]]:
        """Yield the recorded times of a log with its size then; of sizes up to `size`."""
        for moment, recorded in zip(self._times.get(name, ()), self._sizes.get(name, ()), strict=True):
            if recorded > size:
                return
            yield moment, recorded


# ------------------------------------------------------------ timestamps in lines


def timestamp(text: str, year: int) -> tuple[float, int] | None:
    """Return a cleaned line's time in seconds, and its year (`year` where the line has none)."""
    fraction = None
    if match := _DATE.search(text, 0, _SEARCHED_CHARACTERS):
        own_year, month, day, time, fraction = match.groups()
        year = int(own_year)
    elif text[:1] not in _BEFORE_DATES:
        return None
    elif match := _SHORT_DATE.match(text):
        month, day, time, fraction = match.groups()
    elif match := _US_DATE.match(text):
        month, day, own_year, time = match.groups()
        year = int(own_year)
    elif match := _NAMED_MONTH.match(text):
        own_year, name, day, time, fraction = match.groups()
        year, month = int(own_year or year), str(_MONTHS.index(name) + 1)
    else:
        return None
    try:
        moment = datetime.fromisoformat(f"{year}-{int(month):02}-{int(day):02}T{time}").replace(tzinfo=UTC)
    except ValueError:  # digits that are no date
        return None
    return moment.timestamp() + float(f"0.{(fraction or '0')[:6]}"), year


def segment_time(segment: Segment, year: int) -> tuple[float, int] | None:
    """Return the time that a line's writer gave it, else the time at which a carrier received it."""
    return timestamp(segment.text, year) or (timestamp(segment.stamp, year) if segment.stamp else None)


def iso_time(text: str | None) -> float | None:
    """Return an ISO 8601 time with a zone as seconds since the epoch; None for any other text."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None


def wall_clock(time: float | None) -> float | None:
    """Return a moment (seconds since the epoch) as wall-clock seconds of this machine's zone."""
    if time is None:
        return None
    local = datetime.fromtimestamp(time).astimezone()
    return time + (local.utcoffset() or local - local).total_seconds()


def timestamped_pieces(transport: Transport, path: str, entry: FileStat) -> Iterator[tuple[float, int]]:
    """Yield, for each piece of a log between two timestamps, its time (epoch seconds) and its end offset.

    What precedes the first timestamp belongs to its piece. A log without timestamps yields nothing; what
    follows the last one is left to the caller.

    Raises:
        TransportError: the log cannot be read.
    """
    year = datetime.fromtimestamp(entry.mtime, tz=UTC).year
    zone_offset = (wall_clock(entry.mtime) or entry.mtime) - entry.mtime
    step = 0 if entry.size <= _EVERY_LINE_UP_TO else _LINE
    latest: float | None = None
    for offset, raw in _lines_with_time(transport, path, entry.size, step):
        stamp = next((stamp for part in segments(raw) if (stamp := segment_time(part, year))), None)
        if stamp is None:
            continue
        moment, year = stamp[0] - zone_offset, stamp[1]
        if latest is not None and moment > latest:
            yield latest, offset
        latest = moment if latest is None else max(latest, moment)
    if latest is not None:
        yield latest, entry.size


def _lines_with_time(transport: Transport, path: str, size: int, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield lines that hold a time of day, and where they begin."""
    position = 0
    while position < size:
        data = transport.read(path, position, min(_CHUNK, size - position))
        whole = data.rfind(b"\n") + 1
        if not whole:
            if not data or position + len(data) >= size:
                return
            whole = len(data)
        index = 0
        while (match := _TIME_OF_DAY.search(data, index, whole)) is not None:
            start = data.rfind(b"\n", 0, match.start()) + 1
            stop = data.find(b"\n", match.end()) + 1 or whole
            yield position + start, data[start : min(stop, start + _LINE)].rstrip(b"\n")
            index = max(stop, start + step)
        position += whole
