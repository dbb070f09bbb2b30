"""Following statements: branches become conditions, loops run once."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from recipes.reads.calls import Calls
from recipes.reads.read_conditions import FALSE, Undecided, both, negation, possibly, with_keys
from recipes.reads.symbols import (
    ANYTHING,
    Choice,
    Config,
    ConstValue,
    FunctionValue,
    Instance,
    Mapping,
    Sequence,
    Value,
    choose,
    each,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Items

    from recipes.reads.frame import CallFrame

_CATCHES_KEY_ERRORS = frozenset({"Exception", "BaseException", "KeyError", "LookupError"})
_UNROLLED = 12


class Statements(Calls):
    """Follows the statements of a function."""

    def block(self, frame: CallFrame, body: Iterable[ast.stmt]) -> None:
        """Follow statements until the path ends."""
        for statement in body:
            if frame.ended or self.exhausted:
                return
            self.steps += 1
            kind = type(statement)
            if kind not in self._handlers:
                self._handlers[kind] = getattr(self, f"_{kind.__name__.lower()}", None)
            handler = self._handlers[kind]
            if handler is not None:
                handler(frame, statement)

    def _expr(self, frame: CallFrame, node: ast.Expr) -> None:
        self.value(frame, node.value)

    def _return(self, frame: CallFrame, node: ast.Return) -> None:
        value = self.value(frame, node.value) if node.value is not None else ConstValue(None)
        frame.returned.append((frame.guard, value))
        frame.ended = True

    def _raise(self, frame: CallFrame, node: ast.Raise) -> None:
        frame.ended = True

    def _break(self, frame: CallFrame, node: ast.Break) -> None:
        frame.ended = True

    def _continue(self, frame: CallFrame, node: ast.Continue) -> None:
        frame.ended = True

    def _assert(self, frame: CallFrame, node: ast.Assert) -> None:
        condition = self.condition(frame, node.test)
        frame.guard = both(frame.guard, possibly(with_keys(condition, self.stored)))

    def _if(self, frame: CallFrame, node: ast.If) -> None:
        condition = self.condition(frame, node.test)
        then, other = frame.branch(condition), frame.branch(negation(condition))
        for branch, body in ((then, node.body), (other, node.orelse)):
            if branch.guard == FALSE:
                branch.ended = True
            else:
                self.block(branch, body)
        frame.join(condition, then, other)

    def _for(self, frame: CallFrame, node: ast.For | ast.AsyncFor) -> None:
        items = self.items(self.value(frame, node.iter))
        guard = frame.guard
        for item in items[:_UNROLLED]:
            self.assign(frame, node.target, item)
            self.block(frame, node.body)
            frame.guard, frame.ended = guard, False
        self.block(frame, node.orelse)

    _asyncfor = _for

    def _while(self, frame: CallFrame, node: ast.While) -> None:
        self.condition(frame, node.test)
        guard = frame.guard
        self.block(frame, node.body)
        frame.guard, frame.ended = guard, False

    def _with(self, frame: CallFrame, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            value = self.value(frame, item.context_expr)
            if item.optional_vars is not None:
                self.assign(frame, item.optional_vars, value)
        self.block(frame, node.body)

    _asyncwith = _with

    def _try(self, frame: CallFrame, node: ast.Try) -> None:
        guard = frame.guard
        if any(_hides(handler) for handler in node.handlers):
            frame.guard = both(guard, Undecided(self.number(node)))
        self.block(frame, [*node.body, *node.orelse])
        ended = frame.ended
        names = frame.names
        for handler in node.handlers:
            branch = frame.branch(Undecided(self.number(handler)))
            branch.ended = False
            self.block(branch, handler.body)
        frame.names, frame.guard, frame.ended = names, guard, False
        self.block(frame, node.finalbody)
        frame.ended = ended and all(_ends(handler.body) for handler in node.handlers)

    _trystar = _try

    def _functiondef(self, frame: CallFrame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        frame.names[node.name] = FunctionValue(
            frame.module, node, frame.self_value, frame.owner, frame.names, inner=True
        )

    _asyncfunctiondef = _functiondef

    def _import(self, frame: CallFrame, node: ast.Import) -> None:
        self.bind_imports(frame, node)

    def _importfrom(self, frame: CallFrame, node: ast.ImportFrom) -> None:
        self.bind_imports(frame, node)

    def _assign(self, frame: CallFrame, node: ast.Assign) -> None:
        value = self.value(frame, node.value)
        for target in node.targets:
            self.assign(frame, target, value)

    def _annassign(self, frame: CallFrame, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(frame, node.target, self.value(frame, node.value))

    def _augassign(self, frame: CallFrame, node: ast.AugAssign) -> None:
        self.value(frame, node.value)
        if not isinstance(node.target, ast.Name):
            self.value(frame, node.target)
        self.assign(frame, node.target, ANYTHING)

    def _delete(self, frame: CallFrame, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.value(frame, target)

    def _match(self, frame: CallFrame, node: ast.Match) -> None:
        self.value(frame, node.subject)
        for case in node.cases:
            branch = frame.branch(Undecided(self.number(case)))
            self.block(branch, case.body)

    def assign(self, frame: CallFrame, target: ast.expr, value: Value) -> None:
        """Bind a value to a name, an attribute, a key or to several of them."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            for guard, base in each(self.value(frame, target.value)):
                if isinstance(base, Instance):
                    base.assign(target.attr, value, both(frame.guard, guard))
                elif isinstance(base, Config):
                    self.stored.add((*base.path, target.attr))
        elif isinstance(target, ast.Subscript):
            key = self.value(frame, target.slice)
            self._set_item(frame, target.value, key, value)
            for _, base in each(self.value(frame, target.value)):
                if isinstance(base, Config) and isinstance(key, ConstValue) and isinstance(key.value, str):
                    self.stored.add((*base.path, key.value))
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(frame, target.elts, value)
        elif isinstance(target, ast.Starred):
            self.assign(frame, target.value, ANYTHING)

    def _set_item(self, frame: CallFrame, target: ast.expr, key: Value, value: Value) -> None:
        """Set a key of a dict that the code has made itself."""
        if isinstance(target, ast.Name) and isinstance(key, ConstValue):
            base = self.name(frame, target.id)
            if isinstance(base, Mapping):
                frame.names[target.id] = Mapping((*base.items, (key.value, value)))

    def _unpack(self, frame: CallFrame, targets: Items[ast.expr], value: Value) -> None:
        parts: list[list[tuple[object, Value]]] = [[] for _ in targets]
        known = not any(isinstance(target, ast.Starred) for target in targets)
        for guard, inner in each(value):
            items = _items_of(inner)
            if items is None or len(items) != len(targets):
                known = known and isinstance(
                    value, Choice
                )  # an alternative that cannot be unpacked is not taken
                continue
            for place, item in zip(parts, items, strict=True):
                place.append((guard, item))
        for target, place in zip(targets, parts, strict=True):
            self.assign(frame, target, choose(place) if known and place else ANYTHING)  # type: ignore[arg-type]

    def items(self, value: Value) -> tuple[Value, ...]:
        """Return what a loop over a value goes through."""
        if isinstance(value, Sequence):
            return value.items
        if isinstance(value, Config):
            return (Config((*value.path, "*")),)
        return (ANYTHING,)


def _items_of(value: Value) -> tuple[Value, ...] | None:
    if isinstance(value, Sequence):
        return value.items
    if isinstance(value, Instance) and value.fields:
        return tuple(value.attributes.get(name, ANYTHING) for name in value.fields)
    return None


def _hides(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler catches a missing key, and goes on."""
    caught = [handler.type] if not isinstance(handler.type, ast.Tuple) else list(handler.type.elts)
    names = {node.id for node in caught if isinstance(node, ast.Name)}
    broad = handler.type is None or bool(names & _CATCHES_KEY_ERRORS)
    return broad and not _ends(handler.body, raising=True)


def _ends(body: Items[ast.stmt], *, raising: bool = False) -> bool:
    kinds = (ast.Raise,) if raising else (ast.Raise, ast.Return, ast.Continue, ast.Break)
    return bool(body) and isinstance(body[-1], kinds)
