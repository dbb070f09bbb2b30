"""Warnings about values that were just set: keys unknown to NeMo-RL, values that its classes refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from recipes.keys import format_key, parse_key
from recipes.known_keys import known_keys
from recipes.lint import unknown_path
from recipes.schema.algorithms import algorithm_of, driver_of_algorithm
from recipes.schema.checkout_schema import schema_of
from recipes.schema.key_info import key_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from recipes.document import Document
    from recipes.inheritance import EffectiveRecipe, Resolver
    from recipes.keys import KeyPath

_USUAL = "distillation"
"""Algorithm of a recipe that has no section of any algorithm."""


def advice(
    document: Document, keys: Iterable[str], resolver: Resolver, checkout: Path | None = None
) -> list[str]:
    """Return a line for each warning about keys of a document; none where the recipe cannot be resolved.

    A key that a parent has counts as known.
    """
    try:
        path = document.path
        if path is None:
            return []
        revision = document.revision
        recipe = resolver.resolve(path, (), tree=revision.tree, composed=revision.composed)
    except RecipeError:
        return []  # whoever runs or checks it will be told
    paths = [parse_key(key) for key in keys]
    return [*_unknown(recipe, paths, checkout), *_refused(recipe, paths, checkout)]


def _unknown(recipe: EffectiveRecipe, paths: list[KeyPath], checkout: Path | None) -> Iterator[str]:
    key_tree = known_keys(algorithm_of(recipe.values) or _USUAL, checkout, apart_from=recipe.path)
    for path in paths if key_tree is not None else ():
        assert key_tree is not None
        unknown = unknown_path(recipe, path, key_tree)
        if unknown is not None:
            key, suggestion = unknown
            yield f"unknown key {key}" + (f"; did you mean {suggestion}?" if suggestion else "")


def _refused(recipe: EffectiveRecipe, paths: list[KeyPath], checkout: Path | None) -> Iterator[str]:
    schema = schema_of(driver_of_algorithm(algorithm_of(recipe.values) or _USUAL), checkout)
    if schema is None:
        return
    texts = [tuple(map(str, path)) for path in paths]
    for judgement in schema.judge(recipe.values):
        problem = judgement.problem
        steps = tuple(map(str, problem.path))
        if problem.kind == "missing" or not any(steps[: len(text)] == text for text in texts):
            continue
        from recipes.checks.core import shown  # with all rules (0.1 s): only where there is something to say

        info = key_info(schema.description, ".".join(steps))
        release = f"NeMo-RL {schema.shipped}" if schema.shipped else ""
        source = ", ".join(filter(None, (release, info.where if info is not None else "")))
        key = format_key(problem.path)
        yield f"{key} is {shown(problem.value)}, it must be {problem.expected}" + (
            f" ({source})" if source else ""
        )
