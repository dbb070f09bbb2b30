"""What an expression of the checkout stands for, as far as the recipe is concerned."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from recipes.reads.read_conditions import FALSE, TRUE, Condition, Literal, Path, any_of, both, negation
from recipes.schema.checkout_source import Module

_ALTERNATIVES = 6
"""Values that a name may stand for; with more of them it stands for anything."""


@dataclass(frozen=True, slots=True)
class Anything:
    """A value that has nothing to do with the recipe, or is not followed."""


@dataclass(frozen=True, slots=True)
class Config:
    """The part of the recipe at a path; `default` is what the code takes where the key is missing."""

    path: Path
    default: Literal = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ConstValue:
    """A literal."""

    value: Literal


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple or list whose items are known."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dict with literal keys; `rest`: what a `**` in it stands for."""

    items: tuple[tuple[Literal, Value], ...]

    def get(self, key: Literal) -> Value | None:
        """Return the value of a key, None where the key is not among the literal ones."""
        return next((value for name, value in reversed(self.items) if name == key), None)


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module, by its dotted name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ClassValue:
    """A class of the checkout."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValue:
    """A function of the checkout; `self_value` is what it is bound to, `closure` the names around it."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    self_value: Value | None = None
    owner: ClassValue | None = None
    closure: dict[str, Value] | None = None
    inner: bool = False
    """Defined inside a function: it may use what is around it."""


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the checkout, with what its attributes stand for."""

    cls: ClassValue
    attributes: dict[str, Value] = field(default_factory=dict)
    version: int = 0
    fields: tuple[str, ...] = ()
    """Names in the order in which a named tuple is unpacked."""

    def assign(self, name: str, value: Value, guard: Condition) -> None:
        """Set an attribute, on one branch only where there is a guard."""
        old = self.attributes.get(name, ANYTHING)
        new = value if guard == TRUE else choose([(guard, value), (negation(guard), old)])
        if self.attributes.get(name) != new:
            self.attributes[name] = new
            self.version += 1


@dataclass(frozen=True, slots=True, eq=False)
class WorkerClass:
    """What a `RayWorkerBuilder` will make: classes by name, and the arguments of their constructor."""

    names: Value
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Workers:
    """The remote workers of a group; which of them there are depends on the recipe."""

    instances: tuple[tuple[Condition, Instance], ...]


@dataclass(frozen=True, slots=True)
class ParentOf:
    """`super()`: an instance, looked at as an instance of what the class derives from."""

    instance: Instance
    cls: ClassValue


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, by conditions on the recipe."""

    alternatives: tuple[tuple[Condition, Value], ...]


Value: TypeAlias = (
    "Anything | Config | ConstValue | Sequence | Mapping | ModuleValue | ClassValue | FunctionValue"
    " | Instance | WorkerClass | Workers | ParentOf | Choice"
)
ANYTHING: Final = Anything()


def choose(alternatives: list[tuple[Condition, Value]]) -> Value:
    """Return the one value that all alternatives agree on, else a choice of them."""
    if len(alternatives) == 1 and alternatives[0][0] is TRUE:
        return alternatives[0][1]
    merged: dict[Value, Condition] = {}
    for guard, value in alternatives:
        for inner_guard, inner in value.alternatives if isinstance(value, Choice) else ((TRUE, value),):
            condition = both(guard, inner_guard)
            if condition != FALSE:
                merged[inner] = any_of((merged[inner], condition)) if inner in merged else condition
    if len(merged) == 1:
        return next(iter(merged))
    if not merged or len(merged) > _ALTERNATIVES:
        return ANYTHING
    return Choice(tuple((guard, value) for value, guard in merged.items()))


def each(value: Value) -> tuple[tuple[Condition, Value], ...]:
    """Return the values that something may be, with the condition of each."""
    return value.alternatives if isinstance(value, Choice) else ((TRUE, value),)


def concerns_recipe(value: Value, depth: int = 3) -> bool:
    """Tell whether a value leads to the recipe."""
    if isinstance(value, FunctionValue):
        return value.inner or value.self_value is not None
    if isinstance(value, Config | WorkerClass | Workers | ParentOf):
        return True
    if depth == 0:
        return False
    if isinstance(value, Choice):
        return any(concerns_recipe(inner, depth) for _, inner in value.alternatives)
    if isinstance(value, Sequence):
        return any(concerns_recipe(inner, depth - 1) for inner in value.items)
    if isinstance(value, Mapping):
        return any(concerns_recipe(inner, depth - 1) for _, inner in value.items)
    if isinstance(value, Instance):
        return any(concerns_recipe(inner, depth - 1) for inner in value.attributes.values())
    return False
