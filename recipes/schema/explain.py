"""Pydantic's errors in the recipe's terms: one problem for each key, of a union the branch that was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from recipes.schema.core_schema import ALTERNATIVE

Path = tuple[str | int, ...]
"""Keys and list positions from the top of the recipe."""

_EXPECTED = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text",
    "list": "a list", "tuple": "a list", "set": "a list", "frozen_set": "a list", "dict": "a section",
    "mapping": "a section", "model": "a section", "dataclass": "a section", "bytes": "a text",
    "path": "a path", "date": "a date", "time": "a time", "time_delta": "a duration", "url": "an address",
    "decimal": "a number", "finite": "a finite number", "none": "null", "iterable": "a list",
}  # fmt: skip
"""Expectations by how the type of an error begins."""
_LIMITS = {
    "greater_than": ("gt", "> "), "greater_than_equal": ("ge", ">= "), "less_than": ("lt", "< "),
    "less_than_equal": ("le", "<= "), "multiple_of": ("multiple_of", "a multiple of "),
    "string_too_short": ("min_length", "a text with a length >= "),
    "string_too_long": ("max_length", "a text with a length <= "),
    "string_pattern_mismatch": ("pattern", "a text that matches "),
    "too_short": ("min_length", "with a length >= "), "too_long": ("max_length", "with a length <= "),
}  # fmt: skip


class PathStep(NamedTuple):
    """A step of an error's location: a key of the recipe, or the alternative of a union."""

    key: str | int
    alternative: bool = False


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """A value that the classes refuse.

    `kind` is `missing`, `extra` or `type`; `expected` says in words what is accepted, `message` is
    pydantic's own, `value` what the recipe has (the section in which a missing key is missing).
    """

    path: Path
    kind: str
    expected: str
    message: str
    value: object


@dataclass(frozen=True, slots=True)
class _Error:
    steps: tuple[PathStep, ...]
    type: str
    message: str
    context: Mapping[str, Any]
    value: object

    @property
    def path(self) -> Path:
        return tuple(step.key for step in self.steps if not step.alternative)


def problems(errors: Iterable[Mapping[str, Any]]) -> list[SchemaProblem]:
    """Return what pydantic's errors say, each key once, in their order."""
    read = [_read(error) for error in errors]
    merged: dict[Path, SchemaProblem] = {}
    for problem in _reduced(read, 0):
        earlier = merged.get(problem.path)
        if earlier is None:
            merged[problem.path] = problem
        elif problem.expected not in earlier.expected.split(" or "):
            merged[problem.path] = SchemaProblem(
                problem.path, earlier.kind, f"{earlier.expected} or {problem.expected}", earlier.message,
                problem.value,
            )  # fmt: skip
    return list(merged.values())


def _read(error: Mapping[str, Any]) -> _Error:
    steps = []
    for item in error["loc"]:
        alternative = isinstance(item, str) and item.startswith(ALTERNATIVE) and item[1:].isdigit()
        if item != "[key]":
            steps.append(PathStep(item, alternative))
    return _Error(tuple(steps), error["type"], error["msg"], error.get("ctx") or {}, error.get("input"))


def _reduced(errors: list[_Error], start: int) -> Iterator[SchemaProblem]:
    """Yield the problems of errors whose first steps agree with one another up to `start`."""
    groups: dict[tuple[PathStep, ...], list[_Error]] = {}
    for error in errors:
        ahead = next(
            (n for n in range(start, len(error.steps)) if error.steps[n].alternative), len(error.steps)
        )
        groups.setdefault(error.steps[:ahead], []).append(error)
    for prefix, group in groups.items():
        plain = [error for error in group if len(error.steps) == len(prefix)]
        yield from map(_problem, plain)
        branches: dict[str | int, list[_Error]] = {}
        for error in group:
            if len(error.steps) > len(prefix):
                branches.setdefault(error.steps[len(prefix)].key, []).append(error)
        if branches:
            yield from _of_union(list(branches.values()), len(prefix) + 1)


def _of_union(branches: list[list[_Error]], start: int) -> Iterator[SchemaProblem]:
    """Yield the problems of the branch that was meant: the one that suits the value's outer form best."""
    inside = [branch for branch in branches if any(len(error.steps) > start for error in branch)]
    if not inside:
        for branch in branches:
            yield from map(_problem, branch)
        return
    suiting = [branch for branch in inside if not _mismatches(branch, start)]
    if not suiting:
        # No branch takes the value that would choose between them, `enabled` for instance.
        mismatches = [error for branch in inside for error in _mismatches(branch, start)]
        if len({error.path for error in mismatches}) == 1:
            yield from map(_problem, mismatches)
            return
    yield from _reduced(min(suiting or inside, key=len), start)


def _mismatches(branch: list[_Error], start: int) -> list[_Error]:
    return [error for error in branch if error.type == "literal_error" and len(error.steps) == start + 1]


def _problem(error: _Error) -> SchemaProblem:
    kind = {"missing": "missing", "extra_forbidden": "extra"}.get(error.type, "type")
    return SchemaProblem(
        error.path, kind, expectation(error.type, error.context, error.message), error.message, error.value
    )


def expectation(kind: str, context: Mapping[str, Any], message: str) -> str:
    """Return in words what an error of pydantic says is accepted."""
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"{words}{context.get(name, '…')}"
    if kind in ("literal_error", "enum"):
        return _choices(str(context.get("expected", "")))
    if kind == "invalid_key":
        return "a section whose keys are texts"
    prefix = next((name for name in _EXPECTED if kind.startswith(f"{name}_")), None)
    if prefix is not None:
        return _EXPECTED[prefix]
    return message[:1].lower() + message[1:]


def _choices(expected: str) -> str:
    """Return the values that a literal allows, as a recipe has them."""
    words = {"True": "true", "False": "false", "None": "null"}
    return words.get(expected, expected)
