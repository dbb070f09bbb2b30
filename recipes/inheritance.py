"""A recipe's `defaults:` chain and overrides, resolved to effective values with their origins.

The result equals what NeMo-RL's loader gives (`load_config`, Hydra overrides, then
`OmegaConf.to_container(resolve=True)`). It is computed by `recipes.merge` and
`recipes.interpolation`; where those do not vouch for it, by OmegaConf itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recipes.bounds import refuse_bombs
from recipes.chain import RecipeReader
from recipes.errors import FilePosition, RecipeError
from recipes.interpolation import RESOLVERS, Evaluator, UnsupportedError, is_interpolation
from recipes.keys import KeyPath, Step, format_key, nearest_key, parse_key
from recipes.overrides import OVERRIDE_FILE, Override, apply_overrides, parse_overrides
from recipes.reference import ResolveError, resolve_by_omegaconf
from recipes.remote_path import environment_at
from recipes.values import Leaf, Map, Value, child, find, item_index, leaves
from recipes.withheld import Withheld

_NO_SUCH_KEY = re.compile(r"Could not override '([^']+)'")
_UNSUPPORTED = re.compile(r"Unsupported interpolation type (\S+)")
"""Message of OmegaConf for a function that is not registered (omegaconf/base.py)."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from recipes.chain import Chain
    from recipes.yaml.compose import Composed
    from recipes.yaml.nodes import Tree


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a value.

    `how` is own, parent, merge (`<<` or an alias), override or interpolation; `line` counts from 1, for
    an override it is the override's number.
    """

    file: str
    line: int
    how: str


@dataclass(frozen=True)
class EffectiveRecipe:
    """Effective values, as NeMo-RL gets them: after inheritance, overrides and interpolation.

    `merged` holds the same before interpolation, `inherited` what the parents alone would give, `files`
    the chain in the order of merging.
    """

    path: Path
    values: dict[str, Any]
    merged: Map
    inherited: Map
    files: tuple[str, ...]
    evaluator: Evaluator
    chain: Chain | None = None
    """The recipe with its parents; None where it could be read in part only."""

    @cached_property
    def public(self) -> dict[str, Any]:
        """Values as they may be printed and stored: what comes from a secret variable is as it is written."""
        withheld = Withheld.of(self.merged, environment_at(self.path))
        values: dict[str, Any] = withheld.public(self.merged, self.values)
        return values

    @property
    def secret_variables(self) -> frozenset[str]:
        """Names of the secret variables of the environment that values come from."""
        return Withheld.of(self.merged, environment_at(self.path)).names(self.merged, ())

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - a recipe holds anything
        """Return the value at a dotted key (list items by number), or the default."""
        return _data_at(self.values, key, default)

    def get_public(self, key: str, default: object = None) -> Any:  # noqa: ANN401
        """Return the value at a dotted key as it may be printed, or the default."""
        return _data_at(self.public, key, default)

    def has(self, key: str) -> bool:
        """Return whether there is a value, null included, at a dotted key."""
        missing = object()
        return self.get(key, missing) is not missing

    def leaf_keys(self) -> Iterator[str]:
        """Every leaf as a dotted key: scalars and empty collections."""
        return (format_key(path) for path, _ in leaves(self.merged))

    def origin(self, key: str) -> Origin | None:
        """Return where the value at a dotted key was written, None if there is no such key."""
        located = self.locate(parse_key(key))
        return None if located is None else self.origin_of(located[0])

    def locate(self, path: KeyPath) -> tuple[Value, KeyPath] | None:
        """Return what is written for a key, and at which key: a section by interpolation ends the way."""
        value: Value = self.merged
        settled_path: KeyPath = ()
        for step in path:
            settled = self._settle(value, settled_path)
            match = child(settled[0], step)
            if match is None:
                return None
            if settled[1] != settled_path and isinstance(value, Leaf):
                # The section stands here through an interpolation: that is the value's origin.
                return value, settled_path
            step, value = match
            settled_path = (*settled_path, step)
        return value, settled_path

    def origin_of(self, value: Value) -> Origin:
        """Return where a value is written, and the mechanism by which it got there."""
        mark = value.mark
        if isinstance(value, Leaf) and is_interpolation(value.value):
            how = "interpolation"
        elif mark.override:
            how = "override"
        elif mark.merged:
            how = "merge"
        else:
            how = "own" if mark.file == str(self.path) else "parent"
        return Origin(mark.file, mark.line, how)

    def _settle(self, value: Value, path: KeyPath) -> tuple[Value, KeyPath]:
        try:
            return self.evaluator.settle(value, path)
        except UnsupportedError:
            return value, path


def _data_at(data: object, key: str, default: object) -> Any:  # noqa: ANN401 - a recipe holds anything
    value = data
    for step in parse_key(key):
        match = _data_child(value, step)
        if match is None:
            return default
        value = match[0]
    return value


def _data_child(value: object, step: Step) -> tuple[Any] | None:
    if isinstance(value, dict):
        if step in value:
            return (value[step],)
        return next(
            ((item,) for key, item in value.items() if not isinstance(key, str) and str(key) == step), None
        )
    if isinstance(value, list):
        index = item_index(step, len(value))
        return None if index is None else (value[index],)
    return None


def resolve(path: Path, overrides: Sequence[str] = ()) -> EffectiveRecipe:
    """Resolve a recipe file and Hydra overrides; raises `RecipeError` with the place of the fault."""
    return Resolver().resolve(path, overrides)


class Resolver:
    """Resolver that keeps parsed and merged parents for as long as their bytes stay the same."""

    def __init__(self, reader: RecipeReader | None = None) -> None:
        self.reader = reader or RecipeReader()

    def resolve(
        self,
        path: Path,
        overrides: Sequence[str] = (),
        *,
        tree: Tree | None = None,
        composed: Composed | None = None,
    ) -> EffectiveRecipe:
        """Resolve a recipe; `tree` is its parsed text where that is not the file's."""
        chain = self.reader.chain(path, tree, composed)
        parsed = parse_overrides(overrides)
        if chain.exact:
            try:
                return self.by_ourselves(chain, parsed)
            except UnsupportedError:
                pass  # OmegaConf decides below, and words the failure if it is one
        return self._by_omegaconf(chain, parsed)

    def by_ourselves(self, chain: Chain, overrides: Sequence[Override]) -> EffectiveRecipe:
        """Resolve a chain without OmegaConf.

        Raises:
            UnresolvedError: OmegaConf cannot resolve it either.
            UnsupportedError: only OmegaConf can resolve it.
        """
        merged = apply_overrides(self.reader.merged(chain), overrides)
        refuse_bombs(merged)
        evaluator = Evaluator(merged, environment_at(chain.source.path))
        values = evaluator.plain(merged, ())
        return _effective(chain, merged, self.reader.base(chain), evaluator, values)

    def _by_omegaconf(self, chain: Chain, overrides: Sequence[Override]) -> EffectiveRecipe:
        merged = apply_overrides(self.reader.merged(chain, strict=False), overrides, strict=False)
        refuse_bombs(merged)
        try:
            values = resolve_by_omegaconf(chain, [override.text for override in overrides])
        except ResolveError as error:
            raise _explained(error, chain, merged) from error
        evaluator = Evaluator(merged, environment_at(chain.source.path))
        for path, value in leaves(merged):
            _note_reads(evaluator, path, value)
        return _effective(chain, merged, self.reader.base(chain, strict=False), evaluator, values)


