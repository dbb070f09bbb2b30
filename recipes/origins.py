"""Origins of a value, and the other keys that change with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.interpolation import UnsupportedError, is_interpolation
from recipes.keys import KeyPath, format_key, parse_key
from recipes.values import Leaf, Plain, Value, find, leaves, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.inheritance import EffectiveRecipe, Origin


@dataclass(frozen=True, slots=True)
class Link:
    """Step on the way to a value: a key, where it is written, and the value as written."""

    key: str
    origin: Origin
    written: Plain


def chain_of(recipe: EffectiveRecipe, key: str) -> list[Link]:
    """List the steps to a value: where it is written, the keys that it refers to, and so on."""
    located = recipe.locate(parse_key(key))
    if located is None:
        return []
    links: list[Link] = []
    pending = [located]
    visited: set[KeyPath] = set()
    while pending:
        value, path = pending.pop(0)
        if path in visited:
            continue
        visited.add(path)
        links.append(Link(format_key(path), recipe.origin_of(value), plain(value)))
        for source_path in sorted(recipe.evaluator.reads.get(path, ()), key=str):
            target = find(recipe.merged, source_path)
            if target is not None:
                pending.append((target, source_path))
    return links


def replaced_by(recipe: EffectiveRecipe, key: str) -> list[Link]:
    """List the values that the one at a key replaced, the nearest first."""
    located = recipe.locate(parse_key(key))
    links: list[Link] = []
    value = located[0].under if located is not None else None
    while value is not None:
        links.append(Link(key, recipe.origin_of(value), plain(value)))
        value = value.under
    return links


def followers_of(recipe: EffectiveRecipe, key: str) -> list[str]:
    """List the other keys that change when a key is set in the recipe's own file.

    Those are the keys whose interpolation reads it, at any remove, and, if it is written in this file and
    not inherited, the keys that get it from there by a merge (`<<`) or an alias.
    """
    start = recipe.locate(parse_key(key))
    if start is None:
        return []
    index = _Index(recipe)
    followers: dict[KeyPath, None] = {}
    # The text changes in one place only; from there on values change because they are read.
    pending = [start[1], *index.twins_of(start[1])]
    followers.update(dict.fromkeys(pending[1:]))
    while pending:
        path = pending.pop()
        for follower in index.readers(path):
            if follower not in followers and follower[: len(start[1])] != start[1]:
                followers[follower] = None
                pending.append(follower)
    order = {path: number for number, (path, _) in enumerate(leaves(recipe.merged))}
    return [
        format_key(path)
        for path in sorted(followers, key=lambda path: (order.get(path, len(order)), str(path)))
    ]


class _Index:
    """Index of the keys that read each other, and of the keys that share one text."""

    def __init__(self, recipe: EffectiveRecipe) -> None:
        self.recipe = recipe
        self.own = str(recipe.path)
        self.of_read: dict[KeyPath, list[KeyPath]] = {}
        self.of_inner: dict[KeyPath, list[KeyPath]] = {}
        for reader, reads in recipe.evaluator.reads.items():
            for read in reads:
                self.of_read.setdefault(read, []).append(reader)
                for depth in range(len(read)):
                    self.of_inner.setdefault(read[:depth], []).append(reader)
        self.twins: dict[tuple[str, int], list[KeyPath]] = {}
        for path, value in leaves(recipe.merged):
            if value.mark.merged:
                self.twins.setdefault((value.mark.file, value.mark.start), []).append(path)

    def readers(self, path: KeyPath) -> Iterator[KeyPath]:
        """Yield the keys whose interpolation reads the one at a path."""
        for depth in range(len(path) + 1):  # a section around the key, or the key itself
            for reader in self.of_read.get(path[:depth], ()):
                yield from self._arrivals(reader, path[depth:])
        yield from self.of_inner.get(path, ())  # of a key inside the section that changes

    def twins_of(self, path: KeyPath) -> Iterator[KeyPath]:
        """Yield the keys that a merge or an alias gives the very text at a path, if it is this file's."""
        value = find(self.recipe.merged, path)
        if value is not None:
            for _, leaf in leaves(value, path):
                if leaf.mark.file == self.own and not leaf.mark.merged:
                    yield from self.twins.get((leaf.mark.file, leaf.mark.start), ())

    def _arrivals(self, reader: KeyPath, rest: KeyPath) -> Iterator[KeyPath]:
        """Yield where the rest of a path is found again behind an interpolation."""
        value = find(self.recipe.merged, reader)
        if not rest or not isinstance(value, Leaf) or not is_interpolation(value.value):
            yield reader
            return
        try:
            target, _ = self.recipe.evaluator.settle(value, reader)
        except UnsupportedError:
            target = value
        yield reader if isinstance(target, Leaf) else (*reader, *rest)


def keys_sharing_text(values: Value, path: KeyPath, file: str) -> list[KeyPath]:
    """List the other keys of one file that a merge or an alias gives the very text at a path."""
    value = find(values, path)
    if value is None:
        return []
    starts = {leaf.mark.start for _, leaf in leaves(value) if leaf.mark.file == file}
    return [
        other
        for other, leaf in leaves(values)
        if other[: len(path)] != path and leaf.mark.file == file and leaf.mark.start in starts
    ]
