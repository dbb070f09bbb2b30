"""Comments and positions of a recipe's values, in whichever file of the chain each is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from recipes.yaml.comments import Comment, comment_at
from recipes.yaml.find import Spot
from recipes.yaml.nodes import MappingNode, Node, SequenceNode

if TYPE_CHECKING:
    from recipes.chain import RecipeReader
    from recipes.values import Value
    from recipes.yaml.check import Trail
    from recipes.yaml.nodes import Tree


@dataclass(slots=True)
class SpotIndex:
    """Written nodes of one text by their offset, with the comments that were asked for."""

    tree: Tree
    spots: dict[int, Spot]
    comments: dict[int, Comment] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: Tree) -> SpotIndex:
        """Index a text."""
        spots: dict[int, Spot] = {}
        if tree.root is not None:
            _index(tree.root, (), spots)
        return cls(tree, spots)

    def comment(self, start: int) -> Comment | None:
        """Return the comment of the key whose value is written at an offset; None where none is."""
        if start not in self.comments:
            spot = self.spots.get(start)
            if spot is None:
                return None
            self.comments[start] = comment_at(self.tree, spot)
        return self.comments[start]


@dataclass(slots=True)
class ChainComments:
    """Look-up of the comments of a chain; `tree` is the recipe's own text, `files` the whole chain."""

    reader: RecipeReader
    tree: Tree
    files: tuple[str, ...]
    indexes: dict[str, SpotIndex] = field(default_factory=dict)
    """Indexed texts by file; may be handed on to the next look-up, which keeps those that still hold."""

    def of(self, value: Value) -> Comment:
        """Return the comments above and beside a key: its own, or those of what it replaced."""
        above = beside = ""
        current: Value | None = value
        while current is not None and not (above and beside):
            comment = self.own(current)
            if comment is not None:
                above, beside = above or comment.above, beside or comment.beside
            current = current.under
        return Comment(above, beside)

    def own(self, value: Value) -> Comment | None:
        """Return the comment of a key where its value is written; None for an override's."""
        index = self.index_of(value.mark.file)
        return index.comment(value.mark.start) if index is not None else None

    def spot(self, value: Value) -> Spot | None:
        """Return the node of a value; None for an override's."""
        index = self.index_of(value.mark.file)
        return index.spots.get(value.mark.start) if index is not None else None

    def index_of(self, file: str) -> SpotIndex | None:
        """Return the index of a file of the chain."""
        if file == self.tree.name:
            tree = self.tree
        elif file in self.files:
            try:
                tree = self.reader.source(Path(file)).tree
            except RecipeError:  # it was there when the chain was read, and has gone
                return None
        else:
            return None
        index = self.indexes.get(file)
        if index is None or index.tree is not tree:
            index = self.indexes[file] = SpotIndex.of(tree)
        return index


def _index(node: Node, trail: Trail, spots: dict[int, Spot]) -> None:
    if not isinstance(node, MappingNode | SequenceNode):
        return
    for number, value in enumerate([child.value for child in node.children]):
        way = (*trail, (node, number))
        spots.setdefault(value.start, Spot(value, way))
        _index(value, way, spots)