def _note_reads(evaluator: Evaluator, path: KeyPath, value: Value) -> None:
    """Note what an interpolation reads where only OmegaConf can evaluate it."""
    if not isinstance(value, Leaf) or not is_interpolation(value.value):
        return
    try:
        evaluator.settle(value, path)
    except UnsupportedError:
        evaluator.forget_busy()
        return


def _effective(chain: Chain, merged: Map, base: Map, evaluator: Evaluator, values: object) -> EffectiveRecipe:
    assert isinstance(values, dict)
    return EffectiveRecipe(chain.source.path, values, merged, base, tuple(chain.files()), evaluator, chain)


def _nearest(key: str, keys: Iterable[str]) -> str:
    try:
        return nearest_key(key, keys)
    except RecipeError:  # Hydra's own spelling of a key
        return ""


def _explained(error: ResolveError, chain: Chain, merged: Map) -> RecipeError:
    """Turn OmegaConf's refusal into an error that names the place."""
    if error.override:
        fix = "Write KEY=VALUE to change, +KEY=VALUE to add, ++KEY=VALUE for either, ~KEY to delete."
        missing = _NO_SUCH_KEY.search(error.what)
        keys = (format_key(path) for path, _ in leaves(merged))
        near = _nearest(missing[1], keys) if missing else ""
        fix = f"Did you mean {near}? {fix}" if near else fix
        return RecipeError(f"The override cannot be applied: {error.what}", where=error.key, fix=fix)
    position = FilePosition(str(chain.source.path))
    try:
        value = find(merged, parse_key(error.key.replace("[", ".").replace("]", ""))) if error.key else None
    except RecipeError:
        value = None
    key = f" (at {error.key})" if error.key else ""
    if value is not None and value.mark.file != OVERRIDE_FILE:
        position = FilePosition(value.mark.file, value.mark.line)
    unsupported = _UNSUPPORTED.fullmatch(error.what)
    if unsupported:  # a fork may have functions of its own, and its code is not run here
        names = ", ".join(sorted(RESOLVERS))
        fix = (
            f"If your NeMo-RL has it, give the value: {error.key or 'KEY'}=VALUE, or write it in the recipe."
        )
        what = f"cannot compute {unsupported[1]}(…){key}: NeMo-RL's functions are {names} and oc.*"
        return RecipeError(what, where=position, fix=fix)
    return RecipeError(f"NeMo-RL would refuse this recipe: {error.what}{key}", where=position)
