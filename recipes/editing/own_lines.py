"""Lines of a text on which each key is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from recipes.keys import KeyPath
from recipes.yaml.find import key_of
from recipes.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode, is_merge_key
from recipes.yaml.offsets import LINE_BREAK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.yaml.nodes import Entry, Item, Tree


class LineRange(NamedTuple):
    """First and last line of a key in a text, counted from 1."""

    first: int
    last: int


class WrittenKey(NamedTuple):
    """Where a key is written, and how a scalar is spelled there ("" for what has no line of its own)."""

    lines: LineRange
    spelling: str


def written_keys(tree: Tree) -> Mapping[KeyPath, WrittenKey]:
    """Return every key that a text writes itself; merged keys and those behind an alias are none."""
    return dict(_written(tree, tree.root, ())) if tree.root is not None else {}


def _written(tree: Tree, node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, WrittenKey]]:
    if isinstance(node, MappingNode):
        for entry in node.children:
            key = key_of(entry.key)
            if key is None or is_merge_key(entry.key):
                continue
            yield (*path, key), _of(tree, entry, entry.value)
            yield from _written(tree, entry.value, (*path, key))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.children):
            yield (*path, index), _of(tree, item, item.value)
            yield from _written(tree, item.value, (*path, index))


def _of(tree: Tree, child: Entry | Item, node: Node) -> WrittenKey:
    number = tree.lines.number
    first = number(child.start)
    lines = LineRange(first, max(first, number(max(child.end - 1, child.start))))
    if not isinstance(node, ScalarNode) or node.block or node.empty:
        return WrittenKey(lines, "")
    text = tree.text[node.body : node.end]
    return WrittenKey(lines, "" if LINE_BREAK.search(text) else text)
