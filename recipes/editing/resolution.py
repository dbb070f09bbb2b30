"""Effective values of a text under edit: also where NeMo-RL would refuse the recipe, as far as they go.

What surely cannot be resolved is said without OmegaConf, which takes 0.1 s for a recipe of 10 kB: while an
interpolation is typed, that would be at every key.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.chain import DEFAULTS, Chain
from recipes.errors import FilePosition, RecipeError
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.interpolation import Evaluator, UnresolvedError, UnsupportedError, is_interpolation
from recipes.keys import KeyPath
from recipes.overrides import OVERRIDE_FILE, Override, apply_overrides, parse_overrides
from recipes.values import EMPTY, Leaf, Map, Seq, Value, leaves

if TYPE_CHECKING:
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
    chain: Chain | None = None
    parsed: list[Override] = []
    try:
        chain = resolver.reader.chain(state.path, revision.tree, revision.composed)
        parsed = parse_overrides(overrides)
        if chain.exact:
            try:
                return Resolution(resolver.by_ourselves(chain, parsed))
            except UnsupportedError as error:
                refusal = _sure_refusal(resolver, chain, parsed, error)
                if refusal is not None:
                    raise refusal from error
        return Resolution(
            resolver.resolve(state.path, overrides, tree=revision.tree, composed=revision.composed)
        )
    except RecipeError as error:
        return Resolution(
            _as_far_as_possible(resolver, state, chain, parsed), error, complete=chain is not None
        )


def _sure_refusal(
    resolver: Resolver, chain: Chain, overrides: Sequence[Override], error: UnsupportedError
) -> RecipeError | None:
    """Return the error of a recipe that OmegaConf refuses for sure; None where only it can tell."""
    unclosed = _unclosed(chain)
    if unclosed is not None:
        return _refusal(unclosed, "it is not closed")
    if not isinstance(error, UnresolvedError):
        return None
    merged = apply_overrides(resolver.reader.merged(chain, strict=False), overrides, strict=False)
    evaluator = Evaluator(merged)
    for path, leaf in leaves(merged):
        try:
            evaluator.settle(leaf, path)
        except UnsupportedError as reason:
            evaluator.forget_busy()
            return _refusal(leaf, str(reason)) if isinstance(reason, UnresolvedError) else None
    return None


def _unclosed(chain: Chain) -> Leaf | None:
    """Return an interpolation of the recipe's own text with fewer closing braces than it opens."""
    for _, value in leaves(chain.source.values):
        text = value.value if isinstance(value, Leaf) else None
        if not isinstance(text, str) or not is_interpolation(text) or "\\" in text:
            continue
        if isinstance(value, Leaf) and text.count("${") > text.count("}"):
            return value
    return None


def _refusal(leaf: Value, reason: str) -> RecipeError:
    written = leaf.value if isinstance(leaf, Leaf) else ""
    position = FilePosition(leaf.mark.file, 0 if leaf.mark.file == OVERRIDE_FILE else leaf.mark.line)
    return RecipeError(
        f"NeMo-RL would refuse this recipe: the interpolation {written} cannot be resolved: {reason}",
        where=position,
    )


def _as_far_as_possible(
    resolver: Resolver, state: EditState, chain: Chain | None, overrides: Sequence[Override]
) -> EffectiveRecipe:
    base: Map = EMPTY
    files: tuple[str, ...] = (str(state.path),)
    if chain is not None:
        merged = resolver.reader.merged(chain, strict=False)
        base, files = resolver.reader.base(chain, strict=False), tuple(chain.files())
    else:
        own = state.revision.values
        merged = _without_defaults(own) if isinstance(own, Map) else EMPTY
    with contextlib.suppress(UnsupportedError):
        merged = apply_overrides(merged, overrides, strict=False)
    evaluator = Evaluator(merged)
    values: dict[Any, Any] = {key: _lenient(evaluator, value, (key,)) for key, value in merged.items.items()}
    return EffectiveRecipe(state.path, values, merged, base, files, evaluator)


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
        return settled.value
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
