"""Comments that belong to a key: the lines directly above it, and the one beside its value.

Lines above belong to a key if they stand at its column without a blank line between; a block that
begins on the first line of the file belongs to the file.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.yaml.check import EditRefusedError, checked, shape
from recipes.yaml.find import Spot, find_spot
from recipes.yaml.layout import comments_above
from recipes.yaml.nodes import Entry, MappingNode, ScalarNode, SequenceNode, Tree
from recipes.yaml.splice import Splice

if TYPE_CHECKING:
    from recipes.keys import KeyPath

_BESIDE = re.compile(r"((?:[ \t]*,)?)([ \t]*)(#.*)?")
_HEADER = re.compile(r"[|>][-+0-9]*")
_PADDING = re.compile(r"(?<=\S)([ \t]+)#")


@dataclass(frozen=True, slots=True)
class Comment:
    """Comment of a key without '#': lines above (joined by line breaks) and text beside; "" for none."""

    above: str
    beside: str


def comment_of(tree: Tree, path: KeyPath) -> Comment:
    """Read the comment that belongs to the key or item at a path."""
    return comment_at(tree, find_spot(tree, path))


def comment_at(tree: Tree, spot: Spot) -> Comment:
    """Read the comment that belongs to a written key or item."""
    if not spot.trail:
        return Comment("", "")
    start = _floor_and_start(spot)[1]
    lines = tree.text[
        comments_above(tree, start, _floor_and_start(spot)[0]) : tree.lines.start(start)
    ].splitlines()
    position = _beside(tree, spot)
    beside = ""
    if position is not None:
        match = _BESIDE.match(tree.text[position : tree.lines.end(position)])
        beside = _bare(match.group(3) or "") if match else ""
    return Comment("\n".join(_bare(line) for line in lines), beside)


def set_comment(tree: Tree, path: KeyPath, text: str, *, above: bool = False) -> Tree:
    """Add, replace or (with an empty text) remove a key's comment, beside it or above it.

    Raises:
        NotWrittenError: nothing is written at the path.
        EditRefusedError: the path is the whole recipe, or several values share the line.
    """
    spot = find_spot(tree, path)
    if not spot.trail:
        raise EditRefusedError("A comment belongs to a key", where=tree.name)
    splices = _set_above(tree, spot, text) if above else _set_beside(tree, spot, text)
    return checked(tree, splices, [shape(root) for root in tree.roots])


def _bare(comment: str) -> str:
    comment = comment.strip().lstrip("#")
    return comment.removeprefix(" ").rstrip()


def _floor_and_start(spot: Spot) -> tuple[int, int]:
    index = spot.index
    return (spot.parent.children[index - 1].end if index else 0), spot.child.start


def _beside(tree: Tree, spot: Spot) -> int | None:
    """Return where a comment beside the key may begin; None where several values share the line."""
    node, child = spot.node, spot.child
    if isinstance(node, ScalarNode) and node.block:
        header = _HEADER.match(tree.text, node.body)
        return header.end() if header else None
    after = child.colon if isinstance(child, Entry) else child.dash + 1
    if isinstance(node, MappingNode | SequenceNode) and not node.flow and node.children:
        line_end = tree.lines.end(after)
        if node.body < line_end:
            return None  # "- a: 1": the line belongs to the entry a
        match = re.search(r"[ \t]+#", tree.text[after:line_end])
        return after + match.start() if match else line_end
    position = max(child.end, after)
    match = _BESIDE.match(tree.text[position : tree.lines.end(position)])
    if match is None or position + match.end() != tree.lines.end(position):
        return None
    return position


def _set_beside(tree: Tree, spot: Spot, text: str) -> list[Splice]:
    position = _beside(tree, spot)
    if position is None:
        fix = "Put the comment above the key, or beside the last value of the line."
        raise EditRefusedError(
            "Several values share this line", where=tree.position(spot.node.start), fix=fix
        )
    if "\n" in text or "\r" in text:
        raise EditRefusedError("A comment beside a value has one line", where=tree.position(spot.node.start))
    line_end = tree.lines.end(position)
    match = _BESIDE.match(tree.text[position:line_end])
    assert match is not None
    start = position + match.end(1)
    if not text:
        return [Splice(start, line_end, "")] if match.group(3) else []
    padding = match.group(2) if match.group(3) else _usual_padding(tree)
    return [Splice(start, line_end, f"{padding}# {text}")]


def _usual_padding(tree: Tree) -> str:
    paddings = Counter(match.group(1) for match in _PADDING.finditer(tree.text) if len(match.group(1)) <= 2)
    return max(paddings, key=lambda padding: paddings[padding]) if paddings else "  "


def _set_above(tree: Tree, spot: Spot, text: str) -> list[Splice]:
    floor, start = _floor_and_start(spot)
    lines = tree.lines
    if not lines.indented(start):
        raise EditRefusedError("The key does not begin its line", where=tree.position(start))
    line = lines.start(start)
    first = comments_above(tree, start, floor)
    pad = tree.text[line:start].removeprefix("\ufeff")
    bom = len(tree.text[line:start]) - len(pad)
    comment = "".join(f"{pad}{f'# {row}'.rstrip()}{lines.newline(line)}" for row in text.splitlines())
    return [Splice(first + bom if first == line else first, line + bom, comment)]
