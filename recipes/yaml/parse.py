"""Text to nodes, from the events of ruamel.yaml.

The events carry exact code point offsets, with four exceptions that are mended here: an implied
null has no place, a node with an anchor or a tag begins at that, a block collection ends at the
next token behind comments, and a block scalar includes the blank lines below it. Events are used
rather than composed nodes because composing replaces an alias by the node it names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from recipes.errors import FilePosition, RecipeError
from recipes.yaml.lines import Lines
from recipes.yaml.nodes import AliasNode, Entry, Item, MappingNode, Node, ScalarNode, SequenceNode, Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROPERTY = re.compile(r"&[^\s,\[\]{}]+|!<[^>]*>|![^\s,\[\]{}]*")
_BLOCK_HEADER = re.compile(r"[|>][^\s#]*")
_BLANK_END = re.compile(r"(?:\r\n|\n|\r)[ \t\r\n]*\Z")
_TAB = re.compile(r"character '\\t'")
MAX_DEPTH = 200
"""Deeper nesting is refused: no recipe needs it, and Python's stack ends at about five times this."""

# What ruamel.yaml's parser was seen to raise on broken input besides its own errors.
_PARSER_FAULTS = (
    ValueError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    AssertionError,
    NotImplementedError,
)


def parse(text: str, name: str = "the text") -> Tree:
    """Parse a text; raises `RecipeError` with line and column if it is not YAML."""
    lines = Lines(text)
    try:
        roots = tuple(_Builder(text, lines, name).documents())
    except ReaderError as error:
        place = _place(name, lines, int(error.position))
        character = error.character
        number = character if isinstance(character, int) else ord(str(character)[:1] or "\0")
        what = f"Not YAML: the character U+{number:04X} is not allowed"
        raise RecipeError(
            what, where=place, fix="Remove it, or write it as an escape in double quotes."
        ) from error
    except MarkedYAMLError as error:
        raise _explained(error, name, lines) from error
    except (YAMLError, *_PARSER_FAULTS) as error:
        raise RecipeError(f"Not YAML: {error}", where=FilePosition(name)) from error
    return Tree(name, text, lines, roots)


def _explained(error: MarkedYAMLError, name: str, lines: Lines) -> RecipeError:
    mark = error.problem_mark or error.context_mark
    problem = " ".join(str(error.problem or error.context or "cannot be parsed").split())
    fix = "Correct the line; often it is a quote, a bracket or the indentation just before it."
    if _TAB.search(problem):
        problem, fix = "a tab stands where YAML wants spaces", "Replace the tab by spaces."
    return RecipeError(f"Not YAML: {problem}", where=_place(name, lines, mark.index if mark else 0), fix=fix)


def _place(name: str, lines: Lines, offset: int) -> FilePosition:
    return FilePosition(name, *lines.place(max(0, min(offset, len(lines.text)))))


class _Builder:
    """Builds nodes from one stream of events."""

    def __init__(self, text: str, lines: Lines, name: str) -> None:
        self.text = text
        self.lines = lines
        self.name = name
        self.events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)

    def documents(self) -> Iterator[Node]:
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                yield self.node(next(self.events), event.end_mark.index, 0)

    def node(self, event: Any, hint: int, depth: int) -> Node:  # noqa: ANN401 - ruamel.yaml's events are untyped
        """Build a node; an implied null stands at `hint`."""
        start: int = event.start_mark.index
        if depth > MAX_DEPTH:
            raise RecipeError(
                f"Nested deeper than {MAX_DEPTH} levels", where=_place(self.name, self.lines, start)
            )
        if isinstance(event, AliasEvent):
            end = event.end_mark.index
            return AliasNode(start, start, end, end, str(event.anchor))
        if isinstance(event, ScalarEvent):
            return self.scalar(event, start, event.end_mark.index, hint)
        tag = str(event.ctag) if event.ctag is not None else None
        body = self.after_properties(start) if event.anchor or self.text[start : start + 1] == "!" else start
        if isinstance(event, MappingStartEvent):
            return self.mapping(event, start, body, tag, depth + 1)
        assert isinstance(event, SequenceStartEvent)
        return self.sequence(event, start, body, tag, depth + 1)

    def scalar(self, event: Any, start: int, end: int, hint: int) -> ScalarNode:  # noqa: ANN401
        anchor, style, value = event.anchor, event.style, str(event.value)
        tagged = self.text[start : start + 1] in ("!", "&") and "!" in self.text[start:end]
        if start == end or (not value and style is None and not anchor and not tagged):
            return ScalarNode(hint, hint, hint, hint, None, None, "", None, empty=True)
        body = self.after_properties(start, end) if anchor or self.text[start] == "!" else start
        tag = str(event.ctag) if event.ctag is not None and "!" in self.text[start:body] else None
        if body >= end and style is None and not value:
            at = start + len(self.text[start:end].rstrip())
            return ScalarNode(start, at, at, end, anchor, tag, "", None, empty=True)
        close = self.block_end(body, end) if style in ("|", ">") else end
        return ScalarNode(start, body, close, end, anchor, tag, value, style, empty=False)

    def block_end(self, body: int, end: int) -> int:
        """Where the content of a block scalar ends, without the line break of its last line."""
        header = _BLOCK_HEADER.match(self.text, body, end)
        if header is not None and "+" in header.group():
            # All blank lines below are content: only the last line break is not.
            return end - (2 if self.text[:end].endswith("\r\n") else 1 if self.text[end - 1] in "\r\n" else 0)
        blank = _BLANK_END.search(self.text[body:end])
        return body + blank.start() if blank else end

    def after_properties(self, start: int, limit: int | None = None) -> int:
        """Where the content begins behind an anchor and a tag."""
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
            closing.end_mark.index
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
                raise RecipeError("A list item without '-'", where=_place(self.name, self.lines, dash))
            value = self.node(closing, position if flow else dash + 1, depth)
            if not items and not flow and bare:
                start = body = dash
            items.append(Item(value, dash, flow))
            position = max(_stop(value), dash if flow else dash + 1)
        end = closing.end_mark.index if flow else max(items[-1].end, body) if items else position
        return SequenceNode(start, body, end, end, event.anchor, tag, flow, tuple(items))


def _stop(node: Node) -> int:
    return node.stop if isinstance(node, ScalarNode) and node.block else node.end
