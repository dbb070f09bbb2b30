"""The reads without a default that a recipe cannot satisfy."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.reads.read_conditions import Path

if TYPE_CHECKING:
    from recipes.reads.description import Node, Read, Reads

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

    `environments` are the names of the environments that the recipe's data sets use.
    """
    evaluation = _Evaluation(reads.nodes, recipe, environments)
    result: list[MissingKey] = []
    for path, places in reads.by_path.items():
        parent = evaluation.lookup(path[:-1])
        if not isinstance(parent, dict) or path[-1] in parent:
            continue
        missing = evaluation.missing(path, places)
        if missing is not None:
            result.append(missing if reads.complete else MissingKey(path, missing.file, missing.line, False))
    return result


class _Evaluation:
    """The conditions for one recipe: true, false, or None where something else decides."""

    def __init__(
        self, nodes: Sequence[Node], recipe: Mapping[str, Any], environments: Collection[str]
    ) -> None:
        self.nodes = nodes
        self.recipe = recipe
        self.environments = environments
        self._outcomes: dict[int, bool | None] = {}

    def lookup(self, path: Sequence[str]) -> object:
        """Return the recipe's value at a path."""
        value: object = self.recipe
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return _MISSING
            value = value[name]
        return value

    def missing(self, path: Path, places: Sequence[Read]) -> MissingKey | None:
        """Return the finding for a key that is not there, None where nothing reads it."""
        open_reads: list[Read] = []
        for read in places:
            outcome = self.outcome(read.condition, {}, self._outcomes)
            if outcome is True:
                return MissingKey(path, read.file, read.line, certain=True)
            if outcome is None:
                open_reads.append(read)
        if not open_reads:
            return None
        first = open_reads[0]
        return MissingKey(path, first.file, first.line, certain=self._always(open_reads, {}))

    def _always(self, reads: Sequence[Read], assumed: Mapping[int, bool]) -> bool:
        """Tell whether one of several reads happens however the undecided tests turn out."""
        memory: dict[int, bool | None] = {}
        outcomes = [(read, self.outcome(read.condition, assumed, memory)) for read in reads]
        if any(outcome is True for _, outcome in outcomes):
            return True
        left = [read for read, outcome in outcomes if outcome is None]
        open_tests = (number for read in left for number in self._undecided(read.condition, set()))
        number = next((number for number in open_tests if number not in assumed), None)
        if number is None or len(assumed) >= _FREE_TESTS:
            return False
        return all(self._always(left, {**assumed, number: outcome}) for outcome in (False, True))

    def outcome(self, index: int, assumed: Mapping[int, bool], memory: dict[int, bool | None]) -> bool | None:
        """Return whether a condition holds."""
        if index not in memory:
            memory[index] = self._outcome(self.nodes[index], assumed, memory)
        return memory[index]

    def _outcome(
        self, node: Node, assumed: Mapping[int, bool], memory: dict[int, bool | None]
    ) -> bool | None:
        kind = node[0]
        if kind == "c":
            return bool(node[1])
        if kind == "u":
            return assumed.get(node[1])
        if kind == "t":
            return self._test(*node[1:])
        if kind == "n":
            inner = self.outcome(node[1], assumed, memory)
            return None if inner is None else not inner
        decisive = kind == "o"
        result: bool | None = not decisive
        for part in node[1:]:
            outcome = self.outcome(part, assumed, memory)
            if outcome is decisive:
                return decisive
            if outcome is None:
                result = None
        return result

    def _undecided(self, index: int, passed: set[int]) -> Iterator[int]:
        """Yield the numbers of the undecided tests of a condition."""
        if index in passed:
            return
        passed.add(index)
        kind, *parts = self.nodes[index]
        if kind == "u":
            yield parts[0]
        elif kind in "nao":
            for part in parts:
                yield from self._undecided(part, passed)

    def _test(self, operator: str, path: Sequence[str], operand: object, default: object) -> bool | None:
        if operator == "uses-env":
            return operand in self.environments
        value = self.lookup(path)
        if operator == "has":
            return value is not _MISSING
        value = default if value is _MISSING else value
        if operator == "truthy":
            return bool(value)
        if operator == "none":
            return value is None
        if operator == "==":
            return bool(value == operand)
        if operator == "in":
            return value in operand if isinstance(operand, list | tuple) else None
        if operator == "type":
            return isinstance(value, _TYPES.get(str(operand), ()))
        return _ordered(value, operator, operand)


def _ordered(value: object, operator: str, operand: object) -> bool | None:
    if not isinstance(value, int | float) or not isinstance(operand, int | float):
        return None
    if operator == "<":
        return value < operand
    if operator == "<=":
        return value <= operand
    return value > operand if operator == ">" else value >= operand
