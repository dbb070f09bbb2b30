"""Order of findings in time, across logs in which only some lines have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launcher.logs.events import FindingSeen, Role, Source

_ROLE_ORDER = {role: index for index, role in enumerate(Role)}
_RELAY_S = 90.0
"""Ray relays a line up to about a minute late, so a cause may have a later time than its consequence."""
ENDS = frozenset({"slurm-timeout", "slurm-preempt"})
"""Failures after these are their consequences."""


def source_order(source: Source) -> tuple[int, str, int]:
    """Return a sort key for sources: by role, log and line, whichever log was read first."""
    return (_ROLE_ORDER[source.role], source.log, source.line)


class Chronology:
    """Times of findings. One without a time has that of the last timed one before it in its log."""

    def __init__(self, findings: Sequence[FindingSeen]) -> None:
        self._times: dict[Source, float] = {}
        by_log: dict[str, list[FindingSeen]] = {}
        for item in findings:
            by_log.setdefault(item.source.log, []).append(item)
        for items in by_log.values():
            items.sort(key=lambda item: item.source.line)
            times = [item.stamp for item in items if item.stamp is not None]
            if not times:
                continue
            time = times[0]
            for item in items:
                time = item.stamp if item.stamp is not None else time
                self._times[item.source] = time

    def time(self, item: FindingSeen) -> float | None:
        """Return the time of a finding; None where its log holds no times."""
        return self._times.get(item.source)

    def key(self, item: FindingSeen) -> tuple[bool, float, tuple[int, str, int]]:
        """Return a sort key: by time, findings without a time last, then by source."""
        time = self.time(item)
        return (time is None, time or 0.0, source_order(item.source))

    def explains(self, cause: FindingSeen, other: FindingSeen, graph: Mapping[str, frozenset[str]]) -> bool:
        """Return True if `other` is a consequence of `cause`."""
        if cause is other:
            return False
        first, second = self.time(cause), self.time(other)
        if first is not None and second is not None and first != second:
            if cause.id in ENDS and first < second:
                return True
            if other.id in ENDS and second < first:
                return False
        if other.id not in graph.get(cause.id, ()):
            return False
        same_log = cause.source.log == other.source.log
        if cause.tier > other.tier:  # a weak finding explains a strong one only where it is certainly earlier
            if first is not None and second is not None and first != second:
                return first < second
            return same_log and cause.source.line < other.source.line
        if first is not None and second is not None and first > second + _RELAY_S:
            return False
        mutual = cause.id in graph.get(other.id, ())
        return not mutual or self.key(cause) < self.key(other)
