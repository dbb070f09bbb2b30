"""Setting and adding of values as splices; nothing else of the text changes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recipes.keys import KeyPath, Step, format_key, format_step
from recipes.yaml.check import EditRefusedError, checked, expected, shape, shape_of, with_children
from recipes.yaml.find import Spot, child_index, find_spot
from recipes.yaml.layout import comments_above, ends_in_block_scalar, is_explicit, layout_of, tail
from recipes.yaml.nodes import AliasNode, Entry, MappingNode, ScalarNode, SequenceNode, Tree, last_leaf
from recipes.yaml.offsets import LINE_BREAK
from recipes.yaml.scalars import same
from recipes.yaml.splice import Splice
from recipes.yaml.write import FLOW, FLOW_KEY, KEY, BlockWriter, Manner, flow_text, scalar_text

if TYPE_CHECKING:
    from recipes.yaml.nodes import Collection, Node
    from recipes.yaml.write import Writable

_BREAK = re.compile(r"(\r\n|\n|\r)")
_HEADER = re.compile(r"[|>][-+0-9]*([ \t]+#.*)?")
_HEADER_INDENT = re.compile(r"[|>][0-9]*")


def is_collection(value: Writable) -> bool:
    """Return whether a value is a mapping or list that is not empty, so cannot stand as a scalar does."""
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and len(value) > 0


def set_value(tree: Tree, path: KeyPath, value: Writable, spelling: str = "") -> Tree:
    """Replace what is written at a path.

    `spelling`, what the user typed, is kept if OmegaConf reads it as the value.

    Raises:
        NotWrittenError: nothing is written at the path.
        EditRefusedError: the path is the whole recipe, or the edit would not read back.
    """
    spot = find_spot(tree, path)
    if not spot.trail:
        raise EditRefusedError("The whole recipe cannot be replaced by a value", where=tree.name)
    node = spot.node
    plain_scalar = not isinstance(value, Mapping | Sequence) or isinstance(value, str)
    anchor = node.anchor if isinstance(node, ScalarNode) and plain_scalar else None
    new_shape = ("anchor", anchor, shape_of(value)) if anchor else shape_of(value)
    old = tree.text[node.body : node.end]
    respelled = isinstance(node, ScalarNode) and node.style is None and spelling not in ("", old)
    if same(shape(node), new_shape) and not respelled:
        return tree
    if isinstance(node, ScalarNode):
        manner = Manner(quotes=node.style, old=old, spelling=spelling)
    else:
        manner = Manner(spelling=spelling)
    if spot.parent.flow:
        splices = _set_in_flow(tree, spot, value, keep_anchor=anchor is not None, manner=manner)
    elif isinstance(node, MappingNode | SequenceNode) and not node.flow:
        splices = _set_over_block(tree, spot, node, _rendered(tree, spot, value, manner))
    else:
        splices = _set_over_line(
            tree, spot, _rendered(tree, spot, value, manner), keep_anchor=anchor is not None
        )
    return checked(tree, splices, expected(tree, spot.trail, lambda _: new_shape))


def _writer(tree: Tree, offset: int, stop: int) -> BlockWriter:
    """Return a writer for what will stand between a line of the text and `stop`."""
    return BlockWriter(
        layout_of(tree), tree.lines.newline(offset), LINE_BREAK.search(tree.text, stop) is not None
    )


def _rendered(tree: Tree, spot: Spot, value: Writable, manner: Manner) -> str:
    """Write a value as it follows its ':' or '-': with a space before it, or from a line break on."""
    node, child = spot.node, spot.child
    if isinstance(node, MappingNode | SequenceNode) and node.flow and node.children and is_collection(value):
        return " " + flow_text(value)
    if isinstance(child, Entry):
        return _writer(tree, child.colon, node.end).after_key(value, tree.lines.column(child.start), manner)
    gap = tree.text[child.dash + 1 : node.start]
    gap = gap if gap and not gap.strip(" ") and not _is_empty(node) else " "
    return _writer(tree, child.dash, node.end).after_dash(value, tree.lines.column(child.dash), gap, manner)


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.empty


def _after(spot: Spot) -> int:
    child = spot.child
    return child.colon if isinstance(child, Entry) else child.dash + 1


def _set_in_flow(
    tree: Tree, spot: Spot, value: Writable, *, keep_anchor: bool, manner: Manner
) -> list[Splice]:
    node, child = spot.node, spot.child
    tight = Manner(True, False, manner.quotes, manner.old, manner.spelling)
    new = flow_text(value, tight)
    if isinstance(node, ScalarNode) and node.empty and not node.anchor and not node.tag:
        bare = isinstance(child, Entry) and tree.text[child.colon - 1 : child.colon] != ":"
        return [Splice(node.body, node.body, (": " if bare else " ") + new)]
    return [Splice(node.body if keep_anchor else node.start, node.end, new)]


def _split(new: str) -> tuple[str, str]:
    """Split a rendered value into its first line and the rest with its line break."""
    first, *rest = _BREAK.split(new, maxsplit=1)
    return first, "".join(rest)


def _set_over_line(tree: Tree, spot: Spot, new: str, *, keep_anchor: bool) -> list[Splice]:
    """Replace a scalar, an alias or a flow collection that stands in a block collection."""
    node, after, text = spot.node, _after(spot), tree.text
    if isinstance(node, ScalarNode) and node.empty and (node.anchor or node.tag):
        start = node.end if keep_anchor else node.start
    elif _is_empty(node):
        start = after
    else:
        start = node.body if keep_anchor else node.start
    head = text[after:start].rstrip(" \t")
    first, rest = _split(new)
    if isinstance(node, ScalarNode) and node.block:
        header = _HEADER.match(text[node.body : tree.lines.end(node.body)])
        note = (header.group(1) or "") if header else ""
        if not first:
            return [Splice(after, node.end, head + note + new)]
        return [Splice(start, node.end, first.lstrip(" ") + note + rest)]
    if not rest:
        return [Splice(start, node.end, first if start == after else first.lstrip(" "))]
    line_end = tree.lines.end(node.end)
    note = text[node.end : line_end]
    return [Splice(after, line_end, head + first + (note if first else note.rstrip(" \t")) + rest)]


def _set_over_block(tree: Tree, spot: Spot, node: Collection, new: str) -> list[Splice]:
    """Replace a block collection: its lines go, the comment beside its key stays."""
    after, text = _after(spot), tree.text
    line_end, stop = tree.lines.end(after), tail(tree, node)
    if node.start >= line_end:
        note = text[after:line_end].rstrip(" \t")
    elif node.body > line_end:  # an anchor or a tag beside the key
        match = re.search(r"[ \t]+#.*", text[node.start : line_end])
        note = match.group() if match else ""
    else:  # the collection begins beside the '-'
        return [Splice(node.start, stop, new.lstrip(" "))]
    first, rest = _split(new)
    return [Splice(after, stop, first + note + rest)]


def insert_key(tree: Tree, path: KeyPath, key: Step, value: Writable, spelling: str = "") -> Tree:
    """Add a key at the end of the mapping written at a path; the mapping may be null.

    Raises:
        NotWrittenError: nothing is written at the path.
        EditRefusedError: it is no mapping, it has the key, or its form ('? key', a pair) takes none.
    """
    if tree.root is None or (not path and _is_empty(tree.root)):
        return _insert_first(tree, key, value)
    spot = find_spot(tree, path)
    node = spot.node
    if isinstance(node, ScalarNode) and node.read() is None and path:
        return set_value(tree, path, {key: value})
    if not isinstance(node, MappingNode):
        raise EditRefusedError(_no_mapping(path), where=tree.position(node.start))
    if child_index(node, key) is not None:
        where = tree.position(node.children[child_index(node, key) or 0].start)
        fix = "Set it instead."
        raise EditRefusedError(f"'{format_key((*path, key))}' already exists", where=where, fix=fix)
    expected_shapes = expected(tree, spot.trail, with_children(lambda old: [*old, (key, shape_of(value))]))
    if node.pair:
        raise EditRefusedError(
            "A pair without braces cannot have a second key", where=tree.position(node.start)
        )
    if node.flow:
        new = f"{scalar_text(key, FLOW_KEY)}: {flow_text(value, Manner(flow=True, spelling=spelling))}"
        return checked(tree, _add_in_flow(tree, node, new), expected_shapes)
    first = node.children[0]
    if is_explicit(tree, first.start):
        raise EditRefusedError("Mappings with '? key' cannot be edited", where=tree.position(first.start))
    column = tree.lines.column(first.start)
    writer = _writer(tree, tree.lines.start(first.start), tail(tree, node))
    text = (
        " " * column
        + scalar_text(key, KEY)
        + ":"
        + writer.after_key(value, column, Manner(spelling=spelling))
    )
    return checked(tree, _add_line(tree, node, text, writer.newline), expected_shapes)


def _no_mapping(path: KeyPath) -> str:
    return (
        f"'{format_key(path)}' is not a mapping" if path else "The recipe is not a mapping of keys to values"
    )


def _insert_first(tree: Tree, key: Step, value: Writable) -> Tree:
    writer = BlockWriter(layout_of(tree), tree.lines.newline(0))
    line = scalar_text(key, KEY) + ":" + writer.after_key(value, 0) + writer.newline
    text = tree.text
    lead = "" if not text.removeprefix("\ufeff") or text.endswith(("\n", "\r")) else writer.newline
    expected_shapes = [("map", None, None, [(key, shape_of(value))])]
    return checked(tree, [Splice(len(text), len(text), lead + line)], list(expected_shapes))


def _add_line(tree: Tree, node: Collection, text: str, newline: str) -> list[Splice]:
    """Add a line, or several, below a block collection."""
    position = tail(tree, node)
    splices = [Splice(position, position, newline + text)]
    last = last_leaf(node)
    if (
        position == len(tree.text)
        and isinstance(last, ScalarNode)
        and last.block
        and not last.value.endswith("\n")
    ):
        # A "|" that ends the text without a line break would gain one from the line below: "|-" does not.
        header = _HEADER_INDENT.match(tree.text, last.body)
        assert header is not None
        if tree.text[header.end() : header.end() + 1] not in ("-", "+"):
            splices.append(Splice(header.end(), header.end(), "-"))
    return splices


def _add_in_flow(tree: Tree, node: Collection, new: str) -> list[Splice]:
    """Add a child at the end of a flow collection, on its own line where the last one has that."""
    text, lines = tree.text, tree.lines
    if not node.children:
        return [Splice(node.body + 1, node.body + 1, new)]
    last = node.children[-1]
    end, line = last.end, lines.start(last.start)
    if not lines.indented(last.start) or line == lines.start(node.body):
        return [Splice(end, end, ", " + new)]
    gap = lines.gap(end)
    comma = text[gap : gap + 1] == ","
    at = gap + 1 if comma else end
    line_end = lines.end(at)
    rest = text[at:line_end].strip()
    if rest and not rest.startswith("#"):
        return [Splice(end, end, ", " + new)]
    added = lines.newline(end) + text[line : last.start] + new
    if comma:
        return [Splice(line_end, line_end, added + ",")]
    return [Splice(end, end, ","), Splice(line_end, line_end, added)]


def insert_item(tree: Tree, path: KeyPath, index: int, value: Writable, spelling: str = "") -> Tree:
    """Insert an item into the list written at a path; an index past the last item adds at the end.

    Raises:
        NotWrittenError: nothing is written at the path.
        EditRefusedError: it is no list, or the index is negative.
    """
    spot = find_spot(tree, path)
    node = spot.node
    if not isinstance(node, SequenceNode):
        raise EditRefusedError(f"'{format_key(path)}' is not a list", where=tree.position(node.start))
    index = min(index, len(node.children))
    if index < 0:
        raise EditRefusedError("List items count from 0", where=tree.position(node.start))

    def add(old: list[object]) -> list[object]:
        return [*old[:index], shape_of(value), *old[index:]]

    expected_shapes = expected(tree, spot.trail, with_children(add))
    if node.flow:
        new = flow_text(value, Manner(flow=True, spelling=spelling) if spelling else FLOW)
        if index == len(node.children):
            return checked(tree, _add_in_flow(tree, node, new), expected_shapes)
        at = node.children[index].start
        return checked(tree, [Splice(at, at, new + ", ")], expected_shapes)
    last = node.children[min(index, len(node.children) - 1)]
    gap = " "
    if not _is_empty(last.value) and tree.lines.start(last.value.start) == tree.lines.start(last.dash):
        gap = tree.text[last.dash + 1 : last.value.start]
        gap = gap if gap and not gap.strip(" ") else " "
    column = tree.lines.column(last.dash)
    stop = tail(tree, node) if index == len(node.children) else last.dash
    writer = _writer(tree, tree.lines.start(last.dash), stop)
    body = "-" + writer.after_dash(value, column, gap, Manner(spelling=spelling))
    if index == len(node.children):
        return checked(tree, _add_line(tree, node, " " * column + body, writer.newline), expected_shapes)
    if not tree.lines.indented(last.dash):  # the first item stands beside the '-' of an outer list
        return checked(
            tree, [Splice(last.dash, last.dash, body + writer.newline + " " * column)], expected_shapes
        )
    floor = node.children[index - 1].end if index else 0
    at = comments_above(tree, last.dash, floor)
    if index and ends_in_block_scalar(node.children[index - 1].value):
        at = tree.lines.start(last.dash)
    return checked(tree, [Splice(at, at, " " * column + body + writer.newline)], expected_shapes)


def assign(
    tree: Tree, path: KeyPath, value: Writable, spelling: str = "", inherited: Sequence[Step] = ()
) -> Tree:
    """Set the value at a path, adding the keys that are not written yet.

    `inherited` are the keys that the mapping where the written part of the path ends gets by merges: a
    path that runs on inside one of those is refused, for a key there would replace the whole section.

    Raises:
        EditRefusedError: the path runs through an alias, a merged section or past the end of a list.
    """
    depth, node = written_depth(tree, path)
    if depth == len(path):
        return set_value(tree, path, value, spelling)
    rest = path[depth:]
    if isinstance(node, AliasNode):
        what = (
            f"'{format_key(path[:depth])}' is *{node.name}: a key inside it would change what it stands for"
        )
        fix = f"Set it where &{node.name} is written, or give this section a copy first (recipe set --copy)."
        raise EditRefusedError(what, where=tree.position(node.start), fix=fix)
    if len(rest) > 1 and rest[0] in inherited:
        section = format_key(path[: depth + 1])
        what = f"'{section}' comes from a merge (<<) as a whole: a key here would replace all of it"
        fix = "Give it a copy of its own first (recipe set --copy), or set the key in a child recipe."
        raise EditRefusedError(what, where=tree.position(node.start) if node else tree.name, fix=fix)
    nested: Writable = value
    for step in reversed(rest[1:]):
        nested = {step: nested}
    if isinstance(node, SequenceNode):
        if format_step(rest[0]) != str(len(node.children)):
            if not depth:
                raise EditRefusedError(_no_mapping(()), where=tree.position(node.start))
            what = f"'{format_key(path[:depth])}' has {len(node.children)} items, there is no item {rest[0]}"
            raise EditRefusedError(what, where=tree.position(node.start), fix="Items count from 0.")
        return insert_item(tree, path[:depth], len(node.children), nested, spelling if len(rest) == 1 else "")
    return insert_key(tree, path[:depth], rest[0], nested, spelling if len(rest) == 1 else "")


def written_depth(tree: Tree, path: KeyPath) -> tuple[int, Node | None]:
    """Return how many steps of a path are written, and the node where the written part ends."""
    node = tree.root
    for depth, step in enumerate(path):
        index = child_index(node, step) if node is not None else None
        if index is None:
            return depth, node
        assert isinstance(node, MappingNode | SequenceNode)
        node = node.children[index].value
    return len(path), node
