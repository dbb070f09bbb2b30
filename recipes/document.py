"""Recipe text as a document: an edit changes the intended value and not one byte more.

An edit is a splice of the text. Before it is taken, the new text is parsed, and read by OmegaConf's own
loader; an edit that does not read back as the intended values is refused.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.chain import decode, read_bytes
from recipes.files import Saved, save, unified_diff
from recipes.keys import KeyMissingError, KeyPath, Step, format_key, parse_key
from recipes.origins import keys_sharing_text
from recipes.revision import Revision, changed_leaves, check_reads_back
from recipes.values import Map, Plain, Seq, Value, child, find, plain
from recipes.yaml.check import EditRefusedError
from recipes.yaml.comment_out import comment_in, comment_out
from recipes.yaml.comments import Comment, comment_of, set_comment
from recipes.yaml.edit import assign, insert_item, insert_key, set_value, written_depth
from recipes.yaml.find import find_spot, merges
from recipes.yaml.nodes import AliasNode, ScalarNode
from recipes.yaml.offsets import LINE_BREAK
from recipes.yaml.parse import parse
from recipes.yaml.remove import delete
from recipes.yaml.typed import writable, yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.locks import RecipeLock
    from recipes.yaml.nodes import Tree
    from recipes.yaml.write import Writable


@dataclass(frozen=True, slots=True)
class Change:
    """Effect of an edit: the key, and the other keys that changed with it through anchors."""

    key: str
    also: tuple[str, ...]


class Document:
    """Text of one recipe with its history. Keys are dotted (`a.b.0`) or tuples of steps."""

    def __init__(
        self,
        text: str,
        name: str = "<text>",
        *,
        path: Path | None = None,
        opened: bytes | None = None,
        revision: Revision | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self._opened = opened
        self._history = [revision or Revision(parse(text, name))]
        self._now = 0
        self._saved = self._history[0]

    @classmethod
    def open(cls, path: Path) -> Document:
        """Open a file; raises `RecipeError` with line and column if it is no UTF-8 or no YAML."""
        data = read_bytes(path)
        return cls(decode(data, str(path)), str(path), path=path, opened=data)

    @classmethod
    def at(cls, revision: Revision, path: Path | None = None) -> Document:
        """Return a document that begins at a revision, without parsing its text again."""
        tree = revision.tree
        return cls(tree.text, tree.name, path=path, revision=revision)

    @property
    def revision(self) -> Revision:
        """Present state."""
        return self._history[self._now]

    @property
    def text(self) -> str:
        """Text as it would be saved."""
        return self.revision.tree.text

    @property
    def problems(self) -> tuple[str, ...]:
        """Reasons why OmegaConf refuses the text, each with file, line and column."""
        revision = self.revision
        return tuple(
            f"{revision.tree.position(item.start)}: {item.what}" for item in revision.composed.problems
        )

    @property
    def changed(self) -> bool:
        """Return whether the text differs from what was opened or saved last."""
        return self.text != self._saved.tree.text

    # Reading

    def get(self, key: str | KeyPath) -> Plain:
        """Return a value, merges followed, interpolations as written; raises `KeyMissingError`."""
        path = _path(key)
        values = self.revision.values
        value = find(values, path) if values is not None else None
        if value is None:
            if not path:
                return None
            raise KeyMissingError(f"There is no key '{format_key(path)}'", where=self.name)
        return plain(value)

    def has(self, key: str | KeyPath) -> bool:
        """Return whether a key is there, written or merged."""
        values = self.revision.values
        return values is not None and find(values, _path(key)) is not None

    def is_written(self, key: str | KeyPath) -> bool:
        """Return whether a key is written itself, neither merged nor behind an alias."""
        path = _path(key)
        return written_depth(self.revision.tree, path)[0] == len(path)

    def yaml(self, key: str | KeyPath) -> str:
        """Return a value as YAML, spelled as it is written, so that setting it again gives the same text.

        A string comes without the quotes that it does not need: an edit keeps those of the old value.
        """
        value = self.get(key)
        text, spelling = yaml_text(writable(value)), self.spelling(key)
        if not spelling.isprintable() or (text == value and value in (spelling, spelling[1:-1])):
            return text
        return spelling or text

    def spelling(self, key: str | KeyPath) -> str:
        """Return how a scalar is written; "" for what is no scalar, on several lines or not written here."""
        path = _path(key)
        depth, node = written_depth(self.revision.tree, path)
        if depth != len(path) or not isinstance(node, ScalarNode) or node.tag or node.empty or node.block:
            return ""
        text = self.text[node.body : node.end]
        return "" if LINE_BREAK.search(text) else text

    def line(self, key: str | KeyPath) -> int:
        """Return the line, counted from 1, where a key's value is written."""
        spot = find_spot(self.revision.tree, _path(key))
        return self.revision.tree.lines.number(spot.child.start if spot.trail else 0)

    def comment(self, key: str | KeyPath) -> Comment:
        """Return the comment that belongs to a key."""
        return comment_of(self.revision.tree, _path(key))

    def shared_with(self, key: str | KeyPath) -> list[str]:
        """List the keys that change too when the text at a key is edited: its anchor is used there."""
        values = self.revision.values
        if values is None or not self.is_written(key):
            return []
        return [format_key(path) for path in keys_sharing_text(values, _path(key), self.name)]

    # Editing

    def set(self, key: str | KeyPath, value: Writable, *, spelling: str = "", copy: bool = False) -> Change:
        """Set a value, adding what is missing on the way to it.

        `spelling` is kept where it reads back as the value. With `copy`, sections on the way that come
        from a merge or an alias are first written out here, so that they can differ. Raises `RecipeError`.
        """
        path = _path(key)
        with self._one_step():
            while copy and (section := self._borrowed(path)):
                self.copy_inherited(section)
            depth = written_depth(self.revision.tree, path)[0]
            values = self.revision.values
            holder = find(values, path[:depth]) if values is not None else None
            inherited = tuple(holder.items) if isinstance(holder, Map) else ()
            return self._take(assign(self.revision.tree, path, value, spelling, inherited), path)

    def insert(self, parent: str | KeyPath, key: Step, value: Writable, *, spelling: str = "") -> Change:
        """Add a key to a mapping.

        Raises:
            EditRefusedError: the key exists already, merged keys included.
        """
        path = _path(parent)
        if self.has((*path, key)):
            fix = "Set it instead."
            raise EditRefusedError(f"'{format_key((*path, key))}' already exists", where=self.name, fix=fix)
        if not path or self.is_written(path):
            return self._take(insert_key(self.revision.tree, path, key, value, spelling), (*path, key))
        return self.set((*path, key), value, spelling=spelling)

    def insert_item(self, key: str | KeyPath, index: int, value: Writable, *, spelling: str = "") -> Change:
        """Insert an item into a list, at its end if the index is past it."""
        return self._take(insert_item(self.revision.tree, _path(key), index, value, spelling), _path(key))

    def append(self, key: str | KeyPath, value: Writable, *, spelling: str = "") -> Change:
        """Add an item at the end of a list."""
        held = self.get(key)
        return self.insert_item(key, len(held) if isinstance(held, list) else 0, value, spelling=spelling)

    def delete(self, key: str | KeyPath, *, with_comments: bool = False) -> Change:
        """Remove a key or an item with the comment beside it; `with_comments` takes those above it too.

        Raises:
            KeyMissingError: there is no such key.
            EditRefusedError: the key comes from a merge or an alias, or its anchor is used elsewhere.
        """
        path = _path(key)
        if not self.is_written(path) and self.has(path):
            self._refuse_to_delete(path)
        elif not self.is_written(path):
            raise KeyMissingError(f"There is no key '{format_key(path)}'", where=self.name)
        return self._take(delete(self.revision.tree, path, with_comments=with_comments), path)

    def set_comment(self, key: str | KeyPath, text: str, *, above: bool = False) -> Change:
        """Add, replace or (empty text) remove the comment beside a key, or above it.

        Raises:
            EditRefusedError: there is no line for it: several values share one, or the text has line breaks.
        """
        return self._take(set_comment(self.revision.tree, _path(key), text, above=above), _path(key))

    def comment_out(self, key: str | KeyPath) -> Change:
        """Comment out a key or an item with all its lines.

        Raises:
            NotWrittenError: nothing is written at the key.
            EditRefusedError: it has no line of its own, or its anchor is used elsewhere.
        """
        return self._take(comment_out(self.revision.tree, _path(key)), _path(key))

    def comment_in(self, key: str | KeyPath, line: int | None = None) -> Change:
        """Take a key that is commented out back in; `line` says which where several lines have it.

        Raises:
            NotWrittenError: it is not commented out.
            EditRefusedError: several lines have it, it is set as well, or its lines do not read as the key.
        """
        return self._take(comment_in(self.revision.tree, _path(key), line), _path(key))

    def copy_inherited(self, key: str | KeyPath) -> Change:
        """Write out here a section that comes from a merge or an alias: it stops following its anchor."""
        path = _path(key)
        held = self.get(path)
        tree = self.revision.tree
        if not self.is_written(path):
            return self._take(insert_key(tree, path[:-1], path[-1], writable(held)), path)
        return self._take(set_value(tree, path, writable(held)), path)

    def _borrowed(self, path: KeyPath) -> KeyPath | None:
        """Return the first section on the way to a path that is not written here but merged or an alias."""
        depth, node = written_depth(self.revision.tree, path)
        if isinstance(node, AliasNode) and depth < len(path):
            return path[:depth]
        if depth < len(path) - 1 and self.has(path[: depth + 1]):
            return path[: depth + 1]
        return None

    def _refuse_to_delete(self, path: KeyPath) -> None:
        _, node = written_depth(self.revision.tree, path)
        names = ", ".join(f"&{name}" for name in merges(node)) or "its anchor"
        what = f"'{format_key(path)}' is not written here: it comes from {names}"
        if isinstance(node, AliasNode):
            what = f"'{format_key(path)}' is inside *{node.name}"
            names = f"&{node.name}"
        fix = f"Set another value here, or delete it where {names} is written (that changes all its users)."
        raise EditRefusedError(
            what, where=self.revision.tree.position(node.start) if node else self.name, fix=fix
        )

    def _take(self, tree: Tree, path: KeyPath) -> Change:
        """Make an edited tree the present state once OmegaConf reads it as we do."""
        before, after = self.revision, Revision(tree)
        if tree is before.tree:
            return Change(format_key(path), ())
        check_reads_back(before, after, self.name)
        del self._history[self._now + 1 :]
        self._history.append(after)
        self._now += 1
        # The items behind an inserted or removed one only move; the sections around an edit hold it.
        path = _typed(path, after.values or before.values)
        holder = find(before.values, path[:-1]) if before.values is not None and path else None
        scope = path[:-1] if isinstance(holder, Seq) else path
        changed = changed_leaves(before.values, after.values)
        also = [other for other in changed if other[: len(scope)] != scope and scope[: len(other)] != other]
        return Change(format_key(path), tuple(format_key(other) for other in also))

    # History

    @contextmanager
    def _one_step(self) -> Iterator[None]:
        """Make the edits inside one step of the history; on an error none of them stays."""
        start, tail = self._now, self._history[self._now + 1 :]
        try:
            yield
        except Exception:
            self._history[start + 1 :] = tail
            self._now = start
            raise
        if self._now > start:
            self._history[start + 1 :] = [self._history[self._now]]
            self._now = start + 1

    group = _one_step

    def undo(self) -> bool:
        """Go back one step; False if there is none."""
        if self._now == 0:
            return False
        self._now -= 1
        return True

    def redo(self) -> bool:
        """Go forward one step again; False if there is none."""
        if self._now + 1 >= len(self._history):
            return False
        self._now += 1
        return True

    def diff(self) -> str:
        """Return a unified diff from what was opened or saved last to the present text."""
        return unified_diff(self._saved.tree.text, self.text, self.name, self.name)

    # Files

    def to_bytes(self) -> bytes:
        """Return the bytes that saving writes."""
        return self.text.encode("utf-8")

    def save(
        self, path: Path | None = None, *, lock: RecipeLock | None = None, accept_changes: bool = False
    ) -> Saved:
        """Write the file atomically; `recipes.files.save` says what the arguments mean and what is raised."""
        target = path or self.path
        if target is None:
            raise EditRefusedError("The text has no file to be saved to", where=self.name)
        opened = self._opened if target == self.path else None
        data = self.to_bytes()
        saved = save(target, data, opened, lock=lock, accept_changes=accept_changes)
        self.path, self._opened, self._saved = target, data, self.revision
        return saved


def _path(key: str | KeyPath) -> KeyPath:
    return parse_key(key) if isinstance(key, str) else key


def _typed(path: KeyPath, values: Value | None) -> KeyPath:
    """Return a path with its steps as they are typed in the values: list items as numbers, keys as read."""
    steps: list[Step] = []
    for step in path:
        match = child(values, step) if values is not None else None
        name, values = match if match is not None else (step, None)
        steps.append(name)
    return tuple(steps)
