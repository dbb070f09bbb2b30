"""Taking entries and items out of a text, with the comment beside them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recipes.yaml.check import EditRefusedError, Shape, checked, expected, with_children
from recipes.yaml.find import Spot, find_spot
from recipes.yaml.layout import child_stop, comments_above
from recipes.yaml.nodes import Entry, MappingNode, Tree
from recipes.yaml.offsets import BOM
from recipes.yaml.splice import Splice

if TYPE_CHECKING:
    from recipes.keys import KeyPath
    from recipes.yaml.nodes import Collection

_PROPERTIES = re.compile(r"(?:[&!]\S*[ \t]*)+")
_COMMA = re.compile(r"[ \t]*,")


def delete(tree: Tree, path: KeyPath, *, with_comments: bool = False) -> Tree:
    """Remove the entry or item at a path; `with_comments` takes the comment lines above it along.

    A mapping that loses its last key becomes `{}`: with nothing there it would read as null.

    Raises:
        NotWrittenError: nothing is written at the path.
        EditRefusedError: it is the whole recipe, or its form ('? key', a pair) cannot lose a key.
    """
    spot = find_spot(tree, path)
    if not spot.trail:
        raise EditRefusedError("The whole recipe cannot be removed", where=tree.name)
    parent, index = spot.parent, spot.index

    def drop(old: list[Shape]) -> list[Shape]:
        return old[:index] + old[index + 1 :]

    expected_shapes = expected(tree, spot.trail[:-1], with_children(drop))
    start = spot.child.start
    if isinstance(parent, MappingNode) and parent.pair:
        raise EditRefusedError("A pair without braces cannot lose its key", where=tree.position(start))
    if parent.flow:
        return checked(tree, [_from_flow(tree, parent, index)], expected_shapes)
    if isinstance(parent, MappingNode) and tree.text[tree.lines.start(start) : start].rstrip(" \t").endswith(
        "?"
    ):
        raise EditRefusedError("Mappings with '? key' cannot be edited", where=tree.position(start))
    if len(parent.children) == 1:
        return checked(tree, _the_only_one(tree, spot, parent, with_comments=with_comments), expected_shapes)
    if not tree.lines.indented(start):
        return checked(tree, [_beside_dash(tree, parent, index)], expected_shapes)
    return _lines_of(tree, parent, index, expected_shapes, with_comments=with_comments)


def _from_flow(tree: Tree, parent: Collection, index: int) -> Splice:
    text, lines, children = tree.text, tree.lines, parent.children
    start, end = children[index].start, children[index].end
    if len(children) == 1:
        gap = lines.gap(end)
        return Splice(start, gap + 1 if text[gap : gap + 1] == "," else end, "")
    comma = _COMMA.match(text, end)
    at = comma.end() if comma else end
    rest = text[at : lines.end(at)].strip()
    alone = lines.indented(start) and (not rest or rest.startswith("#"))
    if alone and (comma or text[lines.gap(end) : lines.gap(end) + 1] in ("]", "}")):
        return Splice(lines.start(start), lines.next(at), "")
    if index == len(children) - 1:
        return Splice(children[index - 1].end, end, "")
    return Splice(start, children[index + 1].start, "")


def _the_only_one(tree: Tree, spot: Spot, parent: Collection, *, with_comments: bool) -> list[Splice]:
    """Leave an empty collection where the last child goes."""
    text, lines = tree.text, tree.lines
    start, end, stop = spot.child.start, spot.child.end, child_stop(tree, parent, 0)
    empty = "{}" if isinstance(parent, MappingNode) else "[]"
    line = lines.start(start)
    own_line = lines.indented(start)
    first = comments_above(tree, start) if with_comments and own_line else line
    if own_line and parent.start >= line:
        if len(spot.trail) == 1:
            bom = 1 if first == 0 and text.startswith(BOM) else 0
            return [Splice(first + bom, stop, empty)]
        holder, index = spot.trail[-2]
        outer = holder.children[index]
        after = outer.colon if isinstance(outer, Entry) else outer.start + 1
        return [Splice(after, after, " " + empty), Splice(lines.break_before(first), stop, "")]
    if own_line and parent.anchor:
        match = _PROPERTIES.match(text, parent.start)
        assert match is not None
        at = parent.start + len(match.group().rstrip(" \t"))
        return [Splice(at, at, " " + empty), Splice(lines.break_before(first), stop, "")]
    return [Splice(start, end, empty)]


def _beside_dash(tree: Tree, parent: Collection, index: int) -> Splice:
    """Remove the first entry of `- a: 1`: the next one moves up beside the '-'."""
    child = parent.children[index]
    following = parent.children[index + 1].start if index + 1 < len(parent.children) else None
    if following is not None:
        between = tree.text[child.end : following]
        below = between[between.find("\n") + 1 :] if "\n" in between else between
        if "#" not in below:
            return Splice(child.start, following, "")
    return Splice(child.start, child_stop(tree, parent, index), "")


def _lines_of(
    tree: Tree, parent: Collection, index: int, expected_shapes: list[Shape], *, with_comments: bool
) -> Tree:
    """Remove a child that has its lines to itself."""
    lines, child = tree.lines, parent.children[index]
    floor = parent.children[index - 1].end if index else 0
    first = comments_above(tree, child.start, floor) if with_comments else lines.start(child.start)
    stop = child_stop(tree, parent, index)
    after = lines.next(stop)
    if first == 0 and tree.text.startswith(BOM):
        first = 1
    if after == stop:  # the last line has no line break: take the one before
        try:
            return checked(tree, [Splice(lines.break_before(first), after, "")], expected_shapes)
        except EditRefusedError:
            pass  # that line break is part of a block scalar above
    return checked(tree, [Splice(first, after, "")], expected_shapes)
