"""Bounds of what interpolations would make of a recipe, found before anything is evaluated.

A text names keys; whatever it may name counts with its whole size, each name where it stands. So the bound
is never below what our evaluator or OmegaConf's would make, however the interpolation is written.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from recipes.errors import FilePosition, RecipeError
from recipes.interpolation import is_interpolation, is_simple
from recipes.keys import list_index
from recipes.limits import (
    DEPTH,
    HARD_INTERPOLATIONS,
    INTERPOLATION_CHARACTERS,
    INTERPOLATION_DEPTH,
    INTERPOLATION_LINKS,
    MADE_CHARACTERS,
    VALUES,
)
from recipes.values import Leaf, Map, Measure, Seq, Value, around, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.keys import KeyPath, Step
    from recipes.limits import Limit

_NAME = re.compile(r"\.*[\w$-]+(?:[.\[\]]+[\w$-]+)*", re.ASCII)
"""Whatever may be a key in an interpolation: also the text that `oc.select` takes, and nested ones."""
_ALONE = re.compile(r"\$\{[^${}:]*\}")
"""A section that such a text names stands for it; any other text takes a section as text."""
_DECODE = "oc.decode"
"""Resolver that parses a text, whatever that is."""
_WORD = re.compile(r"\w+", re.ASCII)
_STEPS = re.compile(r"[.\[\]]+")
_USUAL_LENGTH = 200
"""Characters of a text whose names are kept."""


class _Bound(NamedTuple):
    """Measure of a value with interpolations followed, and the longest chain of them inside it."""

    extent: Measure
    links: int


_NUMBER = 20
"""Characters of a number in a text, about."""
_NOTHING = _Bound(Measure(1, 0, 0), 0)


def refuse_bombs(root: Map) -> None:
    """Raise `RecipeError` where interpolations would make more than the limits allow."""
    bounds = _Bounds(root)
    values = characters = 0
    for path, leaf in _interpolations(root, ()):
        extent = bounds.of(leaf, path, 0).extent
        values, characters = values + extent.values, characters + extent.characters
        bounds.check(leaf, path, _Bound(Measure(values, characters, len(path) + extent.height), 0))


def refuse_brackets(text: str) -> bool:
    """Return whether a text nests brackets deeper than an interpolation may."""
    if sum(map(text.count, "{[(")) <= INTERPOLATION_DEPTH.value:
        return False
    depth = 0
    for character in text:
        if character in "{[(":
            depth += 1
            if depth > INTERPOLATION_DEPTH.value:
                return True
        elif character in "}])":
            depth -= 1
    return False


@dataclass
class _Bounds:
    root: Map
    known: dict[KeyPath, _Bound] = field(default_factory=dict)
    busy: set[KeyPath] = field(default_factory=set)
    hard: int = 0

    def of(self, value: Value, path: KeyPath, links: int) -> _Bound:
        """Return the bound of a value; `links` interpolations led here."""
        if isinstance(value, Leaf) and not is_interpolation(value.value):
            return _Bound(measure(value), 0)
        if path in self.known:
            return self.known[path]
        if path in self.busy:  # a circle, which the evaluator reports
            return _NOTHING
        self.busy.add(path)
        if isinstance(value, Leaf):
            bound = self.of_text(value, path, links)
        else:
            inner = [self.of(item, inner_path, links) for inner_path, item in _children(value, path)]
            bound = _Bound(
                around(value, (item.extent for item in inner)), max((item.links for item in inner), default=0)
            )
        self.busy.discard(path)
        self.check(value, path, bound)
        self.known[path] = bound
        return bound

    def of_text(self, leaf: Leaf, path: KeyPath, links: int) -> _Bound:
        """Return the bound of an interpolation: the sum of all that it may name."""
        text = str(leaf.value)
        if len(text) > INTERPOLATION_CHARACTERS.value:
            self.refuse(leaf, path, "is a text with interpolations longer than", INTERPOLATION_CHARACTERS)
        if refuse_brackets(text):
            self.refuse(leaf, path, "nests brackets deeper than", INTERPOLATION_DEPTH)
        if links >= INTERPOLATION_LINKS.value:
            self.refuse(leaf, path, "is reached through more than", INTERPOLATION_LINKS)
        made, longest = Measure(1, len(text) + _from_environment(text), 0), 0
        alone = _ALONE.fullmatch(text) is not None
        for target, target_path in named_values(self.root, text, path):
            size, further = self.of(target, target_path, links + 1)
            made, longest = _with(made, size, alone=alone), max(longest, further)
            if made.values > VALUES.value:  # a text may hold thousands of names
                break
        if not is_simple(text):
            made = self.by_omegaconf(leaf, path, made)
        return _Bound(made, longest + 1)

    def by_omegaconf(self, leaf: Leaf, path: KeyPath, made: Measure) -> Measure:
        """Return what OmegaConf's own parser and resolvers may make of a text; `made` is what it names."""
        text = str(leaf.value)
        decoded = made.characters if _DECODE in text else 0
        self.hard += len(text) + decoded
        if self.hard > HARD_INTERPOLATIONS.value:
            how = "is one interpolation too many for OmegaConf's parser: at most"
            self.refuse(leaf, path, how, HARD_INTERPOLATIONS)
        # Collections that are written in the text, or in texts that it decodes.
        written = sum(map(text.count, "{[,:")) + decoded
        height = made.height + min(written, INTERPOLATION_DEPTH.value)
        return Measure(made.values + written, made.characters, height)

    def check(self, value: Value, path: KeyPath, bound: _Bound) -> None:
        """Raise `RecipeError` for a bound above the limits."""
        if bound.links > INTERPOLATION_LINKS.value:
            self.refuse(value, path, "leads through more than", INTERPOLATION_LINKS)
        if bound.extent.values > VALUES.value:
            self.refuse(value, path, "would have more than", VALUES)
        if bound.extent.characters > MADE_CHARACTERS.value:
            self.refuse(value, path, "would make more text than", MADE_CHARACTERS)
        if bound.extent.height > DEPTH.value:
            self.refuse(value, path, "would nest deeper than", DEPTH)

    @staticmethod
    def refuse(value: Value, path: KeyPath, how: str, limit: Limit) -> NoReturn:
        from recipes.keys import format_key
        from recipes.yaml.scalars import shortened

        name = f"'{shortened(format_key(path))}'" if path else "the recipe"
        where = FilePosition(value.mark.file, value.mark.line)
        fix = "Write the value out, or leave it out; the limits are in docs/security.md."
        raise RecipeError(f"invalid interpolation: {name} {how} {limit}", where=where, fix=fix)


