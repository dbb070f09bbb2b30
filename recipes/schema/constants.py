"""Values of constant expressions in a checkout's sources, without running them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from recipes.schema.checkout_source import CheckoutSource, Module, dotted_name

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_LARGEST = 2**64
_DEPTH = 20
"""Limits of what is computed: larger numbers and longer ways are no configuration."""


class NotConstantError(Exception):
    """An expression's value cannot be told from the source."""


def constant(source: CheckoutSource, module: Module, node: ast.expr, depth: int = 0) -> Any:  # noqa: ANN401
    """Return the value of an expression: literals, their arithmetic, names of constants.

    Raises:
        NotConstantError: the value cannot be told from the source.
    """
    if depth > _DEPTH:
        raise NotConstantError
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return _unary(node.op, constant(source, module, node.operand, depth + 1))
    if isinstance(node, ast.BinOp):
        left, right = (constant(source, module, side, depth + 1) for side in (node.left, node.right))
        return _binary(node.op, left, right)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [constant(source, module, item, depth + 1) for item in node.elts]
    if isinstance(node, ast.Dict):
        if any(key is None for key in node.keys):
            raise NotConstantError
        keys = [constant(source, module, key, depth + 1) for key in node.keys if key is not None]
        values = [constant(source, module, value, depth + 1) for value in node.values]
        return _mapping(keys, values)
    if isinstance(node, ast.Call):
        return _call(source, module, node, depth)
    return _named(source, module, node, depth)


def _unary(op: ast.unaryop, value: Any) -> Any:  # noqa: ANN401
    if isinstance(op, ast.Not):
        return not value
    if isinstance(op, ast.USub | ast.UAdd) and isinstance(value, int | float):
        return -value if isinstance(op, ast.USub) else value
    raise NotConstantError


def _binary(op: ast.operator, left: Any, right: Any) -> Any:  # noqa: ANN401
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        raise NotConstantError
    if isinstance(op, ast.Pow) and 0 <= right <= 64 and abs(left) <= 1024:
        value = left**right
    elif isinstance(op, ast.LShift) and isinstance(left, int) and isinstance(right, int) and 0 <= right <= 64:
        value = left << right
    elif type(op) in _OPERATORS and not (right == 0 and isinstance(op, ast.Div | ast.FloorDiv | ast.Mod)):
        value = _OPERATORS[type(op)](left, right)
    else:
        raise NotConstantError
    if abs(value) > _LARGEST:
        raise NotConstantError
    return value


def _mapping(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    try:
        return dict(zip(keys, values, strict=True))
    except TypeError as error:
        raise NotConstantError from error


def _call(source: CheckoutSource, module: Module, node: ast.Call, depth: int) -> Any:  # noqa: ANN401
    """Return the value of `frozenset({…})`, `dict(a=1)`, `ConfigDict(…)` and the like."""
    name = dotted_name(node.func).rpartition(".")[2]
    if name in ("frozenset", "set", "tuple", "list") and not node.keywords and len(node.args) <= 1:
        return constant(source, module, node.args[0], depth + 1) if node.args else []
    if name in ("dict", "ConfigDict", "SettingsConfigDict") and not node.args:
        if any(keyword.arg is None for keyword in node.keywords):
            raise NotConstantError
        return {str(item.arg): constant(source, module, item.value, depth + 1) for item in node.keywords}
    raise NotConstantError


def _named(source: CheckoutSource, module: Module, node: ast.expr, depth: int) -> Any:  # noqa: ANN401
    """Return the value of a module's constant, or of a member of an enumeration."""
    name = dotted_name(node)
    definition = source.find(module.name, name) if name else None
    if definition is None and "." in name:
        owner, _, member = name.rpartition(".")
        enumeration = source.find(module.name, owner)
        if enumeration is not None and isinstance(enumeration.node, ast.ClassDef):
            for statement in enumeration.node.body:
                if isinstance(statement, ast.Assign) and member in map(dotted_name, statement.targets):
                    return constant(source, enumeration.module, statement.value, depth + 1)
    if definition is None or not isinstance(definition.node, ast.expr):
        raise NotConstantError
    return constant(source, definition.module, definition.node, depth + 1)
