"""Parts of the recipe that expressions of a driver's code mean, followed through assignments and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from recipes.schema.checkout_source import CheckoutSource, Module, dotted_name
from recipes.schema.constants import NotConstantError, constant
from recipes.schema.root_conditions import Condition

Path = tuple[str, ...]
"""Keys from the top of the recipe."""
UNKNOWN: Condition = ["unknown"]
Conditions = tuple[Condition, ...]
Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEPTH = 12


@dataclass(slots=True)
class Frame:
    """A function while it is followed: the parts of the recipe that its names mean."""

    source: CheckoutSource
    module: Module
    names: dict[str, Path] = field(default_factory=dict)

    def path(self, node: ast.expr, depth: int = 0) -> Path | None:
        """Return the part of the recipe that an expression means; None if it is none, or unknown."""
        if depth > _DEPTH:
            return None
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            return self._below(node.value, node.attr, depth)
        if isinstance(node, ast.Subscript):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            return self._below(node.value, key, depth) if isinstance(key, str) else None
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            return self.path(node.values[0], depth + 1)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        return None

    def _below(self, node: ast.expr, key: str, depth: int) -> Path | None:
        above = self.path(node, depth + 1)
        return None if above is None else (*above, key)

    def _call(self, node: ast.Call, depth: int) -> Path | None:
        """Follow `cast(Type, x)`, `x.get("key")`, `dict(x)` and `getattr(x, "key", …)`."""
        name = dotted_name(node.func).rpartition(".")[2]
        arguments = node.args
        if name == "cast" and len(arguments) == 2:
            return self.path(arguments[1], depth + 1)
        if name in ("dict", "deepcopy", "copy") and len(arguments) == 1:
            return self.path(arguments[0], depth + 1)
        key = None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and arguments:
            key, owner = arguments[0], node.func.value
        elif name == "getattr" and len(arguments) > 1:
            owner, key = arguments[0], arguments[1]
        else:
            return None
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return None
        return self._below(owner, key.value, depth)

    def assign(self, node: ast.stmt) -> None:
        """Note what an assignment makes of a name."""
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                assert isinstance(node, ast.Assign | ast.AnnAssign)
                path = self.path(node.value) if node.value is not None else None
                self.names.pop(target.id, None)
                if path is not None:
                    self.names[target.id] = path

    def condition(self, node: ast.expr) -> Condition:
        """Return a test as data; what cannot be told from the recipe is unknown."""
        if isinstance(node, ast.BoolOp):
            return ["and" if isinstance(node.op, ast.And) else "or", *map(self.condition, node.values)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ["not", self.condition(node.operand)]
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._comparison(node.left, node.ops[0], node.comparators[0])
        path = self.path(node)
        return UNKNOWN if path is None else ["true", ".".join(path)]

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Condition:
        path = self.path(left)
        if path is None:
            return UNKNOWN
        try:
            value = constant(self.source, self.module, right)
        except NotConstantError:
            return UNKNOWN
        kind = "is" if isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot) else "in"
        if not isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return UNKNOWN
        if kind == "in" and not isinstance(value, list):
            return UNKNOWN
        test: Condition = [kind, ".".join(path), value]
        return ["not", test] if isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn) else test

    def entered(self, function: Function, module: Module, call: ast.Call) -> Frame:
        """Return the frame of a function that is called: its parameters mean what is passed."""
        frame = Frame(self.source, module)
        parameters = [*function.args.posonlyargs, *function.args.args]
        given = dict(zip((item.arg for item in parameters), call.args, strict=False))
        given.update((item.arg, item.value) for item in call.keywords if item.arg)
        for name, node in given.items():
            path = self.path(node)
            if path is not None:
                frame.names[name] = path
        return frame


def steps(frame: Frame, body: list[ast.stmt], guards: Conditions) -> Iterator[tuple[ast.stmt, Conditions]]:
    """Yield the statements of a function in order, each with the conditions that lead to it.

    The frame knows at each statement what its names mean there. What follows an early return has the
    negated condition; an early `raise` is a failure of its own, and leaves no condition.
    """
    for node in body:
        yield node, guards
        frame.assign(node)
        if isinstance(node, ast.If):
            test = frame.condition(node.test)
            yield from steps(frame, node.body, (*guards, test))
            yield from steps(frame, node.orelse, (*guards, ["not", test]))
            if node.body and isinstance(node.body[-1], ast.Return | ast.Continue):
                guards = (*guards, ["not", test])
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from steps(frame, node.body, guards)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Try):
            yield from steps(frame, node.body, (*guards, UNKNOWN))
