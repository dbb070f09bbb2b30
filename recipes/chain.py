"""Reading of a recipe and its parents, each file once for as long as it does not change."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import Exit, FilePosition, RecipeError
from recipes.interpolation import Evaluator, UnsupportedError
from recipes.limits import CHAIN_BYTES, CHAIN_LEVELS, PARENTS, RECIPE_BYTES, VALUES
from recipes.merge import merge_recipes
from recipes.reading import IrregularFileError, TooLargeError, read_limited
from recipes.remote_path import environment_at, on_machine_of
from recipes.values import EMPTY, Leaf, Map, Seq, Value, plain
from recipes.yaml.compose import Composed, compose
from recipes.yaml.parse import parse
from recipes.yaml.reader import read_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recipes.keys import Step
    from recipes.yaml.nodes import Tree

DEFAULTS = "defaults"


@dataclass(frozen=True)
class ParsedFile:
    """Parsed file: its values without `defaults`, and what `defaults` names."""

    path: Path
    tree: Tree
    values: Map
    parents: tuple[str, ...]
    exact: bool
    """True if our own reading is OmegaConf's for sure; else OmegaConf itself resolves the recipe."""
    count: int = 0
    """Values of the file, aliases counted where they are used."""

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
        return all(chain.source.exact for chain in self.distinct())

    def distinct(self) -> list[Chain]:
        """List the chains of all parents and this one, each once, in the order of merging."""
        chains: dict[int, Chain] = {}
        self._collect(chains)
        return list(chains.values())

    def _collect(self, chains: dict[int, Chain]) -> None:
        if id(self) in chains:
            return
        for parent in self.parents:
            parent._collect(chains)
        chains[id(self)] = self

    def files(self) -> list[str]:
        """List the files in the order in which they are first merged; the recipe itself is last."""
        return list(dict.fromkeys(chain.source.tree.name for chain in self.distinct()))


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
        return read_limited(path, RECIPE_BYTES)
    except FileNotFoundError as error:
        raise RecipeError(f"There is no recipe file {path}", where=path, fix="Check the path.") from error
    except (IsADirectoryError, NotADirectoryError) as error:
        raise RecipeError(f"{path} is not a file", where=path, fix="Give a YAML file.") from error
    except (IrregularFileError, TooLargeError) as error:
        fix = "Give a YAML file; the limits are in docs/security.md."
        raise RecipeError(f"Not a recipe: {error.strerror}", where=path, fix=fix) from error
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise RecipeError(f"{path} is not a file", where=path, fix="Give a YAML file.") from error
        failed = RecipeError(f"Cannot read the recipe: {error.strerror or error}", where=path)
        failed.exit_code = Exit.OUTSIDE
        raise failed from error


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
    parents = () if named is None else _parents(tree, value, named, environment_at(path))
    return ParsedFile(path, tree, Map(items, value.mark), parents, exact, composed.count)


def refuse_unreadable(tree: Tree, composed: Composed) -> None:
    """Raise `RecipeError` for a text that OmegaConf refuses."""
    if not composed.problems:
        return
    problem = composed.limit_problem or composed.problems[0]
    what = problem.what[:1].upper() + problem.what[1:]
    refused = RecipeError(what, where=tree.position(problem.start), fix=problem.fix)
    if composed.limit_problem is not None:
        raise refused
    try:
        read_config(tree.text, tree.name)
    except RecipeError as error:
        raise refused from error


