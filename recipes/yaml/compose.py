"""Nodes to values: aliases and merge keys followed in the order in which PyYAML follows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recipes.limits import DEPTH, INTERPOLATION_CHARACTERS, MADE_CHARACTERS, VALUES
from recipes.values import Leaf, Map, Mark, Measure, Seq, Value, as_merged, measure
from recipes.yaml.nodes import (
    AliasNode,
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Tree,
    is_merge_key,
)
from recipes.yaml.scalars import Unreadable, shortened

if TYPE_CHECKING:
    from recipes.keys import Step


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason why OmegaConf refuses the text; `start` is its offset."""

    what: str
    start: int
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Composed:
    """Values of a text, and its problems. `value` is None for an empty text."""

    value: Value | None
    problems: tuple[Problem, ...]
    uncertain: bool
    """PyYAML's versions read a merge differently: one of a list or of what itself merges, or a second one."""
    limit_problem: Problem | None = None
    """Limit that the text exceeds (`recipes.limits`): it is never handed to anything that copies values."""
    count: int = 0
    """Number of values, aliases counted where they are used."""


def compose(tree: Tree) -> Composed:
    """Return the values of the first document."""
    composer = _Composer(tree)
    value = composer.value(tree.root) if tree.root is not None else None
    if len(tree.roots) > 1:
        composer.problem(
            "the file holds several documents ('---')", tree.roots[1].start, "Keep one document."
        )
    return Composed(
        value, tuple(composer.problems), composer.uncertain, composer.limit_problem, composer.values
    )


