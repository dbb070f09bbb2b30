"""Python modules of a NeMo-RL checkout, read with `ast`: nothing of them is imported or executed.

A `CheckoutSource` reads each module once, when somebody asks for it, and follows names through imports,
re-exports and moved modules to the statement that defines them:

    source = CheckoutSource(Path("RL"))
    module = source.module("nemo_rl.models.policy")     # None where the checkout has none
    found = source.find("nemo_rl.models.policy", "GenerationConfig")
    found.module.path, found.node.lineno                # where it is really defined
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular
from recipes.schema.blocks import Blocks, Cut, Node

_BLOCKS = (ast.If, ast.Try, ast.TryStar, ast.With)
"""Statements whose body runs when a module is imported, or may."""


class Imported(NamedTuple):
    """What a name stands for that a module imports: a name of another module, or ("" for it) the module."""

    module: str
    name: str


Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module. Its tables hold what is defined or imported at module level, `if` and `try` included.

    `path` is relative to the checkout, with slashes. `stars` are the modules of `from … import *`. Classes
    and functions are parsed when they are looked up (`SyntaxError` then, as for `tree`, is possible only for
    text that no Python could read).
    """

    name: str
    path: str
    text: str
    classes: Mapping[str, ast.ClassDef]
    functions: Mapping[str, Function]
    assignments: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, Imported] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    @cached_property
    def tree(self) -> ast.Module:
        """The whole module, parsed."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text; line 1 is the first."""
        return self.text.splitlines()

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node around each node of `tree`."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def text_of(self, function: str) -> str:
        """Return the text of a function, "" where it is not known without parsing."""
        blocks = self.functions
        if isinstance(blocks, _LazyTable) and function in blocks.blocks:
            start, end = blocks.blocks.span(function)
            return self.text[start:end]
        return ""


@dataclass(frozen=True, slots=True)
class Definition:
    """A class, function or assigned expression, with the module and the name under which it is defined."""

    module: Module
    name: str
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.expr


class CheckoutSource:
    """The modules of one checkout (or of any directory of Python packages), each read at most once.

    `examples/run_distillation.py` is the module `examples.run_distillation`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str | None] = {}
        self._modules: dict[str, Module | None] = {}

    def text(self, path: str) -> str | None:
        """Return the text of a file (path relative to the checkout); None if it cannot be read."""
        if path not in self._texts:
            try:
                self._texts[path] = read_regular(self.root / path, SOURCE_BYTES).decode(
                    "utf-8", errors="replace"
                )
            except (OSError, ValueError):
                self._texts[path] = None
        return self._texts[path]

    def path_of(self, name: str) -> str | None:
        """Return the file of a module by its dotted name, relative to the checkout; None if there is none."""
        base = name.replace(".", "/")
        for path in (f"{base}.py", f"{base}/__init__.py"):
            if self.text(path) is not None:
                return path
        return None

    def module(self, name: str) -> Module | None:
        """Return a module by its dotted name; None if it is missing or is no Python."""
        if name not in self._modules:
            path = self.path_of(name) if name else None
            self._modules[name] = None if path is None else self._parse(name, path)
        return self._modules[name]

    def _parse(self, name: str, path: str) -> Module | None:
        text = self.text(path) or ""
        try:
            cut = Cut(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return _parse_whole(name, path, text)
        classes: Blocks[ast.ClassDef] = Blocks(cut.parse, cut.spans["class"])
        functions: Blocks[Function] = Blocks(cut.parse, cut.spans["def"])
        module = Module(name, path, text, _LazyTable(classes), _LazyTable(functions))
        _collect_all(module, cut.rest)
        return module

    @property
    def files(self) -> tuple[str, ...]:
        """The files read so far (relative paths)."""
        return tuple(sorted(path for path, text in self._texts.items() if text is not None))

    @property
    def looked_up(self) -> tuple[str, ...]:
        """The files asked for so far, missing ones too: what a result made from this source depends on."""
        return tuple(sorted(self._texts))

    def find(self, module: str, name: str) -> Definition | None:
        """Return where a name of a module is defined, through imports; None if that is not in the checkout.

        A dotted name goes through modules: `policy.PolicyConfig` where `policy` is an imported module.
        """
        return self._find(module, name, frozenset())

    def _find(self, module_name: str, name: str, passed: frozenset[Imported]) -> Definition | None:
        step = Imported(module_name, name)
        module = self.module(module_name)
        if module is None or step in passed:
            return None
        passed |= {step}
        first, _, rest = name.partition(".")
        if not rest:
            node = module.classes.get(name) or module.functions.get(name) or module.assignments.get(name)
            if node is not None:
                return self._through_alias(Definition(module, name, node), passed)
        imported = module.imports.get(first)
        if imported is not None:
            return self._from_import(imported, rest, passed)
        for star in () if rest else module.stars:
            definition = self._find(star, name, passed)
            if definition is not None:
                return definition
        return None

    def _from_import(self, imported: Imported, rest: str, passed: frozenset[Imported]) -> Definition | None:
        target, name = imported
        if rest or not name:
            inner = f"{target}.{name}" if name else target
            *more, last = rest.split(".")
            definition = self._find(".".join((inner, *more)), last, passed) if rest else None
            if definition is not None or not (rest and name):
                return definition
            return self._find(target, f"{name}.{rest}", passed)
        return self._find(target, name, passed)

    def _through_alias(self, definition: Definition, passed: frozenset[Imported]) -> Definition:
        """Follow `New = Old` to what `Old` is; an alias that leads nowhere is the definition itself."""
        if not isinstance(definition.node, ast.Name | ast.Attribute):
            return definition
        dotted = dotted_name(definition.node)
        return (self._find(definition.module.name, dotted, passed) if dotted else None) or definition


def dotted_name(node: ast.expr) -> str:
    """Return a plain or dotted name as text; "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted_name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module; what stands in an `except` comes after all others."""
    handlers: list[ast.ExceptHandler] = []
    for node in body:
        if not isinstance(node, _BLOCKS):
            yield node
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from _top_level(getattr(node, part, ()))
        handlers += getattr(node, "handlers", ())
    for handler in handlers:
        yield from _top_level(handler.body)


