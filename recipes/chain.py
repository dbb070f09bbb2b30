"""Reading of a recipe and its parents, each file once for as long as it does not change."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import Exit, FilePosition, RecipeError
from recipes.interpolation import Evaluator, UnsupportedError
from recipes.merge import merge_recipes
from recipes.values import EMPTY, Leaf, Map, Seq, Value, plain
from recipes.yaml.compose import Composed, compose
from recipes.yaml.parse import parse
from recipes.yaml.reader import read_config

if TYPE_CHECKING:
    from recipes.keys import Step
    from recipes.yaml.nodes import Tree

DEFAULTS = "defaults"
MAX_BYTES = 8 * 1024 * 1024
"""Limit of a recipe's size; the largest stock recipe has 60 kB."""


@dataclass(frozen=True)
class ParsedFile:
    """Parsed file: its values without `defaults`, and what `defaults` names."""

    path: Path
    tree: Tree
    values: Map
    parents: tuple[str, ...]
    exact: bool
    """True if our own reading is OmegaConf's for sure; else OmegaConf itself resolves the recipe."""

    @property
    def text(self) -> str:
        """Text as it was parsed."""
        return self.tree.text


@dataclass(frozen=True)
class Chain:
    """Recipe with its parents, each with theirs."""

    source: ParsedFile
    parents: tuple[Chain, ...]

    @property
    def exact(self) -> bool:
        """Return whether every file can be judged without OmegaConf."""
        return self.source.exact and all(parent.exact for parent in self.parents)

    def files(self) -> list[str]:
        """List the files in the order in which they are merged; the recipe itself is last."""
        return [name for parent in self.parents for name in parent.files()] + [self.source.tree.name]


def decode(data: bytes, name: str) -> str:
    """Decode a recipe's bytes; raises `RecipeError` with line and column if they are not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        head = data[: error.start]
        position = FilePosition(name, head.count(b"\n") + 1, len(head) - head.rfind(b"\n"))
        what = f"Not UTF-8 text: byte 0x{data[error.start]:02x}"
        raise RecipeError(what, where=position, fix="Save the file as UTF-8, or give a text file.") from error


def read_bytes(path: Path) -> bytes:
    """Read a recipe's bytes; raises `RecipeError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise RecipeError(f"There is no recipe file {path}", where=path, fix="Check the path.") from error
    except (IsADirectoryError, NotADirectoryError, ValueError) as error:
        raise RecipeError(f"{path} is not a file", where=path, fix="Give a YAML file.") from error
    except OSError as error:
        failed = RecipeError(f"Cannot read the recipe: {error.strerror or error}", where=path)
        failed.exit_code = Exit.OUTSIDE
        raise failed from error
    if len(data) > MAX_BYTES:
        raise RecipeError(f"Larger than {MAX_BYTES // 2**20} MiB: not a recipe", where=path)
    return data


def source_of(path: Path, tree: Tree, composed: Composed | None = None) -> ParsedFile:
    """Return a parsed text as a recipe; raises `RecipeError` where NeMo-RL's loader fails."""
    composed = composed or compose(tree)
    refuse_unreadable(tree, composed)
    value = composed.value
    if value is None or (isinstance(value, Leaf) and value.value is None):
        value = EMPTY
    if not isinstance(value, Map):
        what = "A recipe must be a mapping of keys to values"
        raise RecipeError(what, where=tree.position(value.mark.start), fix="Write `key: value` lines.")
    exact = not composed.problems and not composed.uncertain
    items: dict[Step, Value] = dict(value.items)
    named = items.pop(DEFAULTS, None)
    parents = () if named is None else _parents(tree, value, named)
    return ParsedFile(path, tree, Map(items, value.mark), parents, exact)


def refuse_unreadable(tree: Tree, composed: Composed) -> None:
    """Raise `RecipeError` for a text that OmegaConf refuses."""
    if not composed.problems:
        return
    problem = composed.problems[0]
    what = problem.what[:1].upper() + problem.what[1:]
    refused = RecipeError(what, where=tree.position(problem.start), fix=problem.fix)
    if composed.oversized:
        raise refused
    try:
        read_config(tree.text, tree.name)
    except RecipeError as error:
        raise refused from error


def _parents(tree: Tree, root: Map, named: Value) -> tuple[str, ...]:
    """Read `defaults:` as NeMo-RL does: a path or a list of paths, interpolations resolved."""
    position = tree.position(named.mark.start)
    evaluator = Evaluator(root)
    try:
        settled, settled_path = evaluator.settle(named, (DEFAULTS,))
        listed = evaluator.plain(settled, settled_path)
    except UnsupportedError as error:
        raise RecipeError(f"`defaults:` cannot be resolved: {error}", where=position) from error
    names = listed if isinstance(listed, list) and isinstance(settled, Seq) else [listed]
    for name in names:
        if not isinstance(name, str) or not name:
            fix = "Write `defaults: parent.yaml` or a list of such paths."
            raise RecipeError(
                f"invalid `defaults:`: {plain(named)!r} (expected a path or a list of paths)",
                where=position,
                fix=fix,
            )
    return tuple(str(name) for name in names)