@dataclass(slots=True)
class _Composer:
    tree: Tree
    anchors: dict[str, Value] = field(default_factory=dict)
    extents: dict[int, Measure] = field(default_factory=dict)
    merging: set[str] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    uncertain: bool = False
    limit_problem: Problem | None = None
    values: int = 0
    characters: int = 0
    depth: int = 0

    def problem(self, what: str, start: int, fix: str = "") -> None:
        self.problems.append(Problem(what, start, fix))

    def exceeds(self, what: str, start: int, fix: str = "") -> None:
        """Report that a limit is exceeded; only the first such problem counts."""
        fix = fix or "Leave out what no recipe needs; the limits are in docs/security.md."
        self.problem(what, start, fix)
        self.limit_problem = self.limit_problem or self.problems[-1]

    def mark(self, node: Node, at: int) -> Mark:
        return Mark(self.tree.name, self.tree.lines.number(at), node.start)

    def value(self, node: Node, at: int | None = None) -> Value:
        """Compose a node. A collection counts as written at `at`, the line of its key or '-'."""
        self.values += 1
        if isinstance(node, AliasNode):
            return self.alias(node)
        if isinstance(node, ScalarNode):
            scalar = node.read()
            if isinstance(scalar, Unreadable):
                self.unreadable(scalar, node)
                scalar = node.value
            elif isinstance(scalar, str) and "${" in scalar and len(scalar) > INTERPOLATION_CHARACTERS.value:
                self.exceeds(f"a text with interpolations longer than {INTERPOLATION_CHARACTERS}", node.start)
            composed: Value = Leaf(scalar, self.mark(node, node.start))
        else:
            if node.tag is not None and node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
                self.problem(f"OmegaConf does not know the tag {node.tag}", node.start)
            at = node.start if at is None else at
            if node.anchor:
                self.unfinished.add(node.anchor)
            self.depth += 1
            composed = self.mapping(node, at) if isinstance(node, MappingNode) else self.sequence(node, at)
            self.depth -= 1
        if node.anchor:
            self.anchors[node.anchor] = composed
            self.unfinished.discard(node.anchor)
            if isinstance(node, MappingNode) and any(is_merge_key(entry.key) for entry in node.children):
                self.merging.add(node.anchor)
            else:
                self.merging.discard(node.anchor)
        return composed

    def alias(self, node: AliasNode) -> Value:
        target = self.anchors.get(node.name)
        if node.name in self.unfinished:
            self.problem(f"the alias *{node.name} is used inside its own anchor &{node.name}", node.start)
            return Leaf(None, self.mark(node, node.start))
        if target is None:
            fix = f"Define it with &{node.name} above this line."
            self.problem(f"the alias *{node.name} has no anchor above it", node.start, fix)
            return Leaf(None, self.mark(node, node.start))
        return (
            as_merged(target)
            if self.fits(self.measure(target), node)
            else Leaf(None, self.mark(node, node.start))
        )

    def measure(self, target: Value) -> Measure:
        """Return the extent of an anchored value, measured once."""
        if id(target) not in self.extents:
            self.extents[id(target)] = measure(target)
        return self.extents[id(target)]

    def fits(self, size: Measure, node: AliasNode) -> bool:
        """Count the use of an anchored value; report the limit that it exceeds, if any."""
        self.values += size.values
        self.characters += size.characters
        if self.values > VALUES.value:
            self.exceeds(f"the aliases expand to more than {VALUES}", node.start)
        elif self.characters > MADE_CHARACTERS.value:
            self.exceeds(f"the aliases expand to more than {MADE_CHARACTERS}", node.start)
        elif self.depth + size.height > DEPTH.value:
            self.exceeds(f"the aliases nest deeper than {DEPTH}", node.start)
        else:
            return True
        return False

    def unreadable(self, scalar: Unreadable, node: ScalarNode) -> None:
        """Report a scalar that OmegaConf refuses, or that exceeds a limit."""
        if scalar.limit is not None:
            fix = "Put it in quotes if it is a text."
            self.exceeds(f"a number longer than {scalar.limit}: {shortened(scalar.text)}", node.start, fix)
        else:
            self.problem(f"OmegaConf cannot read the value {shortened(scalar.text)}", node.start)

    def sequence(self, node: SequenceNode, at: int) -> Seq:
        items = tuple(self.value(item.value, item.start) for item in node.children)
        return Seq(items, self.mark(node, at))

    def mapping(self, node: MappingNode, at: int) -> Map:
        merged: dict[Step, Value] = {}
        own: list[tuple[Step, Value]] = []
        lines: dict[str, int] = {}
        for entry in node.children:
            if is_merge_key(entry.key):
                self.uncertain = self.uncertain or bool(merged)
                self.merge(entry, merged)
                continue
            key = self.key(entry.key, lines)
            value = self.value(entry.value, entry.start)
            if key is not None:
                own.append((key, value))
        merged.update(own)
        return Map(merged, self.mark(node, at))

    def key(self, node: Node, lines: dict[str, int]) -> Step:
        """Return the typed key; a key that is none of OmegaConf's is reported and left out.

        `lines` are those of the mapping's keys so far.
        """
        if not isinstance(node, ScalarNode):
            self.problem("OmegaConf takes only scalars as keys", node.start)
            return None
        scalar = node.read()
        if isinstance(scalar, Unreadable) and scalar.text == "=" and not node.tag:
            scalar = "="
        if scalar is None or isinstance(scalar, Unreadable):
            self.problem(f"OmegaConf cannot take {shortened(node.value) or 'nothing'!r} as a key", node.start)
            if isinstance(scalar, Unreadable) and scalar.limit is not None:
                self.unreadable(scalar, node)
            return None
        if isinstance(scalar, str):
            line = self.tree.lines.number(node.start)
            if scalar in lines:
                fix = f"Remove one of the two (lines {lines[scalar]} and {line})."
                self.problem(f"duplicate key '{shortened(scalar)}'", node.start, fix)
            lines[scalar] = line
        return scalar

    def merge(self, entry: Entry, merged: dict[Step, Value]) -> None:
        node = entry.value
        sources = [item.value for item in node.children] if isinstance(node, SequenceNode) else [node]
        if isinstance(node, AliasNode) and isinstance(self.anchors.get(node.name), Seq):
            value = self.value(node)
            self.problem("a merge takes a mapping or a list of mappings, written out", node.start)
            return
        self.uncertain = self.uncertain or len(sources) > 1
        for source in reversed(sources):
            value = self.value(source)
            if isinstance(source, AliasNode) and source.name in self.merging:
                self.uncertain = True
            if isinstance(source, MappingNode) and any(is_merge_key(inner.key) for inner in source.children):
                self.uncertain = True
            if not isinstance(value, Map):
                self.problem("a merge (<<) takes only mappings", source.start)
                continue
            for key, merged_value in value.items.items():
                merged[key] = as_merged(merged_value) if not merged_value.mark.merged else merged_value
