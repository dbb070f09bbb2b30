"""Classes that apply to a part of the recipe under conditions, and these decided for a recipe's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Condition = list[Any]
"""A test of a recipe: ["and"|"or"|"not", …], ["is"|"in", path, value(s)], ["true", path], ["unknown"]."""


class LateRoot(NamedTuple):
    """A class that code applies to a part of the recipe later: `Class.model_validate(config.get(…))`.

    `path` is the part's key, `conditions` all that must hold for the code to get there, `where` its place.
    """

    class_id: str
    path: str
    conditions: tuple[Condition, ...]
    where: str


def holds(condition: Condition, values: Mapping[str, Any]) -> bool | None:
    """Tell whether a condition holds for a recipe's values; None if that is unknown."""
    kind, *rest = condition
    if kind in ("and", "or"):
        deciding: bool = kind == "or"
        parts = [holds(part, values) for part in rest]
        if deciding in parts:
            return deciding
        return None if None in parts else not deciding
    if kind == "not":
        inner = holds(rest[0], values)
        return None if inner is None else not inner
    if kind not in ("true", "is", "in"):
        return None
    value = part_of(values, rest[0])
    if kind == "true":
        return bool(value)
    choices: list[object] = rest[1] if kind == "in" else [rest[1]]
    equal: list[bool] = [type(value) is type(one) and value == one for one in choices]
    return any(equal)


def part_of(values: Any, path: str) -> Any:  # noqa: ANN401 - a recipe holds anything
    """Return a part of a recipe by its plain dotted key; None where it is missing."""
    for key in path.split(".") if path else ():
        if not isinstance(values, dict):
            return None
        values = values.get(key)
    return values