@dataclass
class RecipeReader:
    """Reader of recipes that keeps what it parsed and merged for as long as the bytes stay the same.

    One reader serves one editor or one command; it is not for several threads at a time.
    """

    _sources: dict[Path, tuple[bytes, ParsedFile]] = field(default_factory=dict)
    _bases: dict[Path, tuple[tuple[Map, ...], bool, Map]] = field(default_factory=dict)
    _whole: dict[Path, tuple[ParsedFile, Map, bool, Map]] = field(default_factory=dict)

    def chain(self, path: Path, tree: Tree | None = None, composed: Composed | None = None) -> Chain:
        """Read a recipe and all its parents; `tree` is the recipe's text where it is not that of the file.

        Raises `RecipeError` for a file that is missing, cannot be read or parsed, or inherits from itself.
        """
        source = self.source(path) if tree is None else source_of(path, tree, composed)
        return self._with_parents(source, ())

    def source(self, path: Path) -> ParsedFile:
        """Read one file."""
        data = read_bytes(path)
        cached = self._sources.get(path)
        if cached is not None and cached[0] == data:
            return cached[1]
        source = source_of(path, parse(decode(data, str(path)), str(path)))
        self._sources[path] = (data, source)
        return source

    def _with_parents(self, source: ParsedFile, above: tuple[ParsedFile, ...]) -> Chain:
        real = _real(source.path)
        links = " -> ".join([*(str(link.path) for link in above), str(source.path)])
        if any(_real(link.path) == real for link in above):
            fix = "Remove one `defaults:` line of this chain."
            raise RecipeError("The recipe inherits from itself", where=links, fix=fix)
        parents = []
        for name in source.parents:
            path = _tidy(source.path.parent / name)  # an absolute name stands for itself
            try:
                parent = self.source(path)
            except RecipeError as error:
                raise _in_chain(error, path, source, f"{links} -> {path}") from error
            parents.append(self._with_parents(parent, (*above, source)))
        return Chain(source, tuple(parents))

    def merged(self, chain: Chain, *, strict: bool = True) -> Map:
        """Merge a recipe with its parents; raises `UnsupportedError` if `strict`."""
        source = chain.source
        if not source.parents:
            return source.values
        base = self.base(chain, strict=strict)
        cached = self._whole.get(source.path)
        if cached is not None and cached[0] is source and cached[1] is base and cached[2] == strict:
            return cached[3]
        whole = merge_recipes(base, source.values, strict=strict)
        self._whole[source.path] = (source, base, strict, whole)
        return whole

    def base(self, chain: Chain, *, strict: bool = True) -> Map:
        """Merge a recipe's parents, without the recipe; raises `UnsupportedError` if `strict`."""
        source = chain.source
        parents = tuple(self.merged(parent, strict=strict) for parent in chain.parents)
        cached = self._bases.get(source.path)
        if cached is not None and cached[1] == strict and list(map(id, cached[0])) == list(map(id, parents)):
            return cached[2]
        base = EMPTY
        for parent in parents:
            base = merge_recipes(base, parent, strict=strict)
        self._bases[source.path] = (parents, strict, base)
        return base


def _tidy(path: Path) -> Path:
    """Return a path without `..`, unless symlinks give those another meaning."""
    if ".." not in path.parts:
        return path
    tidy = Path(os.path.normpath(path))
    try:
        return tidy if tidy.samefile(path) else path
    except OSError:
        return path


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of symlinks
        return path.absolute()


def _in_chain(error: RecipeError, path: Path, child: ParsedFile, links: str) -> RecipeError:
    """Return the error for a parent that cannot be read, with the recipe that names it."""
    if path.exists():
        return error
    node = child.values.mark
    position = _defaults_position(child)
    what = f"The parent recipe {path} does not exist ({links})"
    fix = f"Correct `defaults:`; paths count from the directory of {child.path.name}."
    return RecipeError(what, where=position or FilePosition(str(child.path), node.line), fix=fix)


def _defaults_position(source: ParsedFile) -> FilePosition | None:
    from recipes.yaml.nodes import MappingNode, ScalarNode

    root = source.tree.root
    if isinstance(root, MappingNode):
        for entry in root.children:
            if isinstance(entry.key, ScalarNode) and entry.key.value == DEFAULTS:
                return source.tree.position(entry.value.start)
    return None
