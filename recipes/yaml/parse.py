"""Parsing of text to nodes, from the events of PyYAML's parser (`recipes.yaml.parser_events`).

The events carry exact code point offsets, with four exceptions that are mended here: an implied
null has no position, a node with an anchor or a tag begins at that, a block collection ends at the
next token behind comments, and a block scalar includes the blank lines below it. Events are used
rather than composed nodes because composing replaces an alias by the node it names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.reader import ReaderError

from recipes.errors import FilePosition, RecipeError
from recipes.yaml.nodes import AliasNode, Entry, Item, MappingNode, Node, ScalarNode, SequenceNode, Tree
from recipes.yaml.offsets import BREAKS, Lines
from recipes.yaml.parser_events import parser_events

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROPERTY = re.compile(r"&[0-9A-Za-z_-]+|!<[^>]*>|![-;/?:@&=+$,_.!~*'()\[\]%0-9A-Za-z]*")
_BLOCK_HEADER = re.compile(r"[|>][^\s#]*")
_BLANK_END = re.compile(r"(?:\r\n|[\n\r\x85\u2028\u2029])[ \t\n\r\x85\u2028\u2029]*\Z")
_NAME = re.compile(r"while scanning an (anchor|alias)")
MAX_DEPTH = 200
"""Limit of nesting: no recipe needs it, and Python's stack ends at about five times this."""

# Raised by PyYAML for escapes and %YAML versions that are no code point or number.
_PARSER_FAULTS = (ValueError, OverflowError)


def parse(text: str, name: str = "the text") -> Tree:
    """Parse a text; raises `RecipeError` with line and column if it is not YAML."""
    lines = Lines(text)
    try:
        roots = tuple(_Builder(text, lines, name).documents())
    except ReaderError as error:
        position = _position(name, lines, int(error.position))
        character = error.character
        number = character if isinstance(character, int) else ord(str(character)[:1] or "\0")
        what = f"Not YAML: the character U+{number:04X} is not allowed"
        raise RecipeError(
            what, where=position, fix="Remove it, or write it as an escape in double quotes."
        ) from error
    except MarkedYAMLError as error:
        raise _explained(error, name, lines) from error
    except (YAMLError, *_PARSER_FAULTS) as error:
        raise RecipeError(f"Not YAML: {error}", where=FilePosition(name)) from error
    return Tree(name, text, lines, roots)


def _explained(error: MarkedYAMLError, name: str, lines: Lines) -> RecipeError:
    mark = error.problem_mark or error.context_mark
    problem = " ".join(str(error.problem or error.context or "cannot be parsed").split())
    fix = "Correct the line (OmegaConf reads YAML 1.1); often it is a quote, a bracket or the indentation."
    offset = mark.index if mark else 0
    if match := _NAME.match(str(error.context)):
        problem = f"invalid name of an {match[1]} (expected letters, digits, '-' and '_')"
        fix = f"Rename the anchor and every alias of it; NeMo-RL's YAML parser says: {error.problem}."
    elif lines.text[offset : offset + 1] == "\t" or "'\\t'" in problem:
        problem, fix = (
            "a tab where YAML expects spaces",
            "Replace the tab with spaces (OmegaConf's parser accepts no tab here).",
        )
    elif error.context_mark is not None and error.context_mark.line != getattr(mark, "line", None):
        problem += f" ({error.context} that begins at line {lines.number(error.context_mark.index)})"
    return RecipeError(f"Not YAML: {problem}", where=_position(name, lines, offset), fix=fix)


def _position(name: str, lines: Lines, offset: int) -> FilePosition:
    return FilePosition(name, *lines.position(max(0, min(offset, len(lines.text)))))


