"""Lines of the batch script and of Ray's head: `ray_bare.sub` and NeMo-RL's `ray.sub`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.logs.clock import iso_time
from launcher.logs.events import (
    DriverEnded,
    Event,
    FindingSeen,
    LauncherEnded,
    MilestoneReached,
    Recovered,
    Role,
    StartRetried,
    UnitsOnline,
)
from launcher.logs.rules import LineRule, MatchedLine, RuleReader, rule
from launcher.logs.signatures import catalogue


@dataclass(slots=True)
class LineTimes:
    """Time of the last line of this log that had one."""

    last: float | None = None
    driver: MatchedLine | None = None
    """The first line of a driver in this log, which is another part's by its name."""

    def of(self, line: MatchedLine) -> float | None:
        """Return a line's own time, else that of the last line with one, else the time it was written."""
        self.last = iso_time(line.match.groupdict().get("time")) or self.last
        return self.last or line.time


_Meaning = Callable[[LineTimes, MatchedLine], Iterator[Event]]
# NeMo-RL, ray.sub: `[NRL_PHASE][time][+seconds] message`; ray_bare.sub prints the same form.
_PHASE = r"\[NRL_PHASE\]\[(?P<time>[^\]]+)\]\[\+-?\d+s\] "


def _reached(identity: str) -> _Meaning:
    def meaning(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
        yield MilestoneReached(identity, line.source, times.of(line))

    return meaning


def _units(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    online, expected = int(line.match["online"] or 0), int(line.match["expected"])
    yield UnitsOnline(online, expected, line.source, times.of(line))


def _units_listed(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    """Yield what a launcher prints that repeats Ray's own count, and says no more when all are there."""
    online, expected = (int(float(line.match[name])) for name in ("online", "expected"))
    yield UnitsOnline(online, expected, line.source, times.of(line))
    if online >= expected > 0:
        yield MilestoneReached("workers-connected", line.source, times.of(line))


def _driver_ended(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    yield DriverEnded(int(line.match["code"]), line.source, times.of(line))


def _launcher_ended(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    yield LauncherEnded(int(line.match["code"]), line.source, times.of(line))


def _error(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    text, time = line.match["text"], times.of(line)
    if catalogue().recognise(line.segment.text) is None:
        yield FindingSeen("launcher-error", text, "fatal", line.segment.text, line.source, time=time)


def _start_retried(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    failed, of = int(line.match["failed"]), int(line.match["of"])
    text = line.segment.text
    yield StartRetried(line.match["node"], failed + 1, of, text, line.source, times.of(line))


def _joined(_: LineTimes, line: MatchedLine) -> Iterator[Event]:
    yield Recovered(line.source)


RULES: tuple[LineRule[LineTimes], ...] = (
    rule("Ray head GCS up", _PHASE + r"Ray head GCS up", _reached("head-up")),
    rule("Ray GCS listening", _PHASE + r"head: Ray GCS listening", _reached("head-up")),
    # Bare in older generations; in NeMo-RL's from July 2026 on with a time, in the head's log.
    rule(
        "All workers connected!",
        r"(?:\[INFO\](?:\[(?P<time>[^\]]*)\])? )?All workers connected!$",
        _reached("workers-connected"),
    ),
    rule(
        "launching driver", _PHASE + r"(?:head: cluster ready, )?launching driver", _reached("driver-started")
    ),
    rule(
        "Number of actors online:",
        r"\[INFO\](?:\[(?P<time>[^\]]*)\])? Number of actors online: (?P<online>\d*)/(?P<expected>\d+)$",
        _units,
    ),
    rule(
        "worker_units: ",
        r"(?:\[[A-Z]+\])?(?:\[(?P<time>\d{4}-[^\]]*)\])? ?(?:\[\d+/\d+\] )?"
        r"worker_units: (?P<online>\d+(?:\.\d+)?) ?/ ?(?P<expected>\d+(?:\.\d+)?)\b",
        _units_listed,
    ),
    rule("driver exited", _PHASE + r"driver exited \(exit_code=(?P<code>\d+)\)", _driver_ended),
    rule(
        " exiting (exit_code=", _PHASE + r"ray\w*\.sub exiting \(exit_code=(?P<code>\d+)\)", _launcher_ended
    ),
    rule(
        "starting it again",
        r"\[WARNING\](?:\[(?P<time>[^\]]*)\])? Ray on (?P<node>\S+) did not register in time "
        r"\(try (?P<failed>\d{1,6}) of (?P<of>\d{1,6})\); starting it again$",
        _start_retried,
    ),
    rule("[ERROR]", r"\[ERROR\](?:\[(?P<time>[^\]]*)\])? (?P<text>\S.*)$", _error),
)
# `ray start` prints this when the head's processes are up; older launchers print no phase of their own.
HEAD_RULES: tuple[LineRule[LineTimes], ...] = (
    *RULES,
    rule("Ray runtime started.", r"Ray runtime started\.$", _reached("head-up")),
)


# A worker's script restarts Ray until this is printed.
WORKER_RULES: tuple[LineRule[LineTimes], ...] = (
    *RULES,
    rule("Ray runtime started.", r"Ray runtime started\.$", _joined),
)


ROLE_RULES = {
    Role.SLURM: RULES,
    Role.COMPANION: RULES,
    Role.HEAD: HEAD_RULES,
    Role.WORKER: WORKER_RULES,
}
"""Rules for the logs of each part but the driver."""


def launcher_reader(log: str, role: Role) -> RuleReader[LineTimes]:
    """Return a reader for the log of a batch script, a head or a worker."""
    return RuleReader(log, role, ROLE_RULES[role], LineTimes())