def _with(made: Measure, size: Measure, *, alone: bool) -> Measure:
    """Return the measure of a text that takes in a value: a section stands there as a whole, or as text."""
    characters = size.characters or _NUMBER
    if not size.height:
        return Measure(made.values, made.characters + characters, made.height)
    if not alone:  # brackets, numbers and, in texts that hold texts, every quote once more
        characters = 2 * size.characters + _NUMBER * size.values
    return Measure(made.values + size.values, made.characters + characters, max(made.height, size.height))


def _from_environment(text: str) -> int:
    """Return the characters that the variables of the environment may bring that a text names."""
    if "oc.env" not in text:
        return 0
    return sum(len(os.environ.get(word, "")) for word in _WORD.findall(text))


def named_values(root: Map, text: str, path: KeyPath) -> Iterator[tuple[Value, KeyPath]]:
    """Yield the values that an interpolation may name, up to where another one stands in the way."""
    for dots, steps in _names_in(text) if len(text) <= _USUAL_LENGTH else _parsed_names(text):
        base = path[: max(len(path) - dots, 0)] if dots else ()
        located = _locate(root, (*base, *steps))
        if located is not None:
            yield located


def _parsed_names(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the dots at the beginning and the steps of each name in a text."""
    for match in _NAME.finditer(text):
        name = match[0].lstrip(".")
        yield len(match[0]) - len(name), tuple([step for step in _STEPS.split(name) if step])


@lru_cache(maxsize=1024)  # the same few texts at each keystroke
def _names_in(text: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    return tuple(_parsed_names(text))


def _locate(root: Map, steps: KeyPath) -> tuple[Value, KeyPath] | None:
    value: Value = root
    path: KeyPath = ()
    for step in steps:
        if isinstance(value, Leaf):
            return (value, path) if is_interpolation(value.value) else None
        keys = [key for key in _meanings(step) if _has(value, key)]
        if not keys:
            return None
        path, value = (*path, keys[0]), value.items[keys[0]]  # type: ignore[index] # a key of its kind
    return value, path


def _meanings(step: Step) -> tuple[Step, ...]:
    """Return the keys that a step of a name may mean, without a search through the mapping's keys."""
    if not isinstance(step, str):
        return (step,)
    index = list_index(step)
    return (step, {"true": True, "false": False}.get(step, step)) if index is None else (step, index)


def _has(value: Map | Seq, key: Step) -> bool:
    if isinstance(value, Map):
        return key in value.items
    return isinstance(key, int) and 0 <= key < len(value.items)


def _interpolations(value: Map | Seq, path: KeyPath) -> Iterator[tuple[KeyPath, Leaf]]:
    """Yield the interpolations below a value with their paths."""
    for step, item in value.items.items() if isinstance(value, Map) else enumerate(value.items):
        if not isinstance(item, Leaf):
            yield from _interpolations(item, (*path, step))
        elif isinstance(item.value, str) and "${" in item.value:
            yield (*path, step), item


def _children(value: Map | Seq, path: KeyPath) -> Iterator[tuple[KeyPath, Value]]:
    items = value.items.items() if isinstance(value, Map) else enumerate(value.items)
    for step, item in items:
        yield (*path, step), item
