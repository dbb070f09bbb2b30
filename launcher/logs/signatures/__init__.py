"""What failures look like: the catalogue in the TOML files beside this module.

A table is one signature. `match` lists pairs of a literal (which stands in every such line, and by which
lines are found) and a pattern (the literal itself where it is left out). Tier 1 explains a failure, tier 2
explains one where no tier 1 was seen in any log, tier 3 only reports that something failed. `causes` names
what it brings about; `retried` says that what saw it tries again; `generic` that another one of its tier says
it better.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

SEVERITIES = ("fatal", "warning")


@dataclass(frozen=True, slots=True)
class SuggestedEdit:
    """A change of the recipe that helps."""

    key: str
    to: bool | float | str | None = None
    """The new value; None where it depends on the run."""
    how: str = ""
    """`raise`, `lower` or `change`, where there is no one new value."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do."""

    fix: str
    edits: tuple[SuggestedEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """One wording of a failure."""

    literal: str
    pattern: re.Pattern[str] | None
    """None: the literal says it all."""

    def matches(self, text: str) -> bool:
        """Tell whether a cleaned line is worded so."""
        return self.literal in text and (self.pattern is None or self.pattern.search(text) is not None)


@dataclass(frozen=True, slots=True)
class Signature:
    """One kind of failure."""

    id: str
    title: str
    tier: int
    severity: str
    where: tuple[str, ...]
    """Roles of the logs it usually stands in; it is looked for in all."""
    clauses: tuple[Clause, ...]
    causes: frozenset[str]
    advice: Advice
    phases: Mapping[str, Advice]
    """Better advice, by what the driver was doing."""
    variables: tuple[str, ...]
    """Environment variables that matter to it."""
    source: tuple[str, ...]
    retried: bool
    generic: bool
    informs: bool
    """Its line is printed as a mere information."""

    def advice_in(self, phase: str) -> Advice:
        """Return what to do when it happened in a phase."""
        return self.phases.get(phase, self.advice)


@dataclass(frozen=True)
class Catalogue:
    """All signatures, and the lines that only look like one."""

    signatures: Mapping[str, Signature]
    harmless: re.Pattern[str]
    """How lines begin that report nothing."""
    harmless_words: tuple[str, ...]

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """All literals, each once."""
        return tuple(self._by_literal)

    @cached_property
    def words(self) -> frozenset[str]:
        """The literals, to look up."""
        return frozenset(self._by_literal)

    @cached_property
    def _by_literal(self) -> dict[str, list[tuple[Signature, Clause]]]:
        found: dict[str, list[tuple[Signature, Clause]]] = {}
        for signature in self.signatures.values():
            for clause in signature.clauses:
                found.setdefault(clause.literal, []).append((signature, clause))
        return found

    def recognise(self, text: str, literals: Iterable[str] | None = None) -> Signature | None:
        """Return the signature of a cleaned line: the one that explains most, of those that match.

        `literals` are the only ones to look for, where it is known which ones are there.
        """
        best: Signature | None = None
        known = self._by_literal
        there = known if literals is None else [literal for literal in literals if literal in known]
        for literal in sorted(there) if len(there) > 1 else there:
            for signature, clause in known[literal]:
                if clause.matches(text) and (best is None or _better(signature, best)):
                    best = signature
        return best

    def is_harmless(self, text: str) -> bool:
        """Tell whether a line is known to report no failure, whatever words it holds."""
        return self.harmless.match(text) is not None or any(word in text for word in self.harmless_words)

    @cached_property
    def consequences(self) -> Mapping[str, frozenset[str]]:
        """What each signature brings about, directly or through others."""
        reached: dict[str, frozenset[str]] = {}
        for start in self.signatures:
            seen: set[str] = set()
            waiting = [start]
            while waiting:
                for item in self.signatures[waiting.pop()].causes - seen:
                    seen.add(item)
                    waiting.append(item)
            reached[start] = frozenset(seen - {start})
        return reached


def _better(one: Signature, other: Signature) -> bool:
    if one.tier != other.tier:
        return one.tier < other.tier
    if one.generic != other.generic:
        return other.generic
    return other.id in one.causes and one.id not in other.causes


@cache
def catalogue() -> Catalogue:
    """Read the catalogue that comes with the program."""
    signatures: dict[str, Signature] = {}
    beginnings: list[str] = []
    words: list[str] = []
    folder = files(__name__)
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".toml"):
            continue
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        if file.name == "benign.toml":
            beginnings += tables["harmless"]["beginnings"]
            words += tables["harmless"]["words"]
        else:
            signatures |= {identity: _signature(identity, table) for identity, table in tables.items()}
    harmless = re.compile("|".join(f"(?:{pattern})" for pattern in beginnings))
    return Catalogue(signatures, harmless, tuple(words))


def _signature(identity: str, table: Mapping[str, Any]) -> Signature:
    severity = table.get("severity", "fatal")
    if severity not in SEVERITIES or table["tier"] not in (1, 2, 3):
        raise ValueError(f"{identity}: tier {table['tier']}, severity {severity}")
    return Signature(
        id=identity,
        title=table["title"],
        tier=table["tier"],
        severity=severity,
        where=tuple(table["where"]),
        clauses=tuple(
            Clause(item[0], re.compile(item[1]) if len(item) > 1 else None) for item in table["match"]
        ),
        causes=frozenset(table.get("causes", ())),
        advice=_advice(table),
        phases={item["name"]: _advice(item) for item in table.get("phase", ())},
        variables=tuple(table.get("variables", ())),
        source=tuple(table["source"]),
        retried=table.get("retried", False),
        generic=table.get("generic", False),
        informs=table.get("informs", False),
    )


def _advice(table: Mapping[str, Any]) -> Advice:
    edits = (
        SuggestedEdit(item["key"], item.get("to"), item.get("how", "")) for item in table.get("edits", ())
    )
    return Advice(table["fix"], tuple(edits))
