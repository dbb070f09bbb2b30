"""Text of a recipe as read, and whether OmegaConf reads an edited one as we do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from recipes.values import Plain, Seq, Value, leaves, plain
from recipes.yaml.check import EditRefusedError
from recipes.yaml.compose import Composed, compose
from recipes.yaml.reader import read_fast
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from recipes.keys import KeyPath
    from recipes.yaml.nodes import Tree


@dataclass(frozen=True)
class Revision:
    """State of a document."""

    tree: Tree

    @cached_property
    def composed(self) -> Composed:
        """Values, and why OmegaConf may refuse them."""
        return compose(self.tree)

    @property
    def values(self) -> Value | None:
        """Values with where they are written; None for an empty text."""
        return self.composed.value

    @cached_property
    def data(self) -> Plain:
        """Values as plain data."""
        return None if self.values is None else plain(self.values)


def check_reads_back(before: Revision, after: Revision, name: str) -> None:
    """Raise `EditRefusedError` where OmegaConf refuses an edited text, or reads it otherwise than we do."""
    problems = after.composed.problems
    if problems and len(problems) >= max(1, len(before.composed.problems)):
        problem = problems[0]
        where = after.tree.position(problem.start)
        raise EditRefusedError(
            f"OmegaConf would refuse the recipe: {problem.what}", where=where, fix=problem.fix
        )
    if problems:
        return
    try:
        data = read_fast(after.tree.text, name)
    except RecipeError as error:
        what = f"OmegaConf would refuse the recipe: {error.what}"
        raise EditRefusedError(what, where=error.where) from error
    if same(data, after.data):
        return
    # PyYAML's versions read some merges differently; where it did so before, it is not the edit's doing.
    if before.composed.uncertain and not same(read_fast(before.tree.text, name), before.data):
        return
    raise EditRefusedError("OmegaConf would not read the edited text back as the intended values", where=name)


def changed_leaves(before: Value | None, after: Value | None) -> list[KeyPath]:
    """List the leaves that are new, gone or of another value."""
    old = dict(leaves(before)) if before is not None else {}
    new = dict(leaves(after)) if after is not None else {}
    paths = [
        path
        for path, value in new.items()
        if path not in old or not same(_plain_leaf(old[path]), _plain_leaf(value))
    ]
    return paths + [path for path in old if path not in new]


def _plain_leaf(value: Value) -> Plain:
    return [] if isinstance(value, Seq) else plain(value)