def _parents(tree: Tree, root: Map, named: Value, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Read `defaults:` as NeMo-RL does: a path or a list of paths, interpolations resolved."""
    position = tree.position(named.mark.start)
    evaluator = Evaluator(root, environment)
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
        return _Ancestry(self).chain(source, ())

    def source(self, path: Path) -> ParsedFile:
        """Read one file."""
        data = read_bytes(path)
        cached = self._sources.get(path)
        if cached is not None and cached[0] == data:
            return cached[1]
        source = source_of(path, parse(decode(data, str(path)), str(path)))
        self._sources[path] = (data, source)
        return source

    def merged(self, chain: Chain, *, strict: bool = True) -> Map:
        """Merge a recipe with its parents; raises `UnsupportedError` if `strict`."""
        return self._merged(chain, strict, {})

    def base(self, chain: Chain, *, strict: bool = True) -> Map:
        """Merge a recipe's parents, without the recipe; raises `UnsupportedError` if `strict`."""
        return self._base(chain, strict, {})

    def _merged(self, chain: Chain, strict: bool, memo: dict[int, Map]) -> Map:
        """Merge a recipe with its parents; `memo` has those of this call that were merged already."""
        if id(chain) not in memo:
            memo[id(chain)] = self._merge(chain, strict, memo)
        return memo[id(chain)]

    def _merge(self, chain: Chain, strict: bool, memo: dict[int, Map]) -> Map:
        source = chain.source
        if not source.parents:
            return source.values
        base = self._base(chain, strict, memo)
        cached = self._whole.get(source.path)
        if cached is not None and cached[0] is source and cached[1] is base and cached[2] == strict:
            return cached[3]
        whole = merge_recipes(base, source.values, strict=strict)
        self._whole[source.path] = (source, base, strict, whole)
        return whole

    def _base(self, chain: Chain, strict: bool, memo: dict[int, Map]) -> Map:
        source = chain.source
        parents = tuple(self._merged(parent, strict, memo) for parent in chain.parents)
        cached = self._bases.get(source.path)
        if cached is not None and cached[1] == strict and list(map(id, cached[0])) == list(map(id, parents)):
            return cached[2]
        base = EMPTY
        for parent in parents:
            base = merge_recipes(base, parent, strict=strict)
        self._bases[source.path] = (parents, strict, base)
        return base


@dataclass
class _Ancestry:
    """Reading of one recipe's parents: each file once, however often it is named, up to the limits."""

    reader: RecipeReader
    chains: dict[Path, Chain] = field(default_factory=dict)
    links: int = 0
    size: int = 0
    values: int = 0

    def chain(self, source: ParsedFile, above: tuple[ParsedFile, ...]) -> Chain:
        """Return a recipe with its parents; `above` are the files that lead to it."""
        real = _real(source.path)
        links = " -> ".join([*(str(link.path) for link in above), str(source.path)])
        if any(_real(link.path) == real for link in above):
            fix = "Remove one `defaults:` line of this chain."
            raise RecipeError("The recipe inherits from itself", where=links, fix=fix)
        self.add(source, len(above))
        parents = []
        for name in source.parents:
            path = _tidy(source.path.parent / name)  # an absolute name stands for itself
            self.links += 1
            if self.links > PARENTS.value:
                self.refuse(source, f"has more than {PARENTS} of `defaults:`, parents' parents counted")
            if path not in self.chains:
                self.chains[path] = self.parent(path, source, above, links)
            parents.append(self.chains[path])
        return Chain(source, tuple(parents))

    def parent(self, path: Path, source: ParsedFile, above: tuple[ParsedFile, ...], links: str) -> Chain:
        try:
            parent = self.reader.source(path)
        except RecipeError as error:
            raise _in_chain(error, path, source, f"{links} -> {path}") from error
        return self.chain(parent, (*above, source))

    def add(self, source: ParsedFile, level: int) -> None:
        """Count a file; raises `RecipeError` where the chain gets too large."""
        self.size += len(source.text)
        self.values += source.count
        if level > CHAIN_LEVELS.value:
            self.refuse(source, f"has more than {CHAIN_LEVELS} of parents")
        if self.size > CHAIN_BYTES.value:
            self.refuse(source, f"is larger than {CHAIN_BYTES} with its parents")
        if self.values > VALUES.value:
            self.refuse(source, f"has more than {VALUES} with its parents")

    @staticmethod
    def refuse(source: ParsedFile, why: str) -> None:
        where = defaults_position(source) or FilePosition(str(source.path))
        raise RecipeError(f"The recipe {why}", where=where, fix="Inherit from fewer or smaller files.")


def _tidy(path: Path) -> Path:
    """Return a path without `..`, unless symlinks give those another meaning."""
    if ".." not in path.parts:
        return path
    tidy = on_machine_of(path, os.path.normpath(str(path)))
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
    node = child.values.mark
    position = defaults_position(child)
    if not isinstance(error.__cause__, FileNotFoundError):
        if isinstance(error.where, Path):  # nothing in that file is to blame, but the line that names it
            error.where = position or FilePosition(str(child.path), node.line)
            error.what = f"The parent recipe {path} cannot be read ({links}): {error.what}"
        return error
    what = f"The parent recipe {path} does not exist ({links})"
    fix = f"Correct `defaults:`; paths count from the directory of {child.path.name}."
    return RecipeError(what, where=position or FilePosition(str(child.path), node.line), fix=fix)


def defaults_position(source: ParsedFile) -> FilePosition | None:
    """Return the place of the value of `defaults:` in a file; None where it has none."""
    from recipes.yaml.nodes import MappingNode, ScalarNode

    root = source.tree.root
    if isinstance(root, MappingNode):
        for entry in root.children:
            if isinstance(entry.key, ScalarNode) and entry.key.value == DEFAULTS:
                return source.tree.position(entry.value.start)
    return None
