"""Verdicts of the doctor: an outcome with its evidence, and the command that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from launcher.text import clean

if TYPE_CHECKING:
    from launcher.doctor.subject import Requirement, Subject
    from recipes.checks.core import Outcome

Station = Literal["login", "node", "nodes"]
"""Where a check gets its evidence: on the login node, on one node of a job, between two nodes of a job."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """Commands that make a check pass, for a shell on the login node."""

    commands: tuple[str, ...]
    """In this order; each can be repeated without harm."""
    changes: str
    """What they change; empty where they only show something."""
    automatic: bool = False
    """Whether `doctor --fix` offers to run them: they only add files, and can be interrupted."""

    @property
    def command(self) -> str:
        """All commands as one line."""
        return " && ".join(self.commands)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a check, and what speaks for it."""

    outcome: Outcome
    evidence: str
    remedy: Remedy | None = None


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One thing that a run needs and that can be known before it waits in the queue."""

    id: str
    title: str
    station: Station
    judge: Callable[[Subject], Verdict | None]
    """Returns None where the check does not apply: nothing of the run needs it."""
    needs: frozenset[Requirement] = frozenset()
    """A check is left out where one of these is not there."""
    foretells: tuple[str, ...] = ()
    """Ids of the signatures (`launcher/logs/signatures`) of failures that it would have foretold."""


@dataclass(frozen=True, slots=True)
class Examination:
    """A check with its verdict."""

    check: DoctorCheck
    verdict: Verdict
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return it as `doctor --json` prints it."""
        remedy = self.verdict.remedy
        return {
            "id": self.check.id,
            "title": self.check.title,
            "where": self.check.station,
            "outcome": self.verdict.outcome,
            "evidence": self.verdict.evidence,
            "fix": {"command": remedy.command, "changes": remedy.changes} if remedy is not None else None,
            "foretells": list(self.check.foretells),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The verdicts of all checks that apply, in the order of the table."""

    examinations: tuple[Examination, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing fails."""
        return all(item.verdict.outcome != "fail" for item in self.examinations)

    def with_outcome(self, outcome: Outcome) -> tuple[Examination, ...]:
        """Return the examinations with an outcome."""
        return tuple(item for item in self.examinations if item.verdict.outcome == outcome)

    def counts(self) -> Mapping[Outcome, int]:
        """Return how many verdicts there are of each outcome, the worst first."""
        order: tuple[Outcome, ...] = ("fail", "warn", "unknown", "pass")
        return {outcome: len(self.with_outcome(outcome)) for outcome in order}

    def in_words(self) -> str:
        """Return the counts as one line."""
        counts = self.counts()
        warnings = f"{counts['warn']} warning{'s' * (counts['warn'] != 1)}"
        return f"{counts['fail']} not ready, {warnings}, {counts['unknown']} unknown, {counts['pass']} passed"

    def for_host(self, name: str) -> HealthReport:
        """Return the report of a host: remedies that run this program name it."""
        return HealthReport(
            tuple(replace(item, verdict=_for_host(item.verdict, name)) for item in self.examinations)
        )

    def merged(self, other: HealthReport) -> HealthReport:
        """Return this report followed by another one's examinations."""
        return HealthReport((*self.examinations, *other.examinations))


def _for_host(verdict: Verdict, name: str) -> Verdict:
    if verdict.remedy is None:
        return verdict
    own, there = "distill-tui ", f"distill-tui --host {name} "
    commands = tuple(
        f"{there}{command.removeprefix(own)}" if command.startswith(own) else command
        for command in verdict.remedy.commands
    )
    return replace(verdict, remedy=replace(verdict.remedy, commands=commands))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`, `3 directories`, `4 processes`."""
    if number == 1:
        return f"1 {noun}"
    ending = "ies" if noun.endswith("y") else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun.removesuffix('y') if ending == 'ies' else noun}{ending}"


def passed(evidence: str) -> Verdict:
    """Return a verdict that passes."""
    return Verdict("pass", clean(evidence))


def failed(evidence: str, *commands: str, changes: str = "", automatic: bool = False) -> Verdict:
    """Return a verdict that fails, with the commands that help."""
    return Verdict("fail", clean(evidence), _remedy(commands, changes, automatic=automatic))


def warned(evidence: str, *commands: str, changes: str = "", automatic: bool = False) -> Verdict:
    """Return a verdict that warns, with the commands that help."""
    return Verdict("warn", clean(evidence), _remedy(commands, changes, automatic=automatic))


def unknown(evidence: str, *commands: str, changes: str = "") -> Verdict:
    """Return a verdict that could not be reached, with the commands that would tell."""
    return Verdict("unknown", clean(evidence), _remedy(commands, changes, automatic=False))


def _remedy(commands: tuple[str, ...], changes: str, *, automatic: bool) -> Remedy | None:
    return Remedy(tuple(map(clean, commands)), changes, automatic) if commands else None
