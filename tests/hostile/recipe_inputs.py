"""Generators of hostile recipes: each makes any number of attempts from a random number generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from random import Random

from tests.hostile.attempts import Attempt
from tests.hostile.recipe_bombs import (
    alias_bombs,
    diamonds,
    expanded_sections,
    interpolation_bombs,
    large_texts,
    many_values,
    nesting,
    numbers,
    odd_interpolations,
)
from tests.hostile.recipe_texts import hostile_keys, hostile_names, mutations, secrets, special_files, tags

KINDS: tuple[Callable[[Random], Attempt], ...] = (
    special_files,
    interpolation_bombs,
    odd_interpolations,
    alias_bombs,
    diamonds,
    numbers,
    nesting,
    tags,
    mutations,
    hostile_keys,
    hostile_names,
    secrets,
)
LARGE: tuple[Callable[[Random], Attempt], ...] = (large_texts, many_values, expanded_sections)
"""Generators whose attempts take seconds each."""


def recipe_attempts(
    count: int, seed: int, kinds: tuple[Callable[[Random], Attempt], ...] = KINDS
) -> Iterator[Attempt]:
    """Yield attempts of each kind in turn."""
    random = Random(seed)
    for _, kind in zip(range(count), cycle(kinds), strict=False):
        yield kind(random)
