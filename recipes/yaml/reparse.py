"""Parsing again after an edit, only where the text changed.

ruamel.yaml's scanner takes three quarters of an edit's time. An entry of a block mapping can be parsed
by itself: a text whose lines begin at some column is a mapping at that column, and nothing in it can
reach into a line that begins further left or with the next key of the mapping. So the smallest entry
around the edit is parsed, and what stands behind it moves along. The result is the very tree that
parsing the whole text gives (tested), and OmegaConf reads the whole text in any case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from recipes.yaml.lines import Lines
from recipes.yaml.nodes import AliasNode, Entry, Item, MappingNode, Node, ScalarNode, SequenceNode, Tree
from recipes.yaml.parse import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recipes.yaml.check import Splice

_NOT_LOCAL = re.compile(r"^(?:---|\.\.\.|%)|[\ufeff\x85\u2028\u2029]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """An entry on its own lines: where they begin and end, and the mappings around it, outermost first."""

    start: int
    end: int
    around: tuple[tuple[MappingNode, int], ...]


def reparse(tree: Tree, splices: Sequence[Splice], text: str) -> Tree:
    """Parse a text that splices made of a tree's text; raises `RecipeError` if it is no YAML."""
    if len(tree.roots) == 1 and splices and not _NOT_LOCAL.search(text):
        for chunk in reversed(_chunks(tree, splices)):
            local = _parse_chunk(tree, chunk, len(text) - len(tree.text), text)
            if local is not None:
                return local
    return parse(text, tree.name)


def _chunks(tree: Tree, splices: Sequence[Splice]) -> list[_Chunk]:
    """List the entries that hold all splices, the outermost first."""
    low, high = min(part.start for part in splices), max(part.end for part in splices)
    chunks: list[_Chunk] = []
    node = tree.root
    around: tuple[tuple[MappingNode, int], ...] = ()
    limit = len(tree.text)
    while isinstance(node, MappingNode) and not node.flow and _one_entry_a_line(tree, node):
        index = _entry_at(tree, node, low)
        if index is None:
            break
        around = (*around, (node, index))
        start = tree.lines.start(node.children[index].start)
        if index + 1 < len(node.children):
            limit = tree.lines.start(node.children[index + 1].start)
        # A splice at the limit would stand in front of what follows, not behind this entry.
        if low < start or not (high < limit or high == limit == len(tree.text)):
            break
        chunks.append(_Chunk(start, limit, around))
        node = node.children[index].value
    return chunks


def _one_entry_a_line(tree: Tree, node: MappingNode) -> bool:
    """Tell whether each key begins its line, all at one column, and no value began before its key's line."""
    lines, column = tree.lines, tree.lines.column(node.children[0].start) if node.children else 0
    for entry in node.children:
        if isinstance(entry.key, ScalarNode) and (entry.key.empty or entry.key.block):
            return False
        if not lines.indented(entry.start) or lines.column(entry.start) != column:
            return False
        if tree.text[entry.colon - 1 : entry.colon] != ":" or lines.number(entry.colon) != lines.number(
            entry.start
        ):
            return False
    return True


def _entry_at(tree: Tree, node: MappingNode, offset: int) -> int | None:
    found = None
    for index, entry in enumerate(node.children):
        if tree.lines.start(entry.start) > offset:
            break
        found = index
    return found


def _parse_chunk(tree: Tree, chunk: _Chunk, growth: int, text: str) -> Tree | None:
    """Parse the entry's new lines and put them in place of the old; None if they are not entries alone."""
    part = text[chunk.start : chunk.end + growth]
    try:
        root = parse(part, tree.name).root
    except RecipeError:
        return None  # parsing the whole text gives the error its place
    holder, _ = chunk.around[-1]
    if (
        not isinstance(root, MappingNode)
        or root.flow
        or root.anchor
        or root.tag
        or root.start == 0 == root.end
    ):
        return None
    column = tree.lines.column(holder.children[0].start)
    new = tuple(_moved_entry(entry, chunk.start) for entry in root.children)
    whole = Lines(text)
    if any(whole.column(entry.start) != column for entry in new):
        return None
    node: Node = root
    for number, (mapping, index) in enumerate(reversed(chunk.around)):
        entries = new if number == 0 else (replace(mapping.children[index], value=node),)
        after = tuple(_moved_entry(entry, growth) for entry in mapping.children[index + 1 :])
        node = _with_children(mapping, (*mapping.children[:index], *entries, *after))
    return Tree(tree.name, text, whole, (node,))


def _with_children(node: MappingNode, children: tuple[Entry, ...]) -> MappingNode:
    body = children[0].start
    start = body if node.start == node.body else node.start
    end = max(children[-1].end, body)
    return MappingNode(start, body, end, end, node.anchor, node.tag, node.flow, node.pair, children)


def _moved_entry(entry: Entry, by: int) -> Entry:
    return Entry(_moved(entry.key, by), _moved(entry.value, by), entry.colon + by)


def _moved(node: Node, by: int) -> Node:
    if by == 0:
        return node
    start, body, end, stop = node.start + by, node.body + by, node.end + by, node.stop + by
    if isinstance(node, ScalarNode):
        return ScalarNode(start, body, end, stop, node.anchor, node.tag, node.value, node.style, node.empty)
    if isinstance(node, AliasNode):
        return AliasNode(start, body, end, stop, node.name)
    if isinstance(node, MappingNode):
        entries = tuple(_moved_entry(entry, by) for entry in node.children)
        return MappingNode(start, body, end, stop, node.anchor, node.tag, node.flow, node.pair, entries)
    items = tuple(Item(_moved(item.value, by), item.dash + by, item.flow) for item in node.children)
    return SequenceNode(start, body, end, stop, node.anchor, node.tag, node.flow, items)
