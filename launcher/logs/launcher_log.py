"""Lines of the batch script and of Ray's head: `ray_bare.sub` and NeMo-RL's `ray.sub`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.logs.events import (
    DriverEnded,
    Event,
    FindingSeen,
    LauncherEnded,
    MilestoneReached,
    Recovered,
    Role,
    UnitsOnline,
)
from launcher.logs.rules import LineRule, MatchedLine, RuleReader, rule, stamp
from launcher.logs.signatures import catalogue


@dataclass(slots=True)
class Stamps:
    """The last time that a line of this log told."""

    last: float | None = None

    def of(self, seen: MatchedLine) -> float | None:
        """Return a line's own time, else that of the last line that told one, else when it was written."""
        self.last = stamp(seen.match.groupdict().get("time")) or self.last
        return self.last or seen.time


_Meaning = Callable[[Stamps, MatchedLine], Iterator[Event]]
# NeMo-RL, ray.sub: `[NRL_PHASE][time][+seconds] message`; ray_bare.sub prints the same form.
_PHASE = r"\[NRL_PHASE\]\[(?P<time>[^\]]+)\]\[\+-?\d+s\] "


def _reached(identity: str) -> _Meaning:
    def meaning(stamps: Stamps, seen: MatchedLine) -> Iterator[Event]:
        yield MilestoneReached(identity, seen.source, stamps.of(seen))

    return meaning


def _units(stamps: Stamps, seen: MatchedLine) -> Iterator[Event]:
    online, wanted = int(seen.match["online"] or 0), int(seen.match["wanted"])
    yield UnitsOnline(online, wanted, seen.source, stamps.of(seen))


def _driver_ended(stamps: Stamps, seen: MatchedLine) -> Iterator[Event]:
    yield DriverEnded(int(seen.match["code"]), seen.source, stamps.of(seen))


def _launcher_ended(stamps: Stamps, seen: MatchedLine) -> Iterator[Event]:
    yield LauncherEnded(int(seen.match["code"]), seen.source, stamps.of(seen))


def _error(stamps: Stamps, seen: MatchedLine) -> Iterator[Event]:
    text, time = seen.match["text"], stamps.of(seen)
    if catalogue().recognise(seen.segment.text) is None:
        yield FindingSeen("launcher-error", text, "fatal", seen.segment.text, seen.source, time=time)


def _joined(_: Stamps, seen: MatchedLine) -> Iterator[Event]:
    yield Recovered(seen.source)


RULES: tuple[LineRule[Stamps], ...] = (
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
        r"\[INFO\](?:\[(?P<time>[^\]]*)\])? Number of actors online: (?P<online>\d*)/(?P<wanted>\d+)$",
        _units,
    ),
    rule("driver exited", _PHASE + r"driver exited \(exit_code=(?P<code>\d+)\)", _driver_ended),
    rule(
        " exiting (exit_code=", _PHASE + r"ray\w*\.sub exiting \(exit_code=(?P<code>\d+)\)", _launcher_ended
    ),
    rule("[ERROR]", r"\[ERROR\](?:\[(?P<time>[^\]]*)\])? (?P<text>\S.*)$", _error),
)
# `ray start` prints this when the head's processes are up; older launchers print nothing of their own.
HEAD_RULES: tuple[LineRule[Stamps], ...] = (
    *RULES,
    rule("Ray runtime started.", r"Ray runtime started\.$", _reached("head-up")),
)


# A worker's script starts Ray anew until this is printed.
WORKER_RULES: tuple[LineRule[Stamps], ...] = (
    *RULES,
    rule("Ray runtime started.", r"Ray runtime started\.$", _joined),
)


def launcher_reader(log: str, role: Role) -> RuleReader[Stamps]:
    """Return a reader for a batch script's, a head's or a worker's log."""
    rules = {Role.HEAD: HEAD_RULES, Role.WORKER: WORKER_RULES}.get(role, RULES)
    return RuleReader(log, role, rules, Stamps())
