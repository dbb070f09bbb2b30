"""A log into which several parts of a run print: the output file of a plain batch job holds everything.

A log whose name is not a driver's is read as what its name says, until a line of a driver is in it. From then
on it counts as the driver's log, and is read from its beginning for all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from launcher.logs.driver_log import RULES as DRIVER_RULES
from launcher.logs.driver_log import DriverProgress
from launcher.logs.events import Event, Role
from launcher.logs.launcher_log import HEAD_RULES, ROLE_RULES, LineTimes
from launcher.logs.rules import LineRule, MatchedLine, RuleReader, rule


@dataclass(slots=True)
class MixedProgress:
    """State that later lines of a mixed log need from earlier ones."""

    driver: DriverProgress = field(default_factory=DriverProgress)
    launcher: LineTimes = field(default_factory=LineTimes)


_Meaning = Callable[[MixedProgress, MatchedLine], Iterable[Event]]


def _of_driver(meaning: Callable[[DriverProgress, MatchedLine], Iterable[Event]]) -> _Meaning:
    return lambda progress, line: meaning(progress.driver, line)


def _of_launcher(meaning: Callable[[LineTimes, MatchedLine], Iterable[Event]]) -> _Meaning:
    return lambda progress, line: meaning(progress.launcher, line)


def _adapted(item: LineRule[LineTimes]) -> LineRule[MixedProgress]:
    return LineRule(item.literal, item.pattern, _of_launcher(item.meaning), item.own)


# Libraries print `[ERROR] …`, too: only a launcher's own form, with a time, is its error in such a log.
RULES: tuple[LineRule[MixedProgress], ...] = (
    *(LineRule(item.literal, item.pattern, _of_driver(item.meaning), item.own) for item in DRIVER_RULES),
    *(_adapted(item) for item in HEAD_RULES if item.literal != "[ERROR]"),
    *(replace(_adapted(item), literal="[ERROR][") for item in HEAD_RULES if item.literal == "[ERROR]"),
)


def _recognised(times: LineTimes, line: MatchedLine) -> Iterator[Event]:
    times.driver = times.driver or line
    return iter(())


_RECOGNISED: tuple[LineRule[LineTimes], ...] = (
    rule(
        "Connected to existing Ray cluster", r"\w+:nemo_rl\S+: Connected to existing Ray cluster", _recognised
    ),
    rule("▶ Setting up ", r"▶ Setting up (?:envs|data|compute cluster|teacher policy)", _recognised),
    rule("dataloader loaded with", r"\s*✓ Training dataloader loaded with \d+ samples$", _recognised),
    rule("SETUP COMPLETE", r"\s+SETUP COMPLETE$", _recognised),
    rule("===== Step ", r"=+ Step \d+/\d+ =+$", _recognised),
    rule("/train_data_step", r"Logged data to .*/train_data_step\d+\.jsonl$", _recognised),
    rule(
        "Max number of steps has been reached", r"Max number of steps has been reached, stopping", _recognised
    ),
    rule("Timeout has been reached", r"Timeout has been reached, stopping training early$", _recognised),
)


def mixed_reader(log: str) -> RuleReader[MixedProgress]:
    """Return a reader for a log that holds a driver's lines and those of others."""
    return RuleReader(log, Role.DRIVER, RULES, MixedProgress())


class RecognisingReader(RuleReader[LineTimes]):
    """Reader of the log of a batch script, a head or a worker; it recognises a driver in it."""

    def __init__(self, log: str, role: Role) -> None:
        rules = ROLE_RULES[role]
        super().__init__(log, role, rules if role is Role.WORKER else (*rules, *_RECOGNISED), LineTimes())

    @property
    def driver(self) -> MatchedLine | None:
        """The first line of a driver; None where there is none."""
        return self.state.driver
