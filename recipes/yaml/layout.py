"""Ends and indentation of entries, comments included."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.yaml.nodes import MappingNode, ScalarNode, SequenceNode, last_leaf, walk

if TYPE_CHECKING:
    from recipes.yaml.nodes import Collection, Node, Tree


@dataclass(frozen=True, slots=True)
class Layout:
    """Usual indentation of a file: of a mapping in a mapping, and of a list's '-' under its key."""

    step: int = 2
    dash: int = 2


def layout_of(tree: Tree) -> Layout:
    """Return the indentation that a file mostly uses."""
    steps: Counter[int] = Counter()
    dashes: Counter[int] = Counter()
    column = tree.lines.column
    for root in tree.roots:
        for node in walk(root):
            if not isinstance(node, MappingNode) or node.flow:
                continue
            for entry in node.children:
                value = entry.value
                if not isinstance(value, MappingNode | SequenceNode) or value.flow or not value.children:
                    continue
                depth = column(value.children[0].start) - column(entry.start)
                (steps if isinstance(value, MappingNode) else dashes)[depth] += 1
    steps.pop(0, None)
    step = max(steps, key=lambda depth: (steps[depth], -depth)) if steps else 2
    dash = max(dashes, key=lambda depth: (dashes[depth], -depth)) if dashes else step
    return Layout(step, dash)


def is_explicit(tree: Tree, start: int) -> bool:
    """Return whether the key or item that begins at `start` stands behind a `?`."""
    return tree.text[tree.lines.start(start) : start].rstrip(" \t").endswith("?")


def ends_in_block_scalar(node: Node) -> bool:
    """Return whether a node's last line is text of a literal or folded block."""
    last = last_leaf(node)
    return isinstance(last, ScalarNode) and last.block


def tail(tree: Tree, node: Collection) -> int:
    """Return the end of the last line of a block collection, its own comment lines included.

    Comment lines that carry on the last line's comment (at its column, or deeper than the entries) go
    with it; a comment at the entries' column or further left belongs to what follows.
    """
    last = node.children[-1]
    if ends_in_block_scalar(last.value):
        return last_leaf(last.value).end
    return _comments_below(tree, last.end, tree.lines.column(node.children[0].start), deeper=True)


def child_stop(tree: Tree, node: Collection, index: int) -> int:
    """Return the end of a child's last line: with the comment beside it and the lines that carry that on."""
    child = node.children[index]
    if ends_in_block_scalar(child.value):
        return tree.lines.end(last_leaf(child.value).end)
    column = tree.lines.column(child.start)
    stop = _comments_below(tree, child.end, column, deeper=False)
    value = child.value
    if isinstance(value, MappingNode | SequenceNode) and value.children and not value.flow:
        stop = _deeper_comments(tree, stop, column)
    return stop


def _comments_below(tree: Tree, end: int, column: int, *, deeper: bool) -> int:
    lines, text = tree.lines, tree.text
    line_end = lines.end(end)
    beside = text[end:line_end]
    comment_column = lines.column(end + beside.index("#")) if "#" in beside else None
    while True:
        start = lines.next(line_end)
        if start >= len(text) or start == line_end:
            return line_end
        depth = lines.comment_line(start)
        if depth is None:
            return line_end
        continues = depth == comment_column and depth > column
        if not continues and not (deeper and (depth > column or depth == comment_column)):
            return line_end
        line_end = lines.end(start)


def _deeper_comments(tree: Tree, line_end: int, column: int) -> int:
    """Return the end of the comment lines right below that stand deeper than a column."""
    while True:
        start = tree.lines.next(line_end)
        if start >= len(tree.text) or start == line_end:
            return line_end
        depth = tree.lines.comment_line(start)
        if depth is None or depth <= column:
            return line_end
        line_end = tree.lines.end(start)


def comments_above(tree: Tree, start: int, floor: int = 0) -> int:
    """Return where the comment block of the entry beginning at `start` begins; its line if it has none.

    The block stands directly above, at the entry's column, without a blank line. A block that begins on
    the file's first line belongs to the file, lines above `floor` to another entry.
    """
    lines = tree.lines
    column = lines.column(start)
    line = above = lines.start(start)
    if not lines.indented(start):
        return line
    while above > 0:
        previous = lines.start(lines.break_before(above))
        if previous < floor or lines.comment_line(previous) != column:
            break
        above = previous
    return line if above == 0 else above
