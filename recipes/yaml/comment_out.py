"""Commenting of entries and items out of a text, and back in.

The lines of an entry get `# ` at the entry's column. Comment lines are taken for such an entry where they
begin with `key:` and stand where a key of their column could stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.errors import RecipeError
from recipes.keys import KeyPath, format_key
from recipes.yaml.check import EditRefusedError, Shape, checked, expected, shape, with_children
from recipes.yaml.find import NotWrittenError, child_index, find_spot, key_of
from recipes.yaml.layout import child_stop
from recipes.yaml.nodes import Entry, MappingNode, ScalarNode, SequenceNode, Tree
from recipes.yaml.parse import parse
from recipes.yaml.scalars import same
from recipes.yaml.splice import Splice, splice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.yaml.nodes import Collection, Node

_KEY = re.compile(r"(?:[A-Za-z_][\w.-]*|\"[^\"\n]+\"|'[^'\n]+')[ \t]*:(?:[ \t]|$)")
_WORDS = re.compile(r"[^\s\"'\[{|>&*!#][^#]*\s[^\s#]")
"""Value of several plain words: most likely a sentence with a colon."""


@dataclass(frozen=True, slots=True)
class CommentedEntry:
    """Entry that is commented out: where it would be, its value as text, its first and last line."""

    path: KeyPath
    value: str
    first_line: int
    last_line: int
    prose: bool
    """Whether it may as well be a sentence: `# Note: set this by hand`."""


def comment_out(tree: Tree, path: KeyPath) -> Tree:
    """Comment out the entry or item at a path with all its lines.

    Raises:
        NotWrittenError: nothing is written at the path.
        EditRefusedError: it has no line of its own, or an anchor in it is used elsewhere.
    """
    spot = find_spot(tree, path)
    if not spot.trail:
        raise EditRefusedError("The whole recipe cannot be commented out", where=tree.name)
    parent, index, start = spot.parent, spot.index, spot.child.start
    if parent.flow or not tree.lines.indented(start):
        fix = "Remove it, or comment out the key around it."
        raise EditRefusedError(
            f"'{format_key(path)}' shares its line with other values", where=tree.position(start), fix=fix
        )
    if _is_explicit(tree, start):
        raise EditRefusedError("Mappings with '? key' cannot be edited", where=tree.position(start))
    splices = _marks(tree, tree.lines.column(start), tree.lines.start(start), child_stop(tree, parent, index))
    if len(parent.children) == 1:
        splices += _emptied(tree, spot.trail[:-1], parent)

    def drop(old: list[Shape]) -> list[Shape]:
        return old[:index] + old[index + 1 :]

    return checked(tree, splices, expected(tree, spot.trail[:-1], with_children(drop)))


def _is_explicit(tree: Tree, start: int) -> bool:
    return tree.text[tree.lines.start(start) : start].rstrip(" \t").endswith("?")


def _marks(tree: Tree, column: int, start: int, stop: int) -> list[Splice]:
    """Return the splices that put `# ` before the lines from `start` to `stop`; blank ones get `#`."""
    splices = []
    line = start
    while True:
        end = tree.lines.end(line)
        text = tree.text[line:end]
        bom = 1 if text.startswith("\ufeff") else 0
        depth = len(text) - bom - len(text[bom:].lstrip(" "))
        if not text[bom:].strip():
            at = line + bom + min(depth, column)
            splices.append(Splice(at, at, " " * (column - min(depth, column)) + "#"))
        elif depth >= column:
            splices.append(Splice(line + bom + column, line + bom + column, "# "))
        elif text.lstrip()[:1] != "#":
            fix = "Indent the lines of this value deeper than its key first."
            raise EditRefusedError(
                "A line of the value stands left of its key", where=tree.position(line), fix=fix
            )
        following = tree.lines.next(line)
        if following > stop or following == line or following >= len(tree.text):
            return splices
        line = following


def _emptied(tree: Tree, trail: tuple[tuple[Collection, int], ...], parent: Collection) -> list[Splice]:
    """Return the splice that leaves an empty collection: with nothing there it would read as null."""
    empty = "{}" if isinstance(parent, MappingNode) else "[]"
    if not trail:
        line = tree.lines.start(parent.start)
        bom = 1 if tree.text.startswith("\ufeff") and line == 0 else 0
        return [Splice(line + bom, line + bom, empty + tree.lines.newline(line))]
    holder, index = trail[-1]
    outer = holder.children[index]
    after = outer.colon if isinstance(outer, Entry) else outer.start + 1
    if parent.anchor:
        after = tree.text.index(parent.anchor, after) + len(parent.anchor)
    return [Splice(after, after, f" {empty}")]


def comment_in(tree: Tree, path: KeyPath) -> Tree:
    """Take the comment marks off the entry that is commented out at a path.

    Raises:
        NotWrittenError: no such entry is commented out.
        EditRefusedError: the key is set as well, or the lines do not read as the entry.
    """
    entry = next((one for one in commented_entries(tree) if _names(one.path, path)), None)
    if entry is None:
        raise NotWrittenError(f"'{format_key(path)}' is not commented out", where=tree.name)
    parent = find_spot(tree, path[:-1]).node if tree.root is not None and path[:-1] else tree.root
    if parent is not None and child_index(parent, path[-1]) is not None:
        fix = "Remove it there, or edit its value."
        where = tree.position(find_spot(tree, path).child.start)
        raise EditRefusedError(f"'{format_key(path)}' is set as well", where=where, fix=fix)
    splices = list(_unmarks(tree, entry))
    if isinstance(parent, MappingNode) and not parent.children:
        splices.append(_without_braces(tree, parent))
    text = splice(tree.text, sorted(splices, key=lambda part: part.start))
    return _verified(tree, text, path)


def _names(path: KeyPath, other: KeyPath) -> bool:
    return [str(step) for step in path] == [str(step) for step in other]


def _unmarks(tree: Tree, entry: CommentedEntry) -> Iterator[Splice]:
    for number in range(entry.first_line, entry.last_line + 1):
        start, end = tree.lines.span(number)
        mark = tree.text.index("#", start, end)
        if tree.text[mark + 1 : end].strip():
            yield Splice(mark, mark + (2 if tree.text[mark + 1 : mark + 2] == " " else 1), "")
        else:
            first = start if not tree.text[start:mark].lstrip("\ufeff").strip(" ") else mark
            yield Splice(first, mark + 1, "")


def _without_braces(tree: Tree, parent: MappingNode) -> Splice:
    """Return the splice that takes `{}` away with the space before it, or with its line at the top."""
    start, end = parent.body, parent.end
    line = tree.lines.start(start)
    if tree.lines.indented(start) and not tree.text[end : tree.lines.end(end)].strip():
        bom = 1 if tree.text.startswith("\ufeff") and line == 0 else 0
        return Splice(line + bom, tree.lines.next(end), "")
    while tree.text[start - 1] in " \t":
        start -= 1
    return Splice(start, end, "")


def _verified(tree: Tree, text: str, path: KeyPath) -> Tree:
    """Return the parsed text if it has one entry more than the tree, the one at the path."""
    try:
        trial = parse(text, tree.name)
        spot = find_spot(trial, path)
    except RecipeError as error:
        raise EditRefusedError(
            f"The lines of '{format_key(path)}' do not read as YAML: {error.what}", where=error.where
        ) from error

    def drop(old: list[Shape]) -> list[Shape]:
        return old[: spot.index] + old[spot.index + 1 :]

    without = expected(trial, spot.trail[:-1], with_children(drop))
    before = [shape(root) for root in tree.roots] or [("map", None, None, [])]
    if not same(without, before) and not same(without, [_as_map(one) for one in before]):
        raise EditRefusedError(
            f"'{format_key(path)}' cannot be taken back in: other values would change with it",
            where=trial.position(spot.child.start),
        )
    return trial


def _as_map(one: Shape) -> Shape:
    return ("map", None, None, []) if one is None else one


def commented_entries(tree: Tree) -> list[CommentedEntry]:
    """List the entries of mappings that are commented out, in the order of the text."""
    if "#" not in tree.text:
        return []
    lines = [tree.text[slice(*tree.lines.span(number))] for number in range(1, tree.lines.count + 1)]
    holders = _Holders(tree)
    entries: list[CommentedEntry] = []
    number = 1
    while number <= len(lines):
        column = tree.lines.comment_line(tree.lines.span(number)[0])
        text = _uncommented(lines[number - 1]) if column is not None else ""
        match = _KEY.match(text) if column is not None else None
        last = number
        if match is not None and column is not None:
            last = _last_line(tree, lines, number, column, text)
            holder = holders.at(number, column)
            if holder is not None:
                key = match.group().rstrip(" \t").removesuffix(":").rstrip(" \t").strip("\"'")
                value = text[match.end() :].strip()
                prose = _WORDS.match(value) is not None or (not value and last == number)
                entries.append(CommentedEntry((*holder, key), value, number, last, prose))
        number = last + 1
    return entries


def _uncommented(line: str) -> str:
    return line.lstrip("\ufeff").lstrip(" \t").removeprefix("#").removeprefix(" ").rstrip()


def _last_line(tree: Tree, lines: list[str], number: int, column: int, first: str) -> int:
    """Return the last comment line that belongs to the entry: deeper ones, list items of it, blank ones."""
    last = number
    bare = re.search(r":[ \t]*(?:#.*|[|>][-+0-9]*)?$", first) is not None
    for following in range(number + 1, len(lines) + 1):
        if tree.lines.comment_line(tree.lines.span(following)[0]) != column:
            break
        text = _uncommented(lines[following - 1])
        if text.startswith((" ", "\t")) or (bare and text.startswith("- ")):
            last = following
        elif text:
            break
    return last


class _Holders:
    """Mappings of a text by line: which of them a key at a line and column would belong to."""

    def __init__(self, tree: Tree) -> None:
        self.rows: list[tuple[int, int, KeyPath, bool]] = []
        """Line, column, path and whether a key may stand below, of each entry that begins its line."""
        if tree.root is not None:
            self._collect(tree, tree.root, ())
        self.rows.sort()
        self.blocks = [(first, last) for first, last in _block_scalars(tree)]
        self.top = tree.root is None or isinstance(tree.root, MappingNode)

    def _collect(self, tree: Tree, node: Node, path: KeyPath) -> None:
        if isinstance(node, MappingNode):
            for entry in node.children:
                below = (*path, key_of(entry.key))
                if not node.flow:
                    self.rows.append(
                        (
                            tree.lines.number(entry.start),
                            tree.lines.column(entry.start),
                            below,
                            _is_open(entry.value),
                        )
                    )
                    self._collect(tree, entry.value, below)
        elif isinstance(node, SequenceNode) and not node.flow:
            for index, item in enumerate(node.children):
                self._collect(tree, item.value, (*path, index))

    def at(self, line: int, column: int) -> KeyPath | None:
        """Return the path of the mapping that a key at a line and column belongs to."""
        if any(first <= line <= last for first, last in self.blocks):
            return None
        for number, depth, path, is_open in reversed(self.rows):
            if number > line or depth > column:
                continue
            if depth == column:
                return path[:-1]
            if not is_open:
                return None
            inside = [row for row in self.rows if len(row[2]) == len(path) + 1 and row[2][:-1] == path]
            return path if not inside or inside[0][1] == column else None
        inside = [row for row in self.rows if len(row[2]) == 1]
        return () if self.top and (inside[0][1] == column if inside else column == 0) else None


def _is_open(node: Node) -> bool:
    """Return whether keys may stand below an entry: it holds a block mapping, nothing, null or `{}`."""
    if isinstance(node, MappingNode):
        return not node.flow or not node.children
    return isinstance(node, ScalarNode) and node.empty


def _block_scalars(tree: Tree) -> Iterator[tuple[int, int]]:
    from recipes.yaml.nodes import walk

    for root in tree.roots:
        for node in walk(root):
            if isinstance(node, ScalarNode) and node.block:
                yield tree.lines.number(node.body) + 1, tree.lines.number(max(node.end - 1, node.body))
