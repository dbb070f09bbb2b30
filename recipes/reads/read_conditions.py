"""Conditions on a recipe, as code tests them: trees of predicates, some of which no recipe decides."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

Path: TypeAlias = "tuple[str, ...]"
Literal: TypeAlias = "str | int | float | bool | tuple[Literal, ...] | None"


@dataclass(frozen=True, slots=True)
class Always:
    """A condition that is decided without a recipe."""

    holds: bool


@dataclass(frozen=True, slots=True)
class Undecided:
    """A test of something that is no part of the recipe; the same number is the same test."""

    number: int


@dataclass(frozen=True, slots=True)
class Test:
    """A predicate on one value of the recipe.

    `operator` is one of truthy, has, none, ==, in, <, <=, >, >=, type, uses-env. `default` counts where the
    key is missing (None: it is then null).
    """

    operator: str
    path: Path
    operand: Literal = None
    default: Literal = None


@dataclass(frozen=True, slots=True)
class Negation:
    """The opposite."""

    inner: Condition
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(("Negation", self.inner)))

    def __hash__(self) -> int:
        return self._hash  # trees are hashed again and again: kept, the walk takes a third of the time


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction."""

    parts: tuple[Condition, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(("AllOf", self.parts)))

    def __hash__(self) -> int:
        return self._hash  # trees are hashed again and again: kept, the walk takes a third of the time


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction."""

    parts: tuple[Condition, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(("AnyOf", self.parts)))

    def __hash__(self) -> int:
        return self._hash  # trees are hashed again and again: kept, the walk takes a third of the time


Condition: TypeAlias = "Always | Undecided | Test | Negation | AllOf | AnyOf"
TRUE: Final = Always(True)
FALSE: Final = Always(False)
_LARGEST = 24
"""Parts of a conjunction or disjunction; with more of them it counts as undecided."""


def always(holds: bool) -> Condition:
    """Return the condition that always holds, or never."""
    return TRUE if holds else FALSE


def negation(condition: Condition) -> Condition:
    """Return the opposite of a condition."""
    if isinstance(condition, Always):
        return FALSE if condition.holds else TRUE
    if isinstance(condition, Negation):
        return condition.inner
    return Negation(condition)


def all_of(parts: Iterable[Condition]) -> Condition:
    """Return a conjunction, flattened; contradictions in it are false."""
    flat: dict[Condition, None] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        for inner in part.parts if isinstance(part, AllOf) else (part,):
            if inner != TRUE:
                flat[inner] = None
    if any(isinstance(part, Negation) and part.inner in flat for part in flat):
        return FALSE
    if len(flat) == 1:
        return next(iter(flat))
    return AllOf(tuple(flat)) if flat else TRUE


@lru_cache(maxsize=16384)
def _both(first: Condition, second: Condition) -> Condition:
    return all_of((first, second))


def both(first: Condition, second: Condition) -> Condition:
    """Return the conjunction of two conditions, most of which are trivial."""
    if second is TRUE or first is second:
        return first
    return second if first is TRUE else _both(first, second)


def any_of(parts: Iterable[Condition]) -> Condition:
    """Return a disjunction, flattened; a part and its opposite in it make it true."""
    flat: dict[Condition, None] = {}
    for part in parts:
        if part == TRUE:
            return TRUE
        for inner in part.parts if isinstance(part, AnyOf) else (part,):
            if inner != FALSE:
                flat[inner] = None
    if any(isinstance(part, Negation) and part.inner in flat for part in flat):
        return TRUE
    if len(flat) == 1:
        return next(iter(flat))
    if len(flat) > _LARGEST:
        return Undecided(-1)
    return AnyOf(tuple(flat)) if flat else FALSE


def possibly(condition: Condition) -> Condition:
    """Return what the recipe alone makes of a condition if undecided tests turn out for it.

    What follows an early return, an assertion or a raise counts as reached but for what the recipe decides.
    """
    return _bound(condition, undecided=True)


def with_keys(condition: Condition, keys: Container[Path]) -> Condition:
    """Return a condition where some keys are there: those that the driver itself writes."""
    if isinstance(condition, Test) and condition.operator == "has" and condition.path in keys:
        return TRUE
    if isinstance(condition, Negation):
        return negation(with_keys(condition.inner, keys))
    if isinstance(condition, AllOf | AnyOf):
        parts = (with_keys(part, keys) for part in condition.parts)
        return all_of(parts) if isinstance(condition, AllOf) else any_of(parts)
    return condition


def _bound(condition: Condition, *, undecided: bool) -> Condition:
    if isinstance(condition, Undecided):
        return TRUE if undecided else FALSE
    if isinstance(condition, Negation):
        return negation(_bound(condition.inner, undecided=not undecided))
    if isinstance(condition, AllOf):
        return all_of(_bound(part, undecided=undecided) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return any_of(_bound(part, undecided=undecided) for part in condition.parts)
    return condition
