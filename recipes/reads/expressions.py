"""Following expressions: what they stand for, what they test, and which keys they read."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import TYPE_CHECKING

from recipes.reads.objects import Objects
from recipes.reads.read_conditions import (
    FALSE,
    TRUE,
    Condition,
    Literal,
    Test,
    Undecided,
    all_of,
    always,
    any_of,
    both,
    negation,
)
from recipes.reads.symbols import (
    ANYTHING,
    Choice,
    ClassValue,
    Config,
    ConstValue,
    FunctionValue,
    Instance,
    Mapping,
    Sequence,
    Value,
    Workers,
    choose,
    each,
)

if TYPE_CHECKING:
    from recipes.reads.frame import CallFrame

_ORDER = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TYPES = frozenset({"dict", "list", "str", "bool", "int", "float"})


class Expressions(Objects):
    """Evaluates the expressions of a function."""

    def value(self, frame: CallFrame, node: ast.expr) -> Value:
        """Return what an expression stands for."""
        self.steps += 1
        if self.exhausted:
            return ANYTHING
        kind = type(node)
        if kind not in self._handlers:
            self._handlers[kind] = getattr(self, f"_x_{kind.__name__.lower()}", None)
        handler = self._handlers[kind]
        if handler is not None:
            result: Value = handler(frame, node)
            return result
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(frame, child)
        return ANYTHING

    @abstractmethod
    def _x_call(self, frame: CallFrame, node: ast.Call) -> Value:
        """Return what a call gives."""

    def _x_constant(self, frame: CallFrame, node: ast.Constant) -> Value:
        value = node.value
        return ConstValue(value) if isinstance(value, str | int | float | bool | None) else ANYTHING

    def _x_name(self, frame: CallFrame, node: ast.Name) -> Value:
        return self.name(frame, node.id)

    def _x_tuple(self, frame: CallFrame, node: ast.Tuple | ast.List | ast.Set) -> Value:
        items = tuple(self.value(frame, item) for item in node.elts)
        return ANYTHING if any(isinstance(item, ast.Starred) for item in node.elts) else Sequence(items)

    _x_list = _x_tuple
    _x_set = _x_tuple

    def _x_dict(self, frame: CallFrame, node: ast.Dict) -> Value:
        items: list[tuple[Literal, Value]] = []
        for key, value in zip(node.keys, node.values, strict=True):
            inner = self.value(frame, value)
            name = self.value(frame, key) if key is not None else None
            if isinstance(name, ConstValue):
                items.append((name.value, inner))
            elif key is None and isinstance(inner, Mapping):
                items.extend(inner.items)
        return Mapping(tuple(items))

    def _x_lambda(self, frame: CallFrame, node: ast.Lambda) -> Value:
        return FunctionValue(frame.module, node, frame.self_value, frame.owner, frame.names, inner=True)

    def _x_await(self, frame: CallFrame, node: ast.Await) -> Value:
        return self.value(frame, node.value)

    def _x_namedexpr(self, frame: CallFrame, node: ast.NamedExpr) -> Value:
        value = self.value(frame, node.value)
        frame.names[node.target.id] = value
        return value

    def _x_ifexp(self, frame: CallFrame, node: ast.IfExp) -> Value:
        condition = self.condition(frame, node.test)
        guard = frame.guard
        results = []
        for side, branch in ((condition, node.body), (negation(condition), node.orelse)):
            frame.guard = both(guard, side)
            if frame.guard != FALSE:
                results.append((side, self.value(frame, branch)))
        frame.guard = guard
        return choose(results)

    def _x_boolop(self, frame: CallFrame, node: ast.BoolOp) -> Value:
        guard = frame.guard
        every = isinstance(node.op, ast.And)
        results: list[tuple[Condition, Value]] = []
        reached: Condition = TRUE
        for number, part in enumerate(node.values):
            frame.guard = both(guard, reached)
            if frame.guard == FALSE:
                break
            value = self.value(frame, part)
            if number == len(node.values) - 1:
                results.append((reached, value))
                break
            test = self.truth(value, part)
            stops = negation(test) if every else test
            results.append((both(reached, stops), value))
            reached = both(reached, negation(stops))
        frame.guard = guard
        return choose(results)

    def _x_unaryop(self, frame: CallFrame, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return boolean(negation(self.condition(frame, node.operand)))
        inner = self.value(frame, node.operand)
        if isinstance(node.op, ast.USub) and isinstance(inner, ConstValue) and isinstance(inner.value, int):
            return ConstValue(-inner.value)
        return ANYTHING

    def _x_compare(self, frame: CallFrame, node: ast.Compare) -> Value:
        return boolean(self.condition(frame, node))

    def _x_attribute(self, frame: CallFrame, node: ast.Attribute) -> Value:
        base = self.value(frame, node.value)
        return choose([(guard, self.attribute(frame, inner, node.attr)) for guard, inner in each(base)])

    def _x_subscript(self, frame: CallFrame, node: ast.Subscript) -> Value:
        base, key = self.value(frame, node.value), self.value(frame, node.slice)
        guard = frame.guard
        results = []
        for outer, inner in each(base):
            for within, name in each(key):
                frame.guard = all_of((guard, outer, within))
                if frame.guard != FALSE:
                    found = self._item(frame, inner, name, node.lineno)
                    results.append((both(outer, within), found))
        frame.guard = guard
        return choose(results)

    def _item(self, frame: CallFrame, base: Value, key: Value, line: int) -> Value:
        if isinstance(base, Config):
            if not isinstance(key, ConstValue) or not isinstance(key.value, str):
                return Config((*base.path, "*"))
            path = (*base.path, key.value)
            if path not in self.stored:
                frame.record(path, line)
            return Config(path)
        if isinstance(base, Mapping) and isinstance(key, ConstValue):
            return base.get(key.value) or ANYTHING
        if isinstance(base, Sequence) and isinstance(key, ConstValue) and isinstance(key.value, int):
            return base.items[key.value] if -len(base.items) <= key.value < len(base.items) else ANYTHING
        return base if isinstance(base, Workers) else ANYTHING

    def _comprehension(self, frame: CallFrame, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        guard, names = frame.guard, dict(frame.names)
        single = self._generators(frame, node.generators)
        if single is not None:
            target, items = single
            values = []
            for item in items:
                self.assign(frame, target, item)
                values.append(self.value(frame, node.elt))
            result: Value = Sequence(tuple(values))
        else:
            self.value(frame, node.elt)
            result = ANYTHING
        frame.guard, frame.names = guard, names
        return result

    _x_listcomp = _comprehension
    _x_setcomp = _comprehension
    _x_generatorexp = _comprehension

    def _x_dictcomp(self, frame: CallFrame, node: ast.DictComp) -> Value:
        guard, names = frame.guard, dict(frame.names)
        single = self._generators(frame, node.generators)
        targets: list[tuple[ast.expr | None, Value]] = (
            [(single[0], item) for item in single[1]] if single is not None else [(None, ANYTHING)]
        )
        entries: list[tuple[Literal, Value]] = []
        for target, item in targets:
            if target is not None:
                self.assign(frame, target, item)
            key, value = self.value(frame, node.key), self.value(frame, node.value)
            if isinstance(key, ConstValue):
                entries.append((key.value, value))
        frame.guard, frame.names = guard, names
        return Mapping(tuple(entries)) if entries else ANYTHING

    def _generators(
        self, frame: CallFrame, generators: list[ast.comprehension]
    ) -> tuple[ast.expr, tuple[Value, ...]] | None:
        """Enter the loops of a comprehension; a single plain one is left to the caller, item by item."""
        for generator in generators:
            value = self.value(frame, generator.iter)
            if len(generators) == 1 and not generator.ifs and isinstance(value, Sequence):
                return generator.target, value.items
            items = self.items(value)
            self.assign(frame, generator.target, items[0] if len(items) == 1 else ANYTHING)
            for test in generator.ifs:
                frame.guard = both(frame.guard, self.condition(frame, test))
        return None

    @abstractmethod
    def items(self, value: Value) -> tuple[Value, ...]:
        """Return what a loop over a value goes through."""

    @abstractmethod
    def assign(self, frame: CallFrame, target: ast.expr, value: Value) -> None:
        """Bind a value to a name, an attribute, a key or to several of them."""

    def condition(self, frame: CallFrame, node: ast.expr) -> Condition:
        """Return what an expression tests."""
        if isinstance(node, ast.Compare):
            values = [self.value(frame, part) for part in (node.left, *node.comparators)]
            return all_of(
                any_of(
                    all_of((outer, inner, self._comparison(first, operator, second, node)))
                    for outer, first in each(left)
                    for inner, second in each(right)
                )
                for left, operator, right in zip(values, node.ops, values[1:], strict=False)
            )
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return negation(self.condition(frame, node.operand))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            special = self.tested_call(frame, node)
            if special is not None:
                return special
        return self.truth(self.value(frame, node), node)

    def tested_call(self, frame: CallFrame, node: ast.Call) -> Condition | None:
        """Return what a call of `isinstance` or `hasattr` tests; None for other calls."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "isinstance" and len(node.args) == 2:
            value = self.value(frame, node.args[0])
            kind = node.args[1].id if isinstance(node.args[1], ast.Name) else ""
            if isinstance(value, Config) and kind in _TYPES:
                return Test("type", value.path, kind, value.default)
            cls = self.value(frame, node.args[1])
            if isinstance(cls, ClassValue) and any(isinstance(inner, Instance) for _, inner in each(value)):
                return any_of(both(guard, self._is_of(inner, cls, node)) for guard, inner in each(value))
        if name == "hasattr" and len(node.args) == 2:
            value, key = (self.value(frame, part) for part in node.args)
            if isinstance(value, Config) and isinstance(key, ConstValue) and isinstance(key.value, str):
                return Test("has", (*value.path, key.value))
        return None

    def _is_of(self, value: Value, cls: ClassValue, node: ast.AST) -> Condition:
        if isinstance(value, Instance):
            return always(cls in self.lineage(value.cls))
        return Undecided(self.number(node)) if value == ANYTHING else FALSE

    def truth(self, value: Value, node: ast.AST) -> Condition:
        """Return the condition under which a value counts as true."""
        if isinstance(value, Config):
            return Test("truthy", value.path, None, value.default)
        if isinstance(value, ConstValue):
            return always(bool(value.value))
        if isinstance(value, Sequence | Mapping):
            return always(bool(value.items))
        if isinstance(value, Choice):
            return any_of(both(guard, self.truth(inner, node)) for guard, inner in value.alternatives)
        if value is ANYTHING or value == ANYTHING:
            return Undecided(self.number(node))
        return TRUE

    def _comparison(self, left: Value, operator: ast.cmpop, right: Value, node: ast.AST) -> Condition:
        if isinstance(operator, ast.NotIn | ast.IsNot | ast.NotEq):
            plain = {ast.NotIn: ast.In, ast.IsNot: ast.Is, ast.NotEq: ast.Eq}[type(operator)]()
            return negation(self._comparison(left, plain, right, node))
        if isinstance(operator, ast.In) and isinstance(left, ConstValue):
            if isinstance(right, Config) and isinstance(left.value, str):
                return Test("has", (*right.path, left.value))
            if isinstance(right, Mapping):
                return always(right.get(left.value) is not None)
        constants = _constants(right)
        if isinstance(left, Config) and constants is not None:
            return self._config_test(left, operator, constants, node)
        if isinstance(right, Config) and isinstance(left, ConstValue) and type(operator) in (*_ORDER, ast.Eq):
            name = "==" if isinstance(operator, ast.Eq) else _TURNED[_ORDER[type(operator)]]
            return Test(name, right.path, left.value, right.default)
        if isinstance(left, ConstValue) and constants is not None:
            return _decided(left.value, operator, constants) or Undecided(self.number(node))
        if isinstance(operator, ast.Is) and constants == (None,) and left != ANYTHING:
            return FALSE
        return Undecided(self.number(node))

    def _config_test(
        self, left: Config, operator: ast.cmpop, operand: tuple[Literal, ...], node: ast.AST
    ) -> Condition:
        single = operand[0] if len(operand) == 1 else None
        if isinstance(operator, ast.Is) and len(operand) == 1:
            return Test("none" if single is None else "==", left.path, single, left.default)
        if isinstance(operator, ast.Eq) and len(operand) == 1:
            return Test("none" if single is None else "==", left.path, single, left.default)
        if isinstance(operator, ast.In):
            return Test("in", left.path, operand, left.default)
        if type(operator) in _ORDER and isinstance(single, int | float):
            return Test(_ORDER[type(operator)], left.path, single, left.default)
        return Undecided(self.number(node))


def _constants(value: Value) -> tuple[Literal, ...] | None:
    if isinstance(value, ConstValue):
        return (value.value,)
    if isinstance(value, Sequence) and all(isinstance(item, ConstValue) for item in value.items):
        return tuple(item.value for item in value.items if isinstance(item, ConstValue))
    return None


def _decided(left: Literal, operator: ast.cmpop, right: tuple[Literal, ...]) -> Condition | None:
    if isinstance(operator, ast.In):
        return always(left in right)
    if isinstance(operator, ast.Eq | ast.Is) and len(right) == 1:
        return always(left == right[0])
    return None


def boolean(condition: Condition) -> Value:
    """Return a condition as a value: true where it holds."""
    return choose([(condition, ConstValue(True)), (negation(condition), ConstValue(False))])
