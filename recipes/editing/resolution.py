"""Effective values of a text under edit: also where NeMo-RL would refuse the recipe, as far as they go."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.chain import DEFAULTS, Chain
from recipes.errors import RecipeError
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.interpolation import Evaluator, UnsupportedError
from recipes.keys import KeyPath
from recipes.overrides import apply_overrides, parse_overrides
from recipes.values import EMPTY, Leaf, Map, Seq, Value
from recipes.yaml.scalars import Scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recipes.editing.edit_state import EditState

_DEEPEST = 40
"""Nesting past which values are left as written: an interpolation may lead round in a circle."""


@dataclass(frozen=True)
class Resolution:
    """Effective recipe; with an `error`, NeMo-RL refuses it, and what cannot be resolved is as written."""

    recipe: EffectiveRecipe
    error: RecipeError | None = None
    complete: bool = True
    """Whether all files of the chain could be read."""


def resolve_state(resolver: Resolver, state: EditState, overrides: Sequence[str] = ()) -> Resolution:
    """Resolve a state's last good text."""
    revision = state.revision
    try:
        return Resolution(
            resolver.resolve(state.path, overrides, tree=revision.tree, composed=revision.composed)
        )
    except RecipeError as error:
        return _as_far_as_possible(resolver, state, overrides, error)


def _as_far_as_possible(
    resolver: Resolver, state: EditState, overrides: Sequence[str], error: RecipeError
) -> Resolution:
    revision = state.revision
    base, complete = EMPTY, True
    files: tuple[str, ...] = (str(state.path),)
    try:
        chain: Chain = resolver.reader.chain(state.path, revision.tree, revision.composed)
        merged = resolver.reader.merged(chain, strict=False)
        base, files = resolver.reader.base(chain, strict=False), tuple(chain.files())
    except RecipeError:
        complete = False
        own = revision.values
        merged = _without_defaults(own) if isinstance(own, Map) else EMPTY
    with contextlib.suppress(RecipeError):  # of an override that cannot be read: it changes nothing
        merged = apply_overrides(merged, parse_overrides(overrides), strict=False)
    evaluator = Evaluator(merged)
    values: dict[Any, Any] = {key: _lenient(evaluator, value, (key,)) for key, value in merged.items.items()}
    return Resolution(
        EffectiveRecipe(state.path, values, merged, base, files, evaluator), error, complete=complete
    )


def _without_defaults(own: Map) -> Map:
    return Map({key: value for key, value in own.items.items() if key != DEFAULTS}, own.mark)


def _lenient(evaluator: Evaluator, value: Value, path: KeyPath, depth: int = 0) -> Any:  # noqa: ANN401
    """Return a value's data, with interpolations that cannot be resolved as they are written."""
    try:
        settled, settled_path = evaluator.settle(value, path)
    except UnsupportedError:
        evaluator.forget_busy()
        settled, settled_path = value, path
    if isinstance(settled, Leaf):
        data: Scalar = settled.value
        return data
    if depth > _DEEPEST:
        return None
    if isinstance(settled, Seq):
        return [
            _lenient(evaluator, item, (*settled_path, index), depth + 1)
            for index, item in enumerate(settled.items)
        ]
    return {
        key: _lenient(evaluator, item, (*settled_path, key), depth + 1) for key, item in settled.items.items()
    }
