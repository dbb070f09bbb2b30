"""Catalogue of failures and their signatures, from the TOML files beside this module.

A table is one signature. `match` lists pairs of a literal (in every such line; the search is for literals)
and a pattern (the literal itself where left out). Tier 1 explains a failure, tier 2 explains one where no log
holds a tier 1, tier 3 only reports that something failed. `causes` lists its consequences, `raises` classes
of exceptions among them; `retried`: the process that printed it tries again; `generic`: another signature of
its tier is more specific; `heading`: a pattern of its lines that only announce another one of its kind.

`nature` is the line's part in a failure of several processes: `own`, something went wrong in the process
that prints it (the default of tiers 1 and 2); `seen`, it reports what it sees of another one's death;
`relayed`, it passes on that another one failed (the default of tier 3).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

SEVERITIES = ("fatal", "warning")


class Nature(StrEnum):
    """Part of a line in a failure of several processes."""

    OWN = "own"
    SEEN = "seen"
    RELAYED = "relayed"


@dataclass(frozen=True, slots=True)
class SuggestedEdit:
    """Recipe change that helps."""

    key: str
    to: bool | float | str | None = None
    """New value; None where it depends on the run."""
    how: str = ""
    """`raise`, `lower` or `change`, where there is no single new value."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Remedy for a failure."""

    fix: str
    edits: tuple[SuggestedEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """Wording of a failure."""

    literal: str
    pattern: re.Pattern[str] | None
    """None: the literal alone decides."""

    def matches(self, text: str) -> bool:
        """Return True if a cleaned line has this wording."""
        return self.literal in text and (self.pattern is None or self.pattern.search(text) is not None)


@dataclass(frozen=True, slots=True)
class Signature:
    """Kind of failure."""

    id: str
    title: str
    tier: int
    severity: str
    where: tuple[str, ...]
    """Roles of the logs that usually hold it; all logs are searched."""
    clauses: tuple[Clause, ...]
    causes: frozenset[str]
    raises: frozenset[str]
    """Classes of exceptions that it leads to in what is started after it."""
    advice: Advice
    phases: Mapping[str, Advice]
    """Better advice, by the driver's activity."""
    variables: tuple[str, ...]
    """Environment variables that affect it."""
    set_variables: tuple[tuple[str, str], ...]
    """Names and values of those that are the remedy as they stand."""
    source: tuple[str, ...]
    retried: bool
    generic: bool
    informs: bool
    """Its line is printed at level INFO or the like."""
    nature: Nature
    latent: bool
    """A warning that explains a run that failed."""
    from_owner: bool
    """Only of the process that owns the log: workers print it whenever they are stopped."""
    heading: re.Pattern[str] | None
    """Lines of it that only announce the one that tells; None where each tells."""

    def announces(self, text: str) -> bool:
        """Return True for a line below which another line of this kind tells why."""
        return self.heading is not None and self.heading.search(text) is not None

    def advice_in(self, phase: str) -> Advice:
        """Return the advice for a failure in a phase."""
        return self.phases.get(phase, self.advice)


@dataclass(frozen=True)
class Catalogue:
    """All signatures, and the lines that only look like a failure."""

    signatures: Mapping[str, Signature]
    harmless: re.Pattern[str]
    """Beginnings of lines that report no failure."""
    harmless_texts: tuple[str, ...]

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Distinct literals."""
        return tuple(self._by_literal)

    @cached_property
    def literal_set(self) -> frozenset[str]:
        """Literals, as a set."""
        return frozenset(self._by_literal)

    @cached_property
    def _by_literal(self) -> dict[str, list[tuple[Signature, Clause]]]:
        clauses: dict[str, list[tuple[Signature, Clause]]] = {}
        for signature in self.signatures.values():
            for clause in signature.clauses:
                clauses.setdefault(clause.literal, []).append((signature, clause))
        return clauses

    def recognise(self, text: str, literals: Iterable[str] | None = None) -> Signature | None:
        """Return the signature of a cleaned line: the most explanatory one that matches.

        `literals`: those that the line may hold; None for any.
        """
        best: Signature | None = None
        clauses = self._by_literal
        candidates = clauses if literals is None else [literal for literal in literals if literal in clauses]
        for literal in sorted(candidates) if len(candidates) > 1 else candidates:
            for signature, clause in clauses[literal]:
                if signature is best:
                    continue
                if clause.matches(text) and (best is None or _better(signature, best)):
                    best = signature
        return best

    def is_harmless(self, text: str) -> bool:
        """Return True if a line is known to report no failure, whatever it contains."""
        if self.harmless.match(text) is not None:
            return True
        for part in self.harmless_texts:  # noqa: SIM110  (half the time of any() with a generator)
            if part in text:
                return True
        return False

    @cached_property
    def consequences(self) -> Mapping[str, frozenset[str]]:
        """Signature id -> ids of its consequences, direct and indirect."""
        reached: dict[str, frozenset[str]] = {}
        for start in self.signatures:
            visited: set[str] = set()
            queue = [start]
            while queue:
                for item in self.signatures[queue.pop()].causes - visited:
                    visited.add(item)
                    queue.append(item)
            reached[start] = frozenset(visited - {start})
        return reached


def _better(one: Signature, other: Signature) -> bool:
    if one.tier != other.tier:
        return one.tier < other.tier
    if one.generic != other.generic:
        return other.generic
    return other.id in one.causes and one.id not in other.causes


@cache
def catalogue() -> Catalogue:
    """Return the installed catalogue.

    Raises:
        ValueError: a table has an invalid tier or severity.
    """
    signatures: dict[str, Signature] = {}
    beginnings: list[str] = []
    texts: list[str] = []
    folder = files(__name__)
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".toml"):
            continue
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        if file.name == "benign.toml":
            beginnings += tables["harmless"]["beginnings"]
            texts += tables["harmless"]["words"]
        else:
            signatures |= {identity: _signature(identity, table) for identity, table in tables.items()}
    harmless = re.compile("|".join(f"(?:{pattern})" for pattern in beginnings))
    return Catalogue(signatures, harmless, tuple(texts))


def _signature(identity: str, table: Mapping[str, Any]) -> Signature:
    severity = table.get("severity", "fatal")
    if severity not in SEVERITIES or table["tier"] not in (1, 2, 3):
        raise ValueError(f"{identity}: invalid tier {table['tier']} or severity '{severity}'")
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
        raises=frozenset(table.get("raises", ())),
        advice=advice_of(table),
        phases={item["name"]: advice_of(item) for item in table.get("phase", ())},
        variables=tuple(table.get("variables", ())),
        set_variables=tuple(table.get("set_variables", {}).items()),
        source=tuple(table["source"]),
        retried=table.get("retried", False),
        generic=table.get("generic", False),
        informs=table.get("informs", False),
        nature=Nature(table.get("nature", "relayed" if table["tier"] == 3 else "own")),
        latent=table.get("latent", False),
        from_owner=table.get("from_owner", False),
        heading=re.compile(table["heading"]) if "heading" in table else None,
    )


def advice_of(table: Mapping[str, Any]) -> Advice:
    """Return the advice in a table."""
    edits = (
        SuggestedEdit(item["key"], item.get("to"), item.get("how", "")) for item in table.get("edits", ())
    )
    return Advice(table["fix"], tuple(edits))
