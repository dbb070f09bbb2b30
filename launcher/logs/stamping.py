"""The times that the lines of a whole log carry, as far as they carry any."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from launcher.logs.lines import segments
from launcher.logs.stamps import stamp_of, wall
from launcher.transports.base import FileStat, Transport

_CHUNK = 1024 * 1024
_LINE = 64 * 1024
_TIME = re.compile(rb"\d\d:\d\d:\d\d")
_ALL_BELOW = 8 * 1024 * 1024
"""Of a log up to this size every stamp counts; of a larger one the first in each block of 64 KiB."""


def stamped_lines(transport: Transport, path: str, entry: FileStat) -> Iterator[tuple[float, int]]:
    """Yield, for what lies between two stamps, its time (seconds since the epoch) and where it ends.

    What comes before the first stamp counts with it. Nothing comes for a log without stamps; what is behind
    the last one is left to the caller.
    """
    year = datetime.fromtimestamp(entry.mtime, tz=UTC).year
    offset_of_zone = (wall(entry.mtime) or entry.mtime) - entry.mtime
    step = 0 if entry.size <= _ALL_BELOW else _LINE
    moment: float | None = None
    for offset, raw in _timed(transport, path, entry.size, step):
        found = next((stamp for part in segments(raw) if (stamp := stamp_of(part.text, year))), None)
        if found is None:
            continue
        told, year = found[0] - offset_of_zone, found[1]
        if moment is not None and told > moment:
            yield moment, offset
        moment = told if moment is None else max(moment, told)
    if moment is not None:
        yield moment, entry.size


def _timed(transport: Transport, path: str, size: int, step: int) -> Iterator[tuple[int, bytes]]:
    """Yield lines that hold a time of day, and where they begin."""
    position = 0
    while position < size:
        data = transport.read(path, position, min(_CHUNK, size - position))
        whole = data.rfind(b"\n") + 1
        if not whole:
            if not data or position + len(data) >= size:
                return
            whole = len(data)
        place = 0
        while (match := _TIME.search(data, place, whole)) is not None:
            start = data.rfind(b"\n", 0, match.start()) + 1
            stop = data.find(b"\n", match.end()) + 1 or whole
            yield position + start, data[start : min(stop, start + _LINE)].rstrip(b"\n")
            place = max(stop, start + step)
        position += whole