class _Builder:
    """Builds nodes from one stream of events."""

    def __init__(self, text: str, lines: Lines, name: str) -> None:
        self.text = text
        self.lines = lines
        self.name = name
        self.events = parser_events(text)
        self.anchors: dict[str, int] = {}

    def documents(self) -> Iterator[Node]:
        """Build the root of each document."""
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                self.anchors.clear()
                yield self.node(next(self.events), _offset(event.end_mark), 0)

    def node(self, event: Any, hint: int, depth: int) -> Node:  # noqa: ANN401 - PyYAML's events have no common class
        """Build a node; an implied null stands at `hint`.

        Raises:
            RecipeError: it lies deeper than MAX_DEPTH.
        """
        start: int = _offset(event.start_mark)
        if depth > MAX_DEPTH:
            raise RecipeError(
                f"Nested deeper than {MAX_DEPTH} levels", where=_position(self.name, self.lines, start)
            )
        if isinstance(event, AliasEvent):
            end = _offset(event.end_mark)
            return AliasNode(start, start, end, end, str(event.anchor))
        self.declare(event.anchor, start)
        if isinstance(event, ScalarEvent):
            return self.scalar(event, start, _offset(event.end_mark), hint)
        tag = str(event.tag) if event.tag is not None else None
        body = self.after_properties(start) if event.anchor or tag else start
        if isinstance(event, MappingStartEvent):
            return self.mapping(event, start, body, tag, depth + 1)
        assert isinstance(event, SequenceStartEvent)
        return self.sequence(event, start, body, tag, depth + 1)

    def declare(self, anchor: str | None, start: int) -> None:
        """Remember where an anchor stands; raises `RecipeError` if the document has it already.

        YAML 1.2 lets a name be used again; PyYAML's composer refuses it.
        """
        if anchor is None:
            return
        if anchor in self.anchors:
            first, second = self.lines.number(self.anchors[anchor]), self.lines.number(start)
            what = f"The anchor &{anchor} is defined twice (lines {first} and {second})"
            fix = "NeMo-RL's YAML parser refuses that: rename one of them and its aliases."
            raise RecipeError(what, where=_position(self.name, self.lines, start), fix=fix)
        self.anchors[anchor] = start

    def scalar(self, event: Any, start: int, end: int, hint: int) -> ScalarNode:  # noqa: ANN401
        anchor, style, value = event.anchor, event.style or None, str(event.value)
        tag = str(event.tag) if event.tag is not None else None
        if start == end or (not value and style is None and not anchor and tag is None):
            return ScalarNode(hint, hint, hint, hint, None, None, "", None, empty=True)
        body = self.after_properties(start, end) if anchor or tag is not None else start
        if body >= end and style is None and not value:
            at = start + len(self.text[start:end].rstrip())
            return ScalarNode(start, at, at, end, anchor, tag, "", None, empty=True)
        close = self.block_end(body, end) if style in ("|", ">") else end
        return ScalarNode(start, body, close, end, anchor, tag, value, style, empty=False)

    def block_end(self, body: int, end: int) -> int:
        """Return where the content of a block scalar ends, without the line break of its last line."""
        header = _BLOCK_HEADER.match(self.text, body, end)
        if header is not None and "+" in header.group():
            # All blank lines below are content: only the last line break is not.
            return end - (2 if self.text[:end].endswith("\r\n") else 1 if self.text[end - 1] in BREAKS else 0)
        blank = _BLANK_END.search(self.text[body:end])
        return body + blank.start() if blank else end

    def after_properties(self, start: int, limit: int | None = None) -> int:
        """Return where the content begins behind an anchor and a tag."""
        limit = len(self.text) if limit is None else limit
        position = start
        for _ in range(2):
            match = _PROPERTY.match(self.text, position, limit)
            if match is None:
                break
            position = min(self.lines.gap(match.end()), limit)
        return position

    def mapping(self, event: Any, start: int, body: int, tag: str | None, depth: int) -> MappingNode:  # noqa: ANN401
        flow, bare = bool(event.flow_style), start == body
        pair = flow and self.text[body : body + 1] != "{"
        entries: list[Entry] = []
        position = body
        while not isinstance(closing := next(self.events), MappingEndEvent):
            key = self.node(closing, position, depth)
            if isinstance(key, ScalarNode) and key.empty and not key.anchor:
                gap = self.lines.gap(position)
                gap += self.text[gap : gap + 1] == "?"
                key = ScalarNode(gap, gap, gap, gap, None, key.tag, "", None, empty=True)
            gap = self.lines.gap(key.stop)
            colon = gap + 1 if self.text[gap : gap + 1] == ":" else key.end
            value = self.node(next(self.events), colon, depth)
            if not entries and not flow and bare:
                start = body = min(start, key.start)
            entries.append(Entry(key, value, colon))
            position = max(_stop(value), colon)
        end = (
            _offset(closing.end_mark)
            if flow and not pair
            else max(entries[-1].end, body)
            if entries
            else position
        )
        return MappingNode(start, body, end, end, event.anchor, tag, flow, pair, tuple(entries))

    def sequence(self, event: Any, start: int, body: int, tag: str | None, depth: int) -> SequenceNode:  # noqa: ANN401
        flow, bare = bool(event.flow_style), start == body
        items: list[Item] = []
        position = body + 1 if flow else body
        while not isinstance(closing := next(self.events), SequenceEndEvent):
            dash = position if flow else self.lines.gap(position)
            if not flow and self.text[dash : dash + 1] != "-":
                raise RecipeError("A list item without '-'", where=_position(self.name, self.lines, dash))
            value = self.node(closing, position if flow else dash + 1, depth)
            if not items and not flow and bare:
                start = body = dash
            items.append(Item(value, dash, flow))
            position = max(_stop(value), dash if flow else dash + 1)
        end = _offset(closing.end_mark) if flow else max(items[-1].end, body) if items else position
        return SequenceNode(start, body, end, end, event.anchor, tag, flow, tuple(items))


def _offset(mark: Any) -> int:  # noqa: ANN401 - PyYAML's two mark classes, which the stubs take for optional
    return int(mark.index)


def _stop(node: Node) -> int:
    return node.stop if isinstance(node, ScalarNode) and node.block else node.end
