"""Nodes of a YAML text, with where they are written. Offsets count code points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recipes.errors import FilePosition
from recipes.yaml.offsets import Lines
from recipes.yaml.scalars import read_omegaconf, read_tagged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.yaml.scalars import Scalar, Unreadable


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """Scalar. `body` is where it begins after anchor and tag, `stop` where the parser went on."""

    start: int
    body: int
    end: int
    stop: int
    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    empty: bool
    """True for the null of `key:`, where nothing is written."""

    @property
    def block(self) -> bool:
        """Return whether it is a literal or folded block."""
        return self.style in ("|", ">")

    def read(self) -> Scalar | Unreadable:
        """Return the typed value as OmegaConf reads it."""
        if self.tag:
            return read_tagged(self.tag, self.value)
        if self.style is not None:
            return self.value
        return None if self.empty else read_omegaconf(self.value)


@dataclass(frozen=True, slots=True)
class AliasNode:
    """Alias such as `*BASE`."""

    start: int
    body: int
    end: int
    stop: int
    name: str


@dataclass(frozen=True, slots=True)
class Entry:
    """Pair of a mapping; `colon` is the offset after its ':'."""

    key: Node
    value: Node
    colon: int

    @property
    def start(self) -> int:
        """Offset where the entry begins."""
        return self.key.start

    @property
    def end(self) -> int:
        """Offset where its content ends, before comments and blank lines."""
        return max(self.value.end, self.colon)


@dataclass(frozen=True, slots=True)
class Item:
    """Item of a sequence; `dash` is the offset of its '-' (in a flow sequence, of itself)."""

    value: Node
    dash: int
    flow: bool

    @property
    def start(self) -> int:
        """Offset where the item begins."""
        return self.value.start if self.flow else self.dash

    @property
    def end(self) -> int:
        """Offset where its content ends, before comments and blank lines."""
        return self.value.end if self.flow else max(self.value.end, self.dash + 1)


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Mapping; `pair` marks the single pair `a: 1` of a flow sequence `[a: 1]`, which has no braces."""

    start: int
    body: int
    end: int
    stop: int
    anchor: str | None
    tag: str | None
    flow: bool
    pair: bool
    children: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """Sequence."""

    start: int
    body: int
    end: int
    stop: int
    anchor: str | None
    tag: str | None
    flow: bool
    children: tuple[Item, ...]


Collection = MappingNode | SequenceNode
Node = ScalarNode | AliasNode | MappingNode | SequenceNode


def is_merge_key(node: Node) -> bool:
    """Return whether a key is the merge key `<<`."""
    return isinstance(node, ScalarNode) and node.value == "<<" and node.style is None and not node.tag


def walk(node: Node) -> Iterator[Node]:
    """Return a node and everything written inside it, in the order of the text."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, MappingNode):
            for entry in reversed(node.children):
                waiting += (entry.value, entry.key)
        elif isinstance(node, SequenceNode):
            waiting += [item.value for item in reversed(node.children)]


def last_leaf(node: Node) -> Node:
    """Return the last node written inside block collections; a flow collection counts as one."""
    while isinstance(node, MappingNode | SequenceNode) and node.children and not node.flow:
        node = node.children[-1].value
    return node


@dataclass(frozen=True)
class Tree:
    """Parsed text. `name` is what errors call it, `roots` are its documents (a recipe has one)."""

    name: str
    text: str
    lines: Lines = field(compare=False)
    roots: tuple[Node, ...]

    @property
    def root(self) -> Node | None:
        """Root of the first document, None if the text holds none."""
        return self.roots[0] if self.roots else None

    def position(self, offset: int) -> FilePosition:
        """Return the file position of an offset, for messages."""
        return FilePosition(self.name, *self.lines.position(offset))
