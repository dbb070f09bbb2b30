"""Look-up of the node that is written at a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.errors import Exit, RecipeError
from recipes.keys import Step, format_key, step_text
from recipes.values import item_index
from recipes.yaml.nodes import (
    AliasNode,
    Entry,
    Item,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Tree,
    is_merge_key,
)
from recipes.yaml.scalars import Unreadable, same

if TYPE_CHECKING:
    from recipes.keys import KeyPath
    from recipes.yaml.check import Trail
    from recipes.yaml.nodes import Collection


@dataclass(frozen=True, slots=True)
class Spot:
    """Written node and the path of collections to it."""

    node: Node
    trail: Trail

    @property
    def parent(self) -> Collection:
        """Collection that holds the node; the root has none."""
        return self.trail[-1][0]

    @property
    def index(self) -> int:
        """Index of the node among its parent's children."""
        return self.trail[-1][1]

    @property
    def child(self) -> Entry | Item:
        """Entry or item whose value the node is."""
        return self.parent.children[self.index]


class NotWrittenError(RecipeError):
    """Error for a path at which nothing is written."""

    exit_code = Exit.FAILED


def find_spot(tree: Tree, path: KeyPath) -> Spot:
    """Find the node written at a path, aliases and merges not followed. Raises `NotWrittenError`."""
    node = tree.root
    trail: Trail = ()
    for step in path:
        index = child_index(node, step) if node is not None else None
        if index is None:
            raise _not_written(tree, path, node)
        assert isinstance(node, MappingNode | SequenceNode)
        trail = (*trail, (node, index))
        node = node.children[index].value
    if node is None:
        raise _not_written(tree, path, None)
    return Spot(node, trail)


def _not_written(tree: Tree, path: KeyPath, node: Node | None) -> NotWrittenError:
    where = tree.position(node.start) if node is not None else tree.name
    return NotWrittenError(f"'{format_key(path)}' is not written in {tree.name}", where=where)


def child_index(node: Node, step: Step) -> int | None:
    """Return the index of the child that a step means, None if none; of a duplicate key, the last one."""
    if isinstance(node, SequenceNode):
        return item_index(step, len(node.children))
    if not isinstance(node, MappingNode):
        return None
    keys = [key_of(entry.key) for entry in node.children]
    exact = [index for index, key in enumerate(keys) if key is not None and same(key, step)]
    if exact:
        return exact[-1]
    spelled = [
        index
        for index, key in enumerate(keys)
        if key is not None and not isinstance(key, str) and isinstance(step, str) and step_text(key) == step
    ]
    return spelled[-1] if spelled else None


def key_of(node: Node) -> Step:
    """Return the typed key, None for a merge key and for what no path can name."""
    if not isinstance(node, ScalarNode) or is_merge_key(node):
        return None
    key = node.read()
    if isinstance(key, Unreadable):
        return node.value if key.text == "=" else None
    return key


def merges(node: Node | None) -> list[str]:
    """Return the anchors that a mapping merges."""
    if not isinstance(node, MappingNode):
        return []
    names = []
    for entry in node.children:
        if is_merge_key(entry.key):
            sources = entry.value.children if isinstance(entry.value, SequenceNode) else ()
            nodes = [item.value for item in sources] or [entry.value]
            names += [source.name for source in nodes if isinstance(source, AliasNode)]
    return names
