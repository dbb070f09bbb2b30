"""Classes that a driver applies to the recipe: at the start to all of it, later to parts of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recipes.schema.checkout_source import CheckoutSource, Definition, Module, dotted_name
from recipes.schema.classes import ClassReader
from recipes.schema.code_paths import Conditions, Frame, Function, steps
from recipes.schema.root_conditions import LateRoot
from recipes.schema.types import Description, SchemaClass

ROOT_CLASS = "MasterConfig"
_BACKENDS = "nemo_rl/models/generation"
"""Below it each generation backend has a module `config` with its subclass of `GenerationConfig`."""
_APPLIES = re.compile(r"\b[A-Z]\w*Config\(\*\*")
_DEPTH = 4
"""Calls that are followed from the driver's own functions."""


def describe(source: CheckoutSource, driver: str) -> Description | None:
    """Read the schema of a driver: an algorithm's module (`nemo_rl.algorithms.grpo`) or a driver script.

    Returns None where the checkout has no such driver with a `MasterConfig`.
    """
    name = module_name(driver)
    root = source.find(name, ROOT_CLASS)
    if root is None or not isinstance(root.node, ast.ClassDef):
        return None
    reader = ClassReader(source)
    id_ = reader.read(root.module, root.node)
    if id_ is None:
        return None
    extensions = _extensions(source, reader)
    late = _LateRoots(source, reader, id_)
    late.follow_drivers(root.module, source.module(name))
    return Description(
        driver,
        id_,
        _validates(source, name, root, reader.classes[id_]),
        reader.classes,
        tuple(late.roots.values()),
        extensions,
        release(source),
    )


def read_description(root: Path, driver: str) -> tuple[Description, tuple[str, ...]]:
    """Read the schema of a driver; return it with the files that it depends on, missing ones included.

    Raises:
        LookupError: the checkout has no such driver with a `MasterConfig`.
    """
    source = CheckoutSource(root)
    try:
        made = describe(source, driver)
    except (
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
        ArithmeticError,
        SyntaxError,
        RecursionError,
    ):
        made = None  # a fork's code may be written in ways that nobody has thought of
    if made is None:
        raise LookupError(driver)
    return made, source.looked_up


def module_name(driver: str) -> str:
    """Return the module of a driver that is given by its name or its path in the checkout."""
    return driver.removesuffix(".py").replace("/", ".") if driver.endswith(".py") else driver


