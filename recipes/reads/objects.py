"""Names, classes and objects of the checkout, as far as they are followed."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from recipes.reads.frame import CallFrame
from recipes.reads.symbols import (
    ANYTHING,
    ClassValue,
    Config,
    FunctionValue,
    Instance,
    ModuleValue,
    ParentOf,
    Value,
    Workers,
)

if TYPE_CHECKING:
    from recipes.reads.read_conditions import Path
    from recipes.schema.checkout_source import CheckoutSource, Definition, Module

_STEPS = 400_000
"""Expressions and statements that are followed at most; the drivers of v0.4 to main take up to 120,000."""


class Objects(ABC):
    """What is common to the whole walk through a checkout."""

    def __init__(self, source: CheckoutSource) -> None:
        self.source = source
        self.steps = 0
        self.stored: set[Path] = set()
        self._handlers: dict[type[ast.AST], Callable[..., Any] | None] = {}
        self._numbers: dict[int, int] = {}
        self._classes: dict[int, ClassValue] = {}
        self._functions: dict[int, FunctionValue] = {}
        self._globals: dict[tuple[str, str], Value] = {}

    @property
    def exhausted(self) -> bool:
        """Whether the walk has become too long to go on."""
        return self.steps > _STEPS

    def number(self, node: ast.AST) -> int:
        """Return the number of a test that the recipe does not decide."""
        return self._numbers.setdefault(id(node), len(self._numbers))

    def name(self, frame: CallFrame, name: str) -> Value:
        """Return what a name stands for: in the function, around it, in the module."""
        if name in frame.names:
            return frame.names[name]
        if frame.closure is not None and name in frame.closure:
            return frame.closure[name]
        return self.of_module(frame.module.name, name)

    def of_module(self, module: str, name: str) -> Value:
        """Return what a name of a module stands for, through imports."""
        key = (module, name)
        if key not in self._globals:
            self._globals[key] = ANYTHING  # what a definition that refers to itself finds
            with suppress(SyntaxError):  # a source that this Python cannot read
                self._globals[key] = self._of_module(module, name)
        return self._globals[key]

    def _of_module(self, module: str, name: str) -> Value:
        found = self.source.find(module, name)
        if found is not None:
            return self.defined(found)
        inside = self.source.module(module)
        imported = inside.imports.get(name) if inside is not None else None
        if imported is not None:
            full = f"{imported.module}.{imported.name}" if imported.name else imported.module
            return ModuleValue(full)
        return ANYTHING

    def defined(self, found: Definition) -> Value:
        """Return the value of a definition."""
        node = found.node
        if isinstance(node, ast.ClassDef):
            return self.class_value(found.module, node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self.function_value(found.module, node)
        return self.module_expression(found.module, node)

    def module_expression(self, module: Module, node: ast.expr) -> Value:
        """Return what an expression at a module's or class's top level stands for."""
        return self.value(CallFrame(module), node)

    @abstractmethod
    def value(self, frame: CallFrame, node: ast.expr) -> Value:
        """Return what an expression stands for."""

    def class_value(self, module: Module, node: ast.ClassDef) -> ClassValue:
        """Return the one value of a class."""
        if id(node) not in self._classes:
            self._classes[id(node)] = ClassValue(module, node)
        return self._classes[id(node)]

    def function_value(self, module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionValue:
        """Return the one value of a function at a module's top level."""
        if id(node) not in self._functions:
            self._functions[id(node)] = FunctionValue(module, node)
        return self._functions[id(node)]

    def bind_imports(self, frame: CallFrame, node: ast.Import | ast.ImportFrom) -> None:
        """Bind the names of an import inside a function."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                frame.names[alias.asname or name] = ModuleValue(name)
            return
        if node.level:
            return
        for alias in node.names:
            frame.names[alias.asname or alias.name] = self._imported(node.module or "", alias.name)

    def _imported(self, module: str, name: str) -> Value:
        if self.source.path_of(module) is None:
            return ModuleValue(f"{module}.{name}")
        value = self.of_module(module, name)
        return ModuleValue(f"{module}.{name}") if value == ANYTHING else value

    def lineage(self, cls: ClassValue) -> list[ClassValue]:
        """Return a class and what it derives from, nearest first."""
        order: list[ClassValue] = []
        waiting = [cls]
        while waiting:
            present = waiting.pop(0)
            if present in order:
                continue
            order.append(present)
            for base in present.node.bases:
                inner = base.value if isinstance(base, ast.Subscript) else base
                value = self.module_expression(present.module, inner)
                if isinstance(value, ClassValue):
                    waiting.append(value)
        return order

    def member(
        self, cls: ClassValue, name: str, *, after: ClassValue | None = None
    ) -> tuple[ClassValue, ast.stmt] | None:
        """Return the statement that defines a member, in the class or what it derives from (`after` one)."""
        order = self.lineage(cls)
        if after is not None and after in order:
            order = order[order.index(after) + 1 :]
        for owner in order:
            for statement in owner.node.body:
                if _defines(statement, name):
                    return owner, statement
        return None

    def attribute(self, frame: CallFrame, base: Value, name: str) -> Value:
        """Return an attribute of a value."""
        if isinstance(base, Config):
            return Config((*base.path, name))
        if isinstance(base, Instance):
            if name in base.attributes:
                return base.attributes[name]
            return self._member_value(frame, base, base.cls, name)
        if isinstance(base, ParentOf):
            return self._member_value(frame, base.instance, base.instance.cls, name, after=base.cls)
        if isinstance(base, ClassValue):
            return self._member_value(frame, None, base, name)
        if isinstance(base, ModuleValue):
            return self._imported(base.name, name)
        return base if isinstance(base, Workers) else ANYTHING

    def _member_value(
        self,
        frame: CallFrame,
        instance: Instance | None,
        cls: ClassValue,
        name: str,
        *,
        after: ClassValue | None = None,
    ) -> Value:
        found = self.member(cls, name, after=after)
        if found is None:
            return ANYTHING
        owner, statement = found
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            static = _is_decorated(statement, "staticmethod")
            bound = cls if _is_decorated(statement, "classmethod") else instance
            function = FunctionValue(owner.module, statement, None if static else bound, owner)
            if instance is not None and _is_decorated(statement, "property", "cached_property"):
                return self.invoke(frame, function, (), {})
            return function
        value = getattr(statement, "value", None)
        return self.module_expression(owner.module, value) if isinstance(value, ast.expr) else ANYTHING

    @abstractmethod
    def invoke(
        self,
        frame: CallFrame,
        function: FunctionValue,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
    ) -> Value:
        """Follow a call of a function of the checkout."""


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return statement.name == name and not _is_decorated(statement, "overload", "setter")
    if isinstance(statement, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    return (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id == name
        and statement.value is not None
    )


def _is_decorated(node: ast.FunctionDef | ast.AsyncFunctionDef, *names: str) -> bool:
    return any(
        (isinstance(decorator, ast.Name) and decorator.id in names)
        or (isinstance(decorator, ast.Attribute) and decorator.attr in names)
        for decorator in node.decorator_list
    )
