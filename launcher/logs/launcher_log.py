"""Lines of the batch script and of Ray's head: `ray_bare.sub` and NeMo-RL's `ray.sub`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from launcher.logs.events import (
    DriverEnded,
    Event,
    FindingSeen,
    LauncherEnded,
    MilestoneReached,
    Role,
    UnitsOnline,
)
from launcher.logs.rules import Rule, RuleReader, Seen, rule, stamp

# NeMo-RL, ray.sub: `[NRL_PHASE][time][+seconds] message`; ray_bare.sub prints the same form.
_Meaning = Callable[[None, Seen], Iterator[Event]]
_PHASE = r"\[NRL_PHASE\]\[(?P<time>[^\]]+)\]\[\+-?\d+s\] "


def _reached(identity: str) -> _Meaning:
    def meaning(_: None, seen: Seen) -> Iterator[Event]:
        time = stamp(seen.match.groupdict().get("time")) or seen.time
        yield MilestoneReached(identity, seen.source, time)

    return meaning


def _units(_: None, seen: Seen) -> Iterator[Event]:
    yield UnitsOnline(int(seen.match["online"] or 0), int(seen.match["wanted"]), seen.source, seen.time)


def _driver_ended(_: None, seen: Seen) -> Iterator[Event]:
    time = stamp(seen.match["time"]) or seen.time
    yield DriverEnded(int(seen.match["code"]), seen.source, time)


def _launcher_ended(_: None, seen: Seen) -> Iterator[Event]:
    time = stamp(seen.match["time"]) or seen.time
    yield LauncherEnded(int(seen.match["code"]), seen.source, time)


def _error(_: None, seen: Seen) -> Iterator[Event]:
    text = seen.match["text"]
    yield FindingSeen("launcher-error", text, "fatal", seen.segment.text, seen.source, time=seen.time)


RULES: tuple[Rule[None], ...] = (
    rule("Ray head GCS up", _PHASE + r"Ray head GCS up", _reached("head-up")),
    rule("Ray GCS listening", _PHASE + r"head: Ray GCS listening", _reached("head-up")),
    rule("All workers connected!", r"All workers connected!$", _reached("workers-connected")),
    rule(
        "launching driver", _PHASE + r"(?:head: cluster ready, )?launching driver", _reached("driver-started")
    ),
    rule(
        "Number of actors online:",
        r"\[INFO\](?:\[[^\]]*\])? Number of actors online: (?P<online>\d*)/(?P<wanted>\d+)$",
        _units,
    ),
    rule("driver exited", _PHASE + r"driver exited \(exit_code=(?P<code>\d+)\)", _driver_ended),
    rule(
        " exiting (exit_code=", _PHASE + r"ray\w*\.sub exiting \(exit_code=(?P<code>\d+)\)", _launcher_ended
    ),
    rule("[ERROR]", r"\[ERROR\](?:\[[^\]]*\])? (?P<text>\S.*)$", _error),
)
# `ray start` prints this when the head's processes are up; older launchers print nothing of their own.
HEAD_RULES: tuple[Rule[None], ...] = (
    *RULES,
    rule("Ray runtime started.", r"Ray runtime started\.$", _reached("head-up")),
)


def launcher_reader(log: str, role: Role) -> RuleReader[None]:
    """Return a reader for a batch script's or a head's log."""
    return RuleReader(log, role, HEAD_RULES if role is Role.HEAD else RULES, None)