def release(source: CheckoutSource) -> str:
    """Return the version that a checkout says it has; "" if it says none."""
    text = source.text("nemo_rl/package_info.py") or ""
    parts = [re.search(rf"^{name} *= *(\d+)", text, re.MULTILINE) for name in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(part[1] for part in parts if part is not None)


def _validates(source: CheckoutSource, name: str, root: Definition, class_: SchemaClass) -> bool:
    """Tell whether the driver makes an object of its root class of the recipe before it starts."""
    scripts = [name] if name.startswith("examples.") else list(_scripts(source, name))
    modules = [module for module in map(source.module, scripts) if module is not None]
    if not modules:
        return class_.kind == "model"
    return any(_applies(module, root.name) for module in modules)


def _scripts(source: CheckoutSource, name: str) -> Iterator[str]:
    """Yield the scripts that may drive an algorithm, as modules."""
    algorithm = name.rpartition(".")[2]
    for suffix in ("", "_math"):
        if source.text(f"examples/run_{algorithm}{suffix}.py") is not None:
            yield f"examples.run_{algorithm}{suffix}"


def _applies(module: Module, class_: str) -> bool:
    """Tell whether a module makes an object of a class, by `Class(**config)` or in another way."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            name = dotted_name(node.func)
            if name.rpartition(".")[2] == class_ and any(item.arg is None for item in node.keywords):
                return True
            if name.endswith(f"{class_}.model_validate"):
                return True
            if name.endswith("TypeAdapter") and node.args and dotted_name(node.args[0]).endswith(class_):
                return True
    return False


def _extensions(source: CheckoutSource, reader: ClassReader) -> dict[str, tuple[str, ...]]:
    """Read the classes of the generation backends: recipes write their keys, annotations name the base."""
    extensions: dict[str, list[str]] = {}
    root = source.root / _BACKENDS
    try:
        names = sorted(path.name for path in root.iterdir() if path.is_dir())
    except OSError:
        return {}
    for name in names:
        module = source.module(f"{_BACKENDS.replace('/', '.')}.{name}.config")
        for node in module.classes.values() if module is not None else ():
            assert module is not None
            for base in node.bases:
                parent = source.find(module.name, dotted_name(base)) if dotted_name(base) else None
                id_ = f"{parent.module.name}:{parent.name}" if parent is not None else ""
                if id_ in reader.classes and (own := reader.read(module, node)) is not None:
                    extensions.setdefault(id_, []).append(own)
    return {id_: tuple(more) for id_, more in extensions.items()}


@dataclass(slots=True)
class _LateRoots:
    """Follows the driver's code to `Class.model_validate(part of the recipe)` and `Class(**part)`."""

    source: CheckoutSource
    reader: ClassReader
    root: str
    roots: dict[tuple[str, str], LateRoot] = field(default_factory=dict)
    followed: set[tuple[str, str]] = field(default_factory=set)

    def follow_drivers(self, *modules: Module | None) -> None:
        """Follow all functions that take the whole recipe."""
        root = self.root.rpartition(":")[2]
        for module in {module.name: module for module in modules if module is not None}.values():
            for name in module.functions:
                if root not in (module.text_of(name) or root):
                    continue
                function = module.functions[name]
                frame = Frame(self.source, module)
                for parameter in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
                    if parameter.annotation is not None and root in ast.unparse(parameter.annotation):
                        frame.names[parameter.arg] = ()
                if frame.names:
                    self._follow(frame, function, (), 0)

    def _follow(self, frame: Frame, function: Function, guards: Conditions, depth: int) -> None:
        for node, conditions in steps(frame, function.body, guards):
            for call in _calls(node):
                if not self._add(frame, call, conditions) and depth < _DEPTH:
                    self._enter(frame, call, conditions, depth)

    def _enter(self, frame: Frame, call: ast.Call, conditions: Conditions, depth: int) -> None:
        name = dotted_name(call.func)
        if not name or not any(frame.path(node) for node in call.args):
            return  # only a part of the recipe is of interest, never all of it or something else
        imported = frame.module.imports.get(name.partition(".")[0])
        if imported is not None and not self._may_apply(
            f"{imported.module}.{imported.name}", imported.module
        ):
            return
        definition = self.source.find(frame.module.name, name)
        if definition is None or not isinstance(definition.node, ast.FunctionDef):
            return
        inner = frame.entered(definition.node, definition.module, call)
        self._follow(inner, definition.node, conditions, depth + 1)

    def _may_apply(self, *names: str) -> bool:
        """Tell from its text, before it is parsed, whether a module can apply a class to anything."""
        for name in names:
            path = self.source.path_of(name)
            text = self.source.text(path) if path is not None else None
            if text is not None and (path or "").endswith("__init__.py"):
                return True
            if text is not None:
                return _applies_somewhere(text)
        return False

    def _add(self, frame: Frame, call: ast.Call, conditions: Conditions) -> bool:
        """Note a class that is applied to a part of the recipe; return whether this call is one."""
        spread = [item.value for item in call.keywords if item.arg is None]
        name = dotted_name(call.func)
        if name.endswith(".model_validate") and call.args:
            name, given = name.removesuffix(".model_validate"), call.args[0]
        elif len(spread) == 1 and not call.args and len(call.keywords) == 1:
            given = spread[0]
        else:
            return False
        path = frame.path(given)
        definition = self.source.find(frame.module.name, name) if name and path else None
        if definition is None or not isinstance(definition.node, ast.ClassDef) or not path:
            return False
        id_ = self.reader.read(definition.module, definition.node)
        if id_ is None or self.reader.classes[id_].kind != "model":
            return False
        where = f"{frame.module.path}:{call.lineno}"
        key = (id_, ".".join(path))
        self.roots.setdefault(key, LateRoot(id_, ".".join(path), conditions, where))
        return True


def _applies_somewhere(text: str) -> bool:
    """Tell whether a text has `….model_validate(` or `…Config(**`; plain searches first, they are faster."""
    return "model_validate(" in text or ("Config(**" in text and _APPLIES.search(text) is not None)


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a statement itself, without those of the statements inside it."""
    parts: list[ast.AST] = [
        child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt | ast.ExceptHandler)
    ]
    for part in parts:
        yield from (inner for inner in ast.walk(part) if isinstance(inner, ast.Call))
