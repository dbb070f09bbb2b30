"""Merging as OmegaConf and NeMo-RL do it: mappings by key, everything else replaced whole.

Follows `OmegaConf.merge` of untyped configs, and `merge_with_override` in NeMo-RL's
nemo_rl/utils/config.py. What they refuse raises `UnsupportedError`: OmegaConf then words the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.errors import FilePosition, RecipeError
from recipes.interpolation import MISSING, Evaluator, UnresolvedError, UnsupportedError, is_interpolation
from recipes.limits import VALUES
from recipes.values import Leaf, Map, Seq, Value, on_top

if TYPE_CHECKING:
    from recipes.keys import Step

OVERRIDE_KEY = "_override_"


def merge_recipes(base: Map, over: Map, *, strict: bool = True) -> Map:
    """Merge a recipe over its parents; a section with `_override_: true` replaces theirs.

    Without `strict` nothing is refused: good for origins where OmegaConf itself gives the values.

    Raises:
        UnsupportedError: with `strict`, where only OmegaConf can decide how a section merges.
    """
    base_items: dict[Step, Value] = dict(base.items)
    over_items: dict[Step, Value] = dict(over.items)
    evaluator = Evaluator(over)
    for key, value in over.items.items():
        if isinstance(value, Leaf) and value.value == MISSING:
            continue
        # NeMo-RL reads each section here, before the parents are there to answer its references.
        target, settled_path = evaluator.settle(value, (key,)) if strict else (value, (key,))
        if not isinstance(target, Map) or OVERRIDE_KEY not in target.items:
            continue
        if settled_path != (key,):
            raise UnsupportedError("a section marked _override_ is reached through an interpolation")
        flag: Value = target.items[OVERRIDE_KEY]
        if strict:
            flag, _ = evaluator.settle(flag, (key, OVERRIDE_KEY))
        if isinstance(flag, Leaf) and flag.value == MISSING:
            raise UnsupportedError("_override_ is missing")
        if not isinstance(flag, Leaf) or flag.value:
            items = {name: item for name, item in target.items.items() if name != OVERRIDE_KEY}
            under = base_items.pop(key, None)
            if strict and isinstance(under, Leaf) and is_interpolation(under.value):
                raise UnsupportedError("a section marked _override_ replaces an interpolation")
            over_items[key] = on_top(Map(items, target.mark), under)
    return merge(Map(base_items, base.mark), Map(over_items, over.mark), strict=strict)


def merge(base: Map, over: Map, *, strict: bool = True) -> Map:
    """Merge two mappings as OmegaConf does; neither is changed."""
    return _Merger(base, over, strict=strict).result


class _Merger:
    """Merger into copies, made only where something changes. References see what is merged so far."""

    def __init__(self, base: Map, over: Map, *, strict: bool) -> None:
        self.strict = strict
        self.copied = 0
        items: dict[Step, Value] = dict(base.items)
        self.result = Map(items, over.mark)
        self._into(items, over, ())

    def _into(self, items: dict[Step, Value], over: Map, path: tuple[Step, ...]) -> None:
        for key, value in over.items.items():
            if key not in items:
                items[key] = value
                continue
            was = items[key]
            old = self._expanded(was, (*path, key))
            items[key] = old
            missing = isinstance(value, Leaf) and value.value == MISSING
            if missing:
                continue
            if isinstance(old, Map) and isinstance(value, Map):
                self._count(old, was)
                inner: dict[Step, Value] = dict(old.items)
                items[key] = Map(inner, value.mark, old)
                self._into(inner, value, (*path, key))
            elif (
                not self.strict
                or isinstance(old, Leaf)
                or isinstance(value, Leaf)
                or (isinstance(old, Seq) and isinstance(value, Seq))
            ):
                items[key] = on_top(value, old)
            else:
                raise UnsupportedError("a mapping meets a list")

    def _count(self, section: Map, was: Value) -> None:
        """Count the values that a section copies; raises `RecipeError` where interpolations make too many."""
        if section is was:
            return
        self.copied += len(section.items)
        if self.copied > VALUES.value:
            where = FilePosition(was.mark.file, was.mark.line)
            fix = "Set the keys where the section is written; the limits are in docs/security.md."
            raise RecipeError(
                f"Merging into interpolated sections makes more than {VALUES}", where=where, fix=fix
            )

    def _expanded(self, old: Value, path: tuple[Step, ...]) -> Value:
        """Return the section that an interpolation stands for: OmegaConf merges into a copy of it."""
        if not isinstance(old, Leaf) or not is_interpolation(old.value):
            return old
        try:
            target, _ = Evaluator(self.result).settle(old, path)
        except UnsupportedError as error:
            if self.strict and not isinstance(error, UnresolvedError):
                raise
            return old
        return old if isinstance(target, Leaf) else target
