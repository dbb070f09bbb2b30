"""Which reads without a default a recipe cannot satisfy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.reads.conditions import AllOf, Always, AnyOf, Condition, Not, Path, Test, Undecided

if TYPE_CHECKING:
    from recipes.reads.description import Read, Reads

_MISSING = object()
_FREE_TESTS = 8
"""Undecided tests whose outcomes are all tried; with more of them a read stays uncertain."""
_TYPES: dict[str, tuple[type, ...]] = {
    "dict": (dict,),
    "list": (list,),
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float,),
}


@dataclass(frozen=True, slots=True)
class MissingKey:
    """A key that is missing where code reads it; `certain`: the recipe alone decides that it is read."""

    path: Path
    file: str
    line: int
    certain: bool

    @property
    def key(self) -> str:
        """The key with dots."""
        return ".".join(self.path)


def missing_keys(
    reads: Reads, recipe: Mapping[str, Any], environments: Collection[str] = ()
) -> list[MissingKey]:
    """Return the keys that NeMo-RL would not find, each with the first place that reads it.

    `environments` are the names of environments that the recipe's data sets use.
    """
    result: list[MissingKey] = []
    judge = _Judge(recipe, environments)
    for path, places in reads.by_path.items():
        parent = judge.lookup(path[:-1])
        if not isinstance(parent, dict) or path[-1] in parent:
            continue
        found = judge.missing(places)
        if found is not None:
            result.append(found)
    return result


class _Judge:
    """Evaluates conditions for one recipe: true, false, or None where something else decides."""

    def __init__(self, recipe: Mapping[str, Any], environments: Collection[str]) -> None:
        self.recipe = recipe
        self.environments = environments

    def lookup(self, path: Path) -> object:
        """Return the recipe's value at a path."""
        value: object = self.recipe
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return _MISSING
            value = value[name]
        return value

    def missing(self, places: Iterable[Read]) -> MissingKey | None:
        """Return the finding for a key that is not there, None where nothing reads it."""
        open_reads: list[Read] = []
        for read in places:
            outcome = self.outcome(read.condition, {})
            if outcome is True:
                return MissingKey(read.path, read.file, read.line, certain=True)
            if outcome is None:
                open_reads.append(read)
        if not open_reads:
            return None
        first = open_reads[0]
        return MissingKey(first.path, first.file, first.line, certain=self._always(open_reads, {}))

    def _always(self, reads: Sequence[Read], assumed: Mapping[int, bool]) -> bool:
        """Tell whether one of several reads happens however the undecided tests turn out."""
        outcomes = [(read, self.outcome(read.condition, assumed)) for read in reads]
        if any(outcome is True for _, outcome in outcomes):
            return True
        left = [read for read, outcome in outcomes if outcome is None]
        number = next(
            (number for read in left for number in _undecided(read.condition) if number not in assumed), None
        )
        if number is None or len(assumed) >= _FREE_TESTS:
            return False
        return all(self._always(left, {**assumed, number: outcome}) for outcome in (False, True))

    def outcome(self, condition: Condition, assumed: Mapping[int, bool]) -> bool | None:
        """Return whether a condition holds."""
        if isinstance(condition, Always):
            return condition.holds
        if isinstance(condition, Undecided):
            return assumed.get(condition.number)
        if isinstance(condition, Not):
            inner = self.outcome(condition.inner, assumed)
            return None if inner is None else not inner
        if isinstance(condition, Test):
            return self._test(condition)
        stop = isinstance(condition, AnyOf)
        result: bool | None = not stop
        for part in condition.parts:
            outcome = self.outcome(part, assumed)
            if outcome is stop:
                return stop
            if outcome is None:
                result = None
        return result

    def _test(self, test: Test) -> bool | None:
        if test.operator == "uses-env":
            return test.operand in self.environments
        value = self.lookup(test.path)
        if test.operator == "has":
            return value is not _MISSING
        value = test.default if value is _MISSING else value
        if test.operator == "truthy":
            return bool(value)
        if test.operator == "none":
            return value is None
        if test.operator == "==":
            return bool(value == test.operand)
        if test.operator == "in":
            return value in test.operand if isinstance(test.operand, tuple) else None
        if test.operator == "type":
            return isinstance(value, _TYPES.get(str(test.operand), ()))
        return _ordered(value, test)


def _ordered(value: object, test: Test) -> bool | None:
    operand = test.operand
    if not isinstance(value, int | float) or not isinstance(operand, int | float):
        return None
    if test.operator == "<":
        return value < operand
    if test.operator == "<=":
        return value <= operand
    return value > operand if test.operator == ">" else value >= operand


def _undecided(condition: Condition) -> Iterator[int]:
    """Yield the numbers of the undecided tests of a condition."""
    if isinstance(condition, Undecided):
        yield condition.number
    elif isinstance(condition, Not):
        yield from _undecided(condition.inner)
    elif isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from _undecided(part)
