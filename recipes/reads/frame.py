"""The state while one function of the checkout is followed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from recipes.reads.read_conditions import (
    TRUE,
    AllOf,
    Condition,
    Path,
    all_of,
    any_of,
    both,
    negation,
    possibly,
)
from recipes.reads.symbols import ANYTHING, ClassValue, Instance, Value, choose
from recipes.schema.checkout_source import Module

ReadKey: TypeAlias = "tuple[Path, str, int]"
ANY_ITEM = "*"


@dataclass(slots=True)
class CallFrame:
    """Names, conditions and reads of a function (or of a module, while its top level is looked at).

    `guard` is what must hold of the recipe for the present statement to run, seen from the function's start.
    """

    module: Module
    names: dict[str, Value] = field(default_factory=dict)
    closure: dict[str, Value] | None = None
    owner: ClassValue | None = None
    self_value: Instance | None = None
    guard: Condition = TRUE
    ended: bool = False
    reads: dict[ReadKey, Condition] = field(default_factory=dict)
    returned: list[tuple[Condition, Value]] = field(default_factory=list)

    def record(self, path: Path, line: int, file: str | None = None) -> None:
        """Note that a key is read here without a default."""
        self.add(((path, file or self.module.path, line), TRUE))

    def add(self, *reads: tuple[ReadKey, Condition]) -> None:
        """Note reads that happen under the present guard and a condition of their own."""
        for key, condition in reads:
            if ANY_ITEM in key[0]:
                continue
            full = both(self.guard, condition)
            known = self.reads.get(key)
            self.reads[key] = full if known is None else any_of((known, full))

    @property
    def result(self) -> Value:
        """What the function returns."""
        return choose(self.returned) if self.returned else ANYTHING

    def branch(self, condition: Condition) -> CallFrame:
        """Return the frame of one branch; reads and returned values are shared."""
        return replace(self, names=dict(self.names), guard=both(self.guard, condition))

    def join(self, condition: Condition, then: CallFrame, other: CallFrame) -> None:
        """Go on after both branches of a condition."""
        if then.ended and other.ended:
            self.ended = True
            return
        extra_then, extra_other = self._gained(then, condition), self._gained(other, negation(condition))
        if then.ended:
            self.names = other.names
            self.guard = all_of((self.guard, possibly(negation(condition)), extra_other))
        elif other.ended:
            self.names = then.names
            self.guard = all_of((self.guard, possibly(condition), extra_then))
        else:
            self.names = _merged(condition, then.names, other.names)
            left = possibly(any_of((negation(condition), extra_then))) if extra_then != TRUE else TRUE
            right = possibly(any_of((condition, extra_other))) if extra_other != TRUE else TRUE
            self.guard = all_of((self.guard, left, right))

    def _gained(self, branch: CallFrame, condition: Condition) -> Condition:
        """Return what a branch has learnt on its way, besides the branch's own condition."""
        start = _parts(both(self.guard, condition))
        return all_of(part for part in _parts(branch.guard) if part not in start)


def _parts(condition: Condition) -> tuple[Condition, ...]:
    return condition.parts if isinstance(condition, AllOf) else (condition,)


def _merged(condition: Condition, then: dict[str, Value], other: dict[str, Value]) -> dict[str, Value]:
    names = dict(then)
    for name in then.keys() | other.keys():
        first, second = then.get(name, ANYTHING), other.get(name, ANYTHING)
        if first is not second and first != second:
            names[name] = choose([(condition, first), (negation(condition), second)])
    return names
