"""Check that an edited text reads back as meant.

Every edit says what the typed tree must be afterwards, anchors, aliases and tags included. The new
text is parsed and compared; a text that does not read back so is never taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recipes.errors import Exit, RecipeError
from recipes.yaml.nodes import AliasNode, MappingNode, ScalarNode, SequenceNode, Tree, is_merge_key, walk
from recipes.yaml.parse import parse
from recipes.yaml.scalars import same
from recipes.yaml.splice import splice

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.yaml.nodes import Collection, Node
    from recipes.yaml.splice import Splice
    from recipes.yaml.write import Writable


class EditRefusedError(RecipeError):
    """Refusal of an edit; nothing was changed."""

    exit_code = Exit.FAILED


Shape = object
"""Typed tree as nested tuples."""

Trail = tuple[tuple["Collection", int], ...]
"""Path from the root to a node: each collection and the index of the child taken."""

_MERGE = ("<<",)


def shape(node: Node) -> Shape:
    """Return the shape of a node, aliases not followed."""
    if isinstance(node, AliasNode):
        return ("alias", node.name)
    if isinstance(node, ScalarNode):
        value = node.read()
        return value if node.anchor is None else ("anchor", node.anchor, value)
    return ("map" if isinstance(node, MappingNode) else "seq", node.anchor, node.tag, children_shape(node))


def children_shape(node: Collection) -> list[Shape]:
    """Return the shapes of a collection's children."""
    if isinstance(node, SequenceNode):
        return [shape(item.value) for item in node.children]
    return [(key_shape(entry.key), shape(entry.value)) for entry in node.children]


def key_shape(node: Node) -> Shape:
    """Return the shape of a key."""
    if is_merge_key(node):
        return _MERGE
    return shape(node) if isinstance(node, ScalarNode) else ("key", shape(node))


def shape_of(value: Writable) -> Shape:
    """Return the shape of plain data once it is written."""
    if isinstance(value, Mapping):
        return ("map", None, None, [(key, shape_of(item)) for key, item in value.items()])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ("seq", None, None, [shape_of(item) for item in value])
    return value


def expected(tree: Tree, trail: Trail, change: Callable[[Shape], Shape]) -> list[Shape]:
    """Return the shapes of all documents with the node at the end of a trail changed."""
    shapes = [shape(root) for root in tree.roots]
    if not shapes:
        return [change(("map", None, None, []))]
    shapes[0] = _changed(shapes[0], trail, change)
    return shapes


def _changed(old: Shape, trail: Trail, change: Callable[[Shape], Shape]) -> Shape:
    if not trail:
        return change(old)
    (collection, index), rest = trail[0], trail[1:]
    assert isinstance(old, tuple)
    children = list(old[3])
    if isinstance(collection, MappingNode):
        key, value = children[index]
        children[index] = (key, _changed(value, rest, change))
    else:
        children[index] = _changed(children[index], rest, change)
    return (*old[:3], children)


def with_children(change: Callable[[list[Shape]], list[Shape]]) -> Callable[[Shape], Shape]:
    """Return a change of a collection's shape from a change of its children."""

    def changed(old: Shape) -> Shape:
        assert isinstance(old, tuple)
        return (*old[:3], change(list(old[3])))

    return changed


def checked(tree: Tree, splices: Sequence[Splice], expected_shapes: list[Shape]) -> Tree:
    """Apply splices and parse; raises `EditRefusedError` if the text does not read back as expected."""
    text = splice(tree.text, splices)
    try:
        trial = parse(text, tree.name)
    except RecipeError as error:
        raise EditRefusedError(
            f"The edit would make the text invalid YAML: {error.what}", where=error.where
        ) from error
    if not same([shape(root) for root in trial.roots], expected_shapes):
        where = tree.position(splices[0].start) if splices else tree.name
        raise EditRefusedError("The edited text would not read back as the intended values", where=where)
    missing = undefined_aliases(trial)
    if missing and (lost := missing - undefined_aliases(tree)):
        name = sorted(lost)[0]
        fix = f"Change the keys that use *{name} first."
        raise EditRefusedError(f"The edit would remove the anchor &{name}, which is used elsewhere", fix=fix)
    return trial


def undefined_aliases(tree: Tree) -> set[str]:
    """Return the aliases that name no anchor above them."""
    missing: set[str] = set()
    if "*" not in tree.text:
        return missing
    for root in tree.roots:
        defined: set[str] = set()
        for node in walk(root):
            if isinstance(node, AliasNode):
                missing |= set() if node.name in defined else {node.name}
            elif node.anchor:
                defined.add(node.anchor)
    return missing