class _LazyTable(Mapping[str, Node]):
    """Statements by name: those in blocks at the margin, and those that were met inside `if` or `try`."""

    def __init__(self, blocks: Blocks[Node] | None = None) -> None:
        self.blocks = blocks if blocks is not None else Blocks(_no_blocks, {})
        self.inner: dict[str, Node] = {}

    def __getitem__(self, name: str) -> Node:
        return self.blocks[name] if name in self.blocks else self.inner[name]

    def __contains__(self, name: object) -> bool:
        return name in self.blocks or name in self.inner

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self.blocks), **dict.fromkeys(self.inner)})

    def __len__(self) -> int:
        return len({*self.blocks, *self.inner})


def _no_blocks(start: int, end: int) -> ast.stmt:
    raise KeyError((start, end))


def _parse_whole(name: str, path: str, text: str) -> Module | None:
    """Parse a module whose text could not be cut; None where it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    module = Module(name, path, text, _LazyTable(), _LazyTable())
    _collect_all(module, tree)
    return module


def _collect_all(module: Module, tree: ast.Module) -> None:
    fallbacks = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.ExceptHandler)
        for node in _top_level(block.body)
    }
    package = module.name if module.path.endswith("/__init__.py") else module.name.rpartition(".")[0]
    for node in _top_level(tree.body):
        if id(node) not in fallbacks or not _names_of(node) & _defined(module):
            _collect(module, node, package)


def _defined(module: Module) -> set[str]:
    return {*module.classes, *module.functions, *module.assignments, *module.imports}


def _names_of(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _collect(module: Module, node: ast.stmt, package: str) -> None:
    if isinstance(node, ast.ClassDef):
        assert isinstance(module.classes, _LazyTable)
        module.classes.inner.setdefault(node.name, node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        assert isinstance(module.functions, _LazyTable)
        module.functions.inner.setdefault(node.name, node)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                module.assignments[target.id] = node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        module.assignments[node.target.id] = node.value
    elif isinstance(node, ast.Import | ast.ImportFrom):
        _collect_imports(module, node, package)
    elif hasattr(ast, "TypeAlias") and isinstance(node, ast.TypeAlias):
        module.assignments[node.name.id] = node.value


def _collect_imports(module: Module, node: ast.Import | ast.ImportFrom, package: str) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            module.imports[alias.asname or name] = Imported(name, "")
        return
    origin = _absolute(node, package)
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(origin)
        else:
            module.imports[alias.asname or alias.name] = Imported(origin, alias.name)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the module that a `from … import` names, a relative one from its package."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join((*parts, node.module) if node.module else parts)
