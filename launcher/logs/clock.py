"""When a log's bytes were written.

Most log lines carry no time. `ray_bare.sub` notes the sizes of the logs every few seconds in `log-clock.tsv`,
so that each line has a time, also in a copy of the logs that is read much later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from launcher.logs.lines import LineSplitter


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
            sizes = self._sizes.setdefault(name, [])
            if sizes and size < sizes[-1]:  # the log began anew
                sizes.clear()
                self._times[name] = []
            sizes.append(size)
            self._times.setdefault(name, []).append(time)

    def time_of(self, name: str, offset: int) -> float | None:
        """Return when the byte at `offset` was there at the latest; None where the clock does not reach."""
        sizes = self._sizes.get(name)
        if sizes is None:
            return None
        place = bisect_right(sizes, offset)
        return self._times[name][place] if place < len(sizes) else None

    def ticks(self, name: str, size: int) -> Iterator[tuple[float, int]]:
        """Yield when a log was noted, and its size then; of sizes up to `size`."""
        for moment, noted in zip(self._times.get(name, ()), self._sizes.get(name, ()), strict=True):
            if noted > size:
                return
            yield moment, noted
