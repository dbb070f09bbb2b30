"""Commenting of entries and items out of a text, and back in.

The lines of an entry get `# ` at the entry's column. Comment lines are taken for such an entry where they
begin with `key:`, or with `-` for an item, and stand where one of their column could stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from recipes.errors import RecipeError
from recipes.keys import KeyPath, format_key
from recipes.yaml.check import EditRefusedError, Shape, checked, expected, shape, with_children
from recipes.yaml.find import NotWrittenError, child_index, find_spot, key_of
from recipes.yaml.layout import child_stop, is_explicit
from recipes.yaml.nodes import Entry, MappingNode, ScalarNode, SequenceNode, Tree
from recipes.yaml.offsets import BOM, LINE_BREAK
from recipes.yaml.parse import parse
from recipes.yaml.scalars import same
from recipes.yaml.splice import Splice, splice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.yaml.nodes import Collection, Node

_LINES_NAMED = 10
_KEY = re.compile(r"(?:[^\W\d][\w.-]*|-?[0-9]+|\"[^\"\n]+\"|'[^'\n]+')[ \t]*:(?:[ \t]|$)")
_ITEM = re.compile(r"-(?: |$)")
_WORDS = re.compile(r"[^\s\"'\[{|>&*!#][^#]*\s[^\s#]")
"""Value of several plain words: most likely a sentence with a colon."""


@dataclass(frozen=True, slots=True)
class CommentedEntry:
    """Entry or item that is commented out: where it would be, its value as text, its first and last line."""

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
    if is_explicit(tree, start):
        raise EditRefusedError("Mappings with '? key' cannot be edited", where=tree.position(start))
    splices = _marks(tree, tree.lines.column(start), tree.lines.start(start), child_stop(tree, parent, index))
    if len(parent.children) == 1:
        splices = _emptied(tree, spot.trail[:-1], parent) + splices  # at one offset, before the marks

    def drop(old: list[Shape]) -> list[Shape]:
        return old[:index] + old[index + 1 :]

    return checked(tree, splices, expected(tree, spot.trail[:-1], with_children(drop)))


def _marks(tree: Tree, column: int, start: int, stop: int) -> list[Splice]:
    """Return the splices that put `# ` before the lines from `start` to `stop`; blank ones get `#`."""
    splices = []
    line = start
    while True:
        end = tree.lines.end(line)
        text = tree.text[line:end]
        bom = 1 if text.startswith(BOM) else 0
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
        bom = 1 if tree.text.startswith(BOM) and line == 0 else 0
        return [Splice(line + bom, line + bom, empty + tree.lines.newline(line))]
    holder, index = trail[-1]
    outer = holder.children[index]
    after = outer.colon if isinstance(outer, Entry) else outer.start + 1
    if parent.anchor:
        after = tree.text.index(parent.anchor, after) + len(parent.anchor)
    return [Splice(after, after, f" {empty}")]


def comment_in(tree: Tree, path: KeyPath, line: int | None = None) -> Tree:
    """Take the comment marks off the entry that is commented out at a path; `line` says which of several.

    Raises:
        NotWrittenError: no such entry is commented out (on that line).
        EditRefusedError: several are, the key is set as well, or the lines do not read as the entry.
    """
    entry = _commented(tree, path, line)
    parent = find_spot(tree, path[:-1]).node if tree.root is not None and path[:-1] else tree.root
    if isinstance(parent, MappingNode) and child_index(parent, path[-1]) is not None:
        fix = "Remove it there, or edit its value."
        where = tree.position(find_spot(tree, path).child.start)
        raise EditRefusedError(f"'{format_key(path)}' is set as well", where=where, fix=fix)
    splices = list(_unmarks(tree, entry))
    if isinstance(parent, MappingNode | SequenceNode) and not parent.children:
        splices.append(_without_braces(tree, parent))
    text = splice(tree.text, sorted(splices, key=lambda part: part.start))
    return _verified(tree, text, path)


def _commented(tree: Tree, path: KeyPath, line: int | None) -> CommentedEntry:
    """Return the entry that is commented out at a path."""
    entries = [one for one in commented_entries(tree) if _names(one.path, path)]
    matches = [one for one in entries if line is None or one.first_line <= line <= one.last_line]
    if not matches:
        at = f" on line {line}" if line is not None and entries else ""
        raise NotWrittenError(f"'{format_key(path)}' is not commented out{at}", where=tree.name)
    if len(matches) > 1:
        numbers = ", ".join(str(one.first_line) for one in matches[:_LINES_NAMED])
        numbers += f" and {len(matches) - _LINES_NAMED} more" * (len(matches) > _LINES_NAMED)
        raise EditRefusedError(
            f"'{format_key(path)}' is commented out more than once (lines {numbers})",
            where=tree.position(tree.lines.span(matches[0].first_line)[0]),
            fix="Name the line to take back in.",
        )
    return matches[0]


def _names(path: KeyPath, other: KeyPath) -> bool:
    return [str(step) for step in path] == [str(step) for step in other]


def _unmarks(tree: Tree, entry: CommentedEntry) -> Iterator[Splice]:
    for number in range(entry.first_line, entry.last_line + 1):
        start, end = tree.lines.span(number)
        mark = tree.text.index("#", start, end)
        if tree.text[mark + 1 : end].strip():
            yield Splice(mark, mark + (2 if tree.text[mark + 1 : mark + 2] == " " else 1), "")
        else:
            first = start if not tree.text[start:mark].lstrip(BOM).strip(" ") else mark
            yield Splice(first, mark + 1, "")


def _without_braces(tree: Tree, parent: Collection) -> Splice:
    """Return the splice that takes `{}` or `[]` away with the space before it; at the top, with its line."""
    start, end = parent.body, parent.end
    line = tree.lines.start(start)
    if tree.lines.indented(start) and not tree.text[end : tree.lines.end(end)].strip():
        bom = 1 if tree.text.startswith(BOM) and line == 0 else 0
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
    """List the entries and the list items that are commented out, in the order of the text."""
    if "#" not in tree.text:
        return []
    lines = LINE_BREAK.split(tree.text)
    holders = _Holders(tree)
    entries: list[CommentedEntry] = []
    number = 1
    while number <= len(lines):
        column = _comment_column(lines[number - 1])
        text = _uncommented(lines[number - 1]) if column is not None else ""
        last = number
        if column is not None and (_ITEM.match(text) or _KEY.match(text)):
            last = _last_line(lines, number, column, text)
            entry = _entry(holders, text, column, number, last)
            if entry is not None:
                entries.append(entry)
        number = last + 1
    certain = {entry.path for entry in entries if not entry.prose}
    return [entry for entry in entries if not entry.prose or entry.path not in certain]


def _entry(holders: _Holders, text: str, column: int, number: int, last: int) -> CommentedEntry | None:
    """Return the entry whose comment lines begin with a text; None where none could stand there."""
    match = _KEY.match(text)
    if match is None:
        path = holders.item_at(number, column)
        value = text.removeprefix("-").strip()
        return CommentedEntry(path, value, number, last, _WORDS.match(value) is not None) if path else None
    holder = holders.at(number, column)
    if holder is None:
        return None
    key = match.group().rstrip(" \t").removesuffix(":").rstrip(" \t").strip("\"'")
    value = text[match.end() :].strip()
    prose = _WORDS.match(value) is not None or (not value and last == number)
    return CommentedEntry((*holder, key), value, number, last, prose)


def _comment_column(line: str) -> int | None:
    """Return the column of the '#' of a line that is a comment; None for another one."""
    line = line.lstrip(BOM)
    mark = line.lstrip(" \t")
    return len(line) - len(mark) if mark.startswith("#") else None


def _uncommented(line: str) -> str:
    return line.lstrip(BOM).lstrip(" \t").removeprefix("#").removeprefix(" ").rstrip()


def _last_line(lines: list[str], number: int, column: int, first: str) -> int:
    """Return the last comment line of the entry: of deeper ones, its items, closing brackets, blank ones."""
    last = number
    bare = re.search(r":[ \t]*(?:#.*|[|>][-+0-9]*)?$", first) is not None
    for following in range(number + 1, len(lines) + 1):
        if _comment_column(lines[following - 1]) != column:
            break
        text = _uncommented(lines[following - 1])
        if text.startswith((" ", "\t", "]", "}")) or (bare and text.startswith("- ")):
            last = following
        elif text and not text.startswith("#"):  # a comment of the entry's own may stand between its lines
            break
    return last


class _LineEntry(NamedTuple):
    """An entry or item that begins its line; `is_open`: whether keys may stand below it."""

    line: int
    column: int
    path: KeyPath
    is_open: bool
    is_item: bool = False


class _Holders:
    """Collections of a text by line: which of them a key or item at a line and column would belong to."""

    def __init__(self, tree: Tree) -> None:
        self.rows: list[_LineEntry] = []
        """Entries and list items in lines."""
        self.lists: list[tuple[int, KeyPath, list[int]]] = []
        """Column, path and the lines of the items of each list in lines."""
        self.empty_lists: list[tuple[int, int, KeyPath]] = []
        """Line, last of the comment lines right below, and path of each `[]`."""
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
                    line, column = tree.lines.number(entry.start), tree.lines.column(entry.start)
                    self.rows.append(_LineEntry(line, column, below, _is_open(entry.value)))
                    self._collect(tree, entry.value, below)
        elif isinstance(node, SequenceNode):
            if not node.flow:
                columns = tree.lines.column(node.children[0].start)
                self.lists.append((columns, path, [tree.lines.number(item.start) for item in node.children]))
            elif not node.children and path:
                line = tree.lines.number(node.start)
                self.empty_lists.append((line, _last_comment_below(tree, line), path))
            for index, item in enumerate(node.children):
                below = (*path, index)
                if not node.flow:
                    line, column = tree.lines.number(item.dash), tree.lines.column(item.dash)
                    self.rows.append(_LineEntry(line, column, below, _is_open(item.value), is_item=True))
                self._collect(tree, item.value, below)

    def at(self, line: int, column: int) -> KeyPath | None:
        """Return the path of the mapping that a key at a line and column belongs to."""
        if any(first <= line <= last for first, last in self.blocks):
            return None
        for row in reversed(self.rows):
            if row.line > line or row.column > column:
                continue
            if row.column == column:
                if not row.is_item:
                    return row.path[:-1]
                # A list may begin at the column of its key, and then its key's siblings stand there, too.
                return row.path[:-2] if self._begins_at(row.path[:-1], column) else None
            return row.path if row.is_open and self._may_stand(row.path, column) else None
        return () if self.top and self._may_stand((), column) else None

    def _begins_at(self, path: KeyPath, column: int) -> bool:
        """Return whether the key of a path is at a column."""
        return any(row.path == path and row.column == column and not row.is_item for row in self.rows)

    def _may_stand(self, path: KeyPath, column: int) -> bool:
        """Return whether a column is that of the keys in a mapping; at the top the first, if it has none."""
        inside = next((row for row in self.rows if row.path[:-1] == path and row.path), None)
        return inside.column == column if inside is not None else bool(path) or column == 0

    def item_at(self, line: int, column: int) -> KeyPath | None:
        """Return the path that an item at a line and column would have, in a list of that column around it.

        Right above the first item and right below the last one count; so do the comments below `[]`.
        """
        if any(first <= line <= last for first, last in self.blocks):
            return None
        for first, last, path in self.empty_lists:
            if first < line <= last:
                return (*path, 0)
        around = [(path, items) for depth, path, items in self.lists if depth == column]
        for path, items in around:
            above = [item for item in items if item < line]
            if above and not self._ends(above[-1], line, column):
                return (*path, len(above))
        for path, items in around:
            if items[0] > line and not self._ends(line, items[0], column + 1):
                return (*path, 0)
        return None

    def _ends(self, first: int, last: int, column: int) -> bool:
        """Return whether a key left of a column begins between two lines."""
        return any(first < row.line < last and row.column < column for row in self.rows if not row.is_item)


def _last_comment_below(tree: Tree, line: int) -> int:
    """Return the last of the comment lines right below a line; the line itself where none is."""
    start = tree.lines.next(tree.lines.span(line)[0])
    while start < len(tree.text) and tree.text[start : tree.lines.end(start)].lstrip(" \t").startswith("#"):
        line, start = line + 1, tree.lines.next(start)
    return line


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
