"""Writing of a whole recipe in one text: parents merged in, with the comments of all its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.chain_comments import ChainComments
from recipes.errors import RecipeError
from recipes.keys import KeyPath, Step
from recipes.values import Leaf, Map, Plain, Seq, Value, plain
from recipes.yaml.compose import compose
from recipes.yaml.layout import Layout
from recipes.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from recipes.yaml.parse import parse
from recipes.yaml.scalars import same
from recipes.yaml.typed import writable
from recipes.yaml.write import KEY, BlockWriter, Manner, flow_text, scalar_text

if TYPE_CHECKING:
    from recipes.chain import RecipeReader
    from recipes.inheritance import EffectiveRecipe
    from recipes.yaml.nodes import Tree
    from recipes.yaml.write import Writable

_LAYOUT = Layout()


def expand(recipe: EffectiveRecipe, reader: RecipeReader, tree: Tree, *, resolved: bool = False) -> str:
    """Write a recipe with all it inherits; `tree` is its own text.

    Interpolations stay as they are unless `resolved`. The text is read back and compared before it is
    returned; raises `RecipeError` if it could not be written so.
    """
    expected_values = recipe.public if resolved else plain(recipe.merged)
    for with_spelling in (True, False):
        comments = ChainComments(reader, tree, recipe.files)
        writer = _Expander(recipe, comments, resolved=resolved, with_spelling=with_spelling)
        text = "\n".join(writer.mapping(recipe.merged, (), 0)) + "\n"
        value = compose(parse(text, "the expanded recipe")).value
        if same(plain(value) if value is not None else {}, expected_values):
            return text
    raise RecipeError("The expanded text would not read back as the same recipe", where=recipe.path)


@dataclass(slots=True)
class _Expander:
    recipe: EffectiveRecipe
    comments: ChainComments
    resolved: bool
    with_spelling: bool

    def mapping(self, value: Map, path: KeyPath, column: int) -> list[str]:
        """Write the entries of a mapping, one line after another."""
        lines: list[str] = []
        pad = " " * column
        for key, item in value.items.items():
            comment = self.comments.of(item)
            if not path and lines:
                lines.append("")
            lines += [f"{pad}# {line}".rstrip() for line in comment.above.splitlines()]
            note = f" # {comment.beside}" if comment.beside else ""
            lines += self.entry(key, item, (*path, key), column, note)
        return lines

    def entry(self, key: Step, item: Value, path: KeyPath, column: int, note: str) -> list[str]:
        head = " " * column + scalar_text(key, KEY) + ":"
        if isinstance(item, Map) and item.items and not self.is_flow(item):
            return [head + note, *self.mapping(item, path, column + _LAYOUT.step)]
        if isinstance(item, Seq) and item.items and not self.is_flow(item):
            return [head + note, *self.sequence(item, path, column + _LAYOUT.dash)]
        first, *rest = (head + self.inline(item, path, column)).split("\n")
        return [first + note, *rest]

    def sequence(self, value: Seq, path: KeyPath, column: int) -> list[str]:
        lines: list[str] = []
        pad = " " * column
        for index, item in enumerate(value.items):
            comment = self.comments.of(item)
            lines += [f"{pad}# {line}".rstrip() for line in comment.above.splitlines()]
            if isinstance(item, Map) and item.items and not self.is_flow(item):
                inner = self.mapping(item, (*path, index), column + 2)
                comments = inner[: _first_entry(inner)]
                first, *rest = inner[len(comments) :]
                lines += [*comments, f"{pad}- {first.lstrip(' ')}", *rest]
            else:
                first, *rest = f"{pad}-{self.inline(item, (*path, index), column, dash=True)}".split("\n")
                lines += [first + (f" # {comment.beside}" if comment.beside else ""), *rest]
        return lines

    def inline(self, item: Value, path: KeyPath, column: int, *, dash: bool = False) -> str:
        """Write what follows a ':' or '-': a scalar, or a collection that was in brackets or is empty."""
        data: Writable = writable(self.data(item, path))
        spot = self.comments.spot(item)
        node = spot.node if spot is not None else None
        if isinstance(item, Seq) or (isinstance(node, MappingNode | SequenceNode) and node.flow):
            return " " + flow_text(data)
        manner = self.manner(item, node, data)
        if self.with_spelling and manner.spelling:
            return " " + manner.spelling
        writer = BlockWriter(_LAYOUT, "\n")
        return (
            writer.after_dash(data, column, manner=manner) if dash else writer.after_key(data, column, manner)
        )

    def manner(self, item: Value, node: Node | None, data: Writable) -> Manner:
        """Return how a scalar is spelled where it comes from, if that still says the same."""
        if not isinstance(item, Leaf) or not isinstance(node, ScalarNode) or node.block or node.tag:
            return Manner()
        index = self.comments.index_of(item.mark.file)
        text = index.tree.text[node.body : node.end] if index is not None else ""
        if "\n" in text or "\r" in text or not same(item.value, data):
            return Manner(quotes=node.style)
        return Manner(quotes=node.style, old=text, spelling=text)

    def data(self, item: Value, path: KeyPath) -> Plain:
        if not self.resolved:
            return plain(item)
        value: object = self.recipe.public
        for step in path:
            assert isinstance(value, dict | list)
            value = value[step]  # type: ignore[index]
        return value  # type: ignore[return-value]

    def is_flow(self, item: Map | Seq) -> bool:
        """Return whether a collection stands in brackets where it was written last."""
        spot = self.comments.spot(item)
        return spot is not None and isinstance(spot.node, MappingNode | SequenceNode) and spot.node.flow


def _first_entry(lines: list[str]) -> int:
    return next(number for number, line in enumerate(lines) if not line.lstrip().startswith("#"))
