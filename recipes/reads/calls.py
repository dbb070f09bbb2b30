"""Following calls: into functions and classes of the checkout, and through Ray's remote workers."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import TYPE_CHECKING, TypeAlias

from recipes.reads.expressions import boolean
from recipes.reads.frame import CallFrame, ReadKey
from recipes.reads.read_conditions import FALSE, TRUE, Condition, Literal, Undecided, both
from recipes.reads.symbols import (
    ANYTHING,
    Choice,
    ClassValue,
    Config,
    ConstValue,
    FunctionValue,
    Instance,
    Mapping,
    ParentOf,
    Sequence,
    Value,
    WorkerClass,
    Workers,
    choose,
    concerns_recipe,
    each,
)
from recipes.reads.workers import RayWorkers

if TYPE_CHECKING:
    from recipes.schema.checkout_source import CheckoutSource

_DEEPEST = 40
_SAME = frozenset({"bool", "dict", "list", "tuple", "int", "str", "float", "sorted"})
"""Builtins whose result is taken for their argument."""
_COPIES = frozenset({"deepcopy", "copy", "to_container", "parse_hydra_overrides", "cast", "create", "get"})
_LOADERS = frozenset({"load_config", "load_config_with_inheritance"})
_BUILDER, _GROUP = "RayWorkerBuilder", "RayWorkerGroup"
_MORE = "**"
"""A keyword that stands for others, which a group of workers adds."""
Memory: TypeAlias = "tuple[dict[ReadKey, Condition], Value]"


class Calls(RayWorkers):
    """Follows the calls of a function."""

    def __init__(self, source: CheckoutSource) -> None:
        super().__init__(source)
        self._memory: dict[object, Memory] = {}
        self._active: list[object] = []
        self._made: list[Instance] = []

    def _x_call(self, frame: CallFrame, node: ast.Call) -> Value:
        tested = self.tested_call(frame, node)
        if tested is not None:
            return boolean(tested)
        function = self._callee(frame, node.func)
        guard = frame.guard
        arguments, keywords, spread = self._arguments(frame, node)
        results: list[tuple[Condition, Value]] = []
        for condition, inner in each(function):
            frame.guard = both(guard, condition)
            if frame.guard != FALSE:
                results.append((condition, self._call(frame, node, inner, arguments, keywords, spread)))
        frame.guard = guard
        return choose(results)

    def _callee(self, frame: CallFrame, node: ast.expr) -> Value:
        """Return what is called; `X.options(…).remote` and `x.method.remote` are what they run remotely."""
        if isinstance(node, ast.Attribute) and node.attr in ("remote", "options", "bind"):
            base = self.value(frame, node.value)
            if base != ANYTHING:
                return base
            return ANYTHING
        if isinstance(node, ast.Attribute):
            base = self.value(frame, node.value)
            if isinstance(base, Config):
                return base
            if (
                node.attr == "result"
                and isinstance(base, Instance)
                and self.member(base.cls, "result") is None
            ):
                return base
            return choose([(guard, self.attribute(frame, inner, node.attr)) for guard, inner in each(base)])
        return self.value(frame, node)

    def _arguments(
        self, frame: CallFrame, node: ast.Call
    ) -> tuple[tuple[Value, ...], dict[str, Value], Value | None]:
        arguments: list[Value] = []
        for argument in node.args:
            inner = self.value(frame, argument.value if isinstance(argument, ast.Starred) else argument)
            if isinstance(argument, ast.Starred):
                arguments.extend(inner.items if isinstance(inner, Sequence) else ())
            else:
                arguments.append(inner)
        keywords: dict[str, Value] = {}
        spread: Value | None = None
        for keyword in node.keywords:
            inner = self.value(frame, keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = inner
            elif all(isinstance(value, Mapping) for _, value in each(inner)):
                keywords.update(_spread(inner))
            else:
                spread = inner
        return tuple(arguments), keywords, spread

    def _call(
        self,
        frame: CallFrame,
        node: ast.Call,
        function: Value,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
        spread: Value | None,
    ) -> Value:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if isinstance(function, ClassValue) and name == "options":
            return function
        if isinstance(function, Instance | FunctionValue) and name in ("options", "result"):
            return function
        method = isinstance(node.func, ast.Attribute)
        if method and name == "submit" and arguments and isinstance(arguments[0], FunctionValue):
            return self.invoke(frame, arguments[0], arguments[1:], keywords)
        if isinstance(function, Config) and isinstance(node.func, ast.Attribute):
            return self._config_method(frame, function, name, arguments, node)
        if isinstance(function, Workers):
            return self.remote_call(frame, function, name, arguments, keywords)
        special = self._named_call(frame, node, name, arguments, keywords, function)
        if special is not None:
            return special
        more = keywords.pop(_MORE, None) is not None
        if isinstance(function, ClassValue):
            return self.construct(frame, function, arguments, keywords, spread, remote=more)
        if isinstance(function, FunctionValue):
            return self.invoke(frame, function, arguments, keywords, remote=more)
        self._callbacks(frame, (*arguments, *keywords.values()))
        return ANYTHING

    def _config_method(
        self, frame: CallFrame, config: Config, name: str, arguments: tuple[Value, ...], node: ast.Call
    ) -> Value:
        """Follow a method of the recipe's dicts."""
        first = arguments[0] if arguments else None
        if name in ("get", "pop", "setdefault") and first is not None:
            default = arguments[1] if len(arguments) > 1 else ConstValue(None)
            found = [(guard, self._optional(config, key, default)) for guard, key in each(first)]
            if name == "setdefault" and isinstance(first, ConstValue):
                self.stored.add((*config.path, str(first.value)))
            if name == "pop" and len(arguments) == 1 and isinstance(first, ConstValue):
                frame.record((*config.path, str(first.value)), node.lineno)
            return choose(found)
        if name in ("model_dump", "copy", "dict", "model_copy"):
            return config
        if name == "items":
            return Sequence((Sequence((ANYTHING, Config((*config.path, "*")))),))
        if name == "values":
            return Sequence((Config((*config.path, "*")),))
        if name == "update":
            for key in (*(item[0] for item in first.items),) if isinstance(first, Mapping) else ():
                self.stored.add((*config.path, str(key)))
        return ANYTHING

    def _optional(self, config: Config, key: Value, default: Value) -> Value:
        if not isinstance(key, ConstValue) or not isinstance(key.value, str):
            return Config((*config.path, "*"))
        literal: Literal = default.value if isinstance(default, ConstValue) else None
        return Config((*config.path, key.value), literal, optional=True)

    def _named_call(
        self,
        frame: CallFrame,
        node: ast.Call,
        name: str,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
        function: Value,
    ) -> Value | None:
        """Follow calls that mean something by their name; None where the callee must be entered."""
        plain = isinstance(node.func, ast.Name)
        if name in _LOADERS:
            return Config(())
        if plain and name == "dict" and node.keywords and not arguments:
            return Mapping(tuple(keywords.items()))
        if plain and name in _SAME and len(arguments) == 1:
            return (
                arguments[0]
                if isinstance(arguments[0], Config | ConstValue | Choice | Sequence)
                else ANYTHING
            )
        if name == "super" and frame.owner is not None and frame.self_value is not None:
            return ParentOf(frame.self_value, frame.owner)
        if plain and name == "getattr" and len(arguments) >= 2:
            return self._getattr(frame, arguments)
        if plain and name == "enumerate" and arguments:
            items = self.items(arguments[0])
            return Sequence(tuple(Sequence((ANYTHING, item)) for item in items))
        if name in ("items", "values") and isinstance(node.func, ast.Attribute):
            base = self.value(frame, node.func.value)
            if isinstance(base, Mapping):
                pairs = (
                    Sequence((ConstValue(key), value)) if name == "items" else value
                    for key, value in base.items
                )
                return Sequence(tuple(pairs))
        if name in _COPIES and not isinstance(function, FunctionValue | ClassValue):
            picked = next((value for value in arguments if concerns_recipe(value)), None)
            return picked if picked is not None else None
        if name == "get" and isinstance(node.func, ast.Attribute):
            base = self.value(frame, node.func.value)
            if isinstance(base, Mapping) and arguments and isinstance(arguments[0], ConstValue):
                return base.get(arguments[0].value) or (
                    arguments[1] if len(arguments) > 1 else ConstValue(None)
                )
        return None

    def _getattr(self, frame: CallFrame, arguments: tuple[Value, ...]) -> Value:
        base, key = arguments[0], arguments[1]
        if not isinstance(key, ConstValue) or not isinstance(key.value, str):
            return ANYTHING
        if isinstance(base, Config):
            return self._optional(base, key, arguments[2] if len(arguments) > 2 else ConstValue(None))
        name = key.value
        return choose([(guard, self.attribute(frame, inner, name)) for guard, inner in each(base)])

    def _callbacks(self, frame: CallFrame, values: tuple[Value, ...]) -> None:
        """Follow functions that are handed to something unknown, which may call them or not."""
        for value in values:
            if isinstance(value, FunctionValue) and value.inner:
                guard = frame.guard
                frame.guard = both(guard, Undecided(self.number(value.node)))
                self.invoke(frame, value, (), {})
                frame.guard = guard

    def construct(
        self,
        frame: CallFrame,
        cls: ClassValue,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
        spread: Value | None,
        *,
        remote: bool = False,
    ) -> Value:
        """Follow the making of an object of a class of the checkout."""
        if isinstance(spread, Config) and not arguments and not keywords:
            return spread
        if cls.node.name == _BUILDER and arguments:
            return WorkerClass(arguments[0], arguments[1:], tuple(keywords.items()))
        if cls.node.name == _GROUP:
            return self.group(frame, (*arguments, *keywords.values()))
        made = Instance(cls)
        self._made.append(made)  # the memory knows objects by their id, which must not be given again
        initializer = self.member(cls, "__init__")
        if initializer is not None:
            owner, node = initializer
            if isinstance(node, ast.FunctionDef):
                function = FunctionValue(owner.module, node, made, owner)
                self.invoke(frame, function, arguments, keywords, remote=remote)
            return made
        made.fields = _fields(cls.node)
        for name, value in (*zip(made.fields, arguments, strict=False), *keywords.items()):
            made.assign(name, value, TRUE)
        return made

    def invoke(
        self,
        frame: CallFrame,
        function: FunctionValue,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
        *,
        remote: bool = False,
    ) -> Value:
        """Follow a call of a function of the checkout; `remote`: other arguments may be added."""
        self_value = function.self_value
        given = (
            (self_value, *arguments)
            if isinstance(self_value, Instance | ClassValue) and not function.inner
            else arguments
        )
        if getattr(function.node, "name", "") == "create_env":
            return self.make_environments(frame, function, (*arguments, *keywords.values()))
        if not (function.inner or any(concerns_recipe(value) for value in (*given, *keywords.values()))):
            return ANYTHING
        key = (
            id(function.node),
            id(function.closure) if function.inner else 0,
            remote,
            tuple(map(_key, given)),
            tuple((name, _key(value)) for name, value in sorted(keywords.items())),
        )
        if key not in self._memory:
            if key in self._active or len(self._active) > _DEEPEST:
                return ANYTHING
            self._active.append(key)
            self._memory[key] = self._followed(function, given, keywords, remote=remote)
            self._active.pop()
        reads, result = self._memory[key]
        frame.add(*reads.items())
        return result

    def _followed(
        self, function: FunctionValue, given: tuple[Value, ...], keywords: dict[str, Value], *, remote: bool
    ) -> Memory:
        instance = function.self_value if isinstance(function.self_value, Instance) else None
        names = self._bound(function, given, keywords, remote=remote)
        inner = CallFrame(function.module, names, function.closure, function.owner, instance)
        if isinstance(function.node, ast.Lambda):
            result = self.value(inner, function.node.body)
            return inner.reads, result
        self.block(inner, function.node.body)
        return inner.reads, inner.result

    @abstractmethod
    def block(self, frame: CallFrame, body: list[ast.stmt]) -> None:
        """Follow statements until the path ends."""

    def _bound(
        self, function: FunctionValue, given: tuple[Value, ...], keywords: dict[str, Value], *, remote: bool
    ) -> dict[str, Value]:
        spec = function.node.args
        parameters = [*spec.posonlyargs, *spec.args]
        names: dict[str, Value] = {}
        defaults: list[ast.expr | None] = [None] * (len(parameters) - len(spec.defaults)) + list(
            spec.defaults
        )
        for parameter, default in (
            *zip(parameters, defaults, strict=True),
            *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
        ):
            names[parameter.arg] = (
                self.module_expression(function.module, default)
                if default is not None and not (remote and _is_set_by_group(default))
                else ANYTHING
            )
        names.update(zip((parameter.arg for parameter in parameters), given, strict=False))
        extra: list[tuple[Literal, Value]] = []
        for name, value in keywords.items():
            if name in names:
                names[name] = value
            else:
                extra.append((name, value))
        if spec.vararg is not None:
            names[spec.vararg.arg] = Sequence(given[len(parameters) :])
        if spec.kwarg is not None:
            names[spec.kwarg.arg] = Mapping((*extra, (_MORE, ANYTHING)) if remote else tuple(extra))
        return names


def _spread(value: Value) -> dict[str, Value]:
    """Return the keywords that `**` of one of several dicts gives."""
    keywords: dict[str, list[tuple[Condition, Value]]] = {}
    for guard, mapping in each(value):
        for name, inner in dict(mapping.items).items() if isinstance(mapping, Mapping) else ():
            keywords.setdefault(str(name), []).append((guard, inner))
    return {name: choose(alternatives) for name, alternatives in keywords.items()}


def _key(value: Value) -> object:
    return (id(value), value.version) if isinstance(value, Instance) else value


def _is_set_by_group(default: ast.expr) -> bool:
    """Tell whether a worker's argument may come from its group (bundles, a seed)."""
    return not (isinstance(default, ast.Constant) and isinstance(default.value, bool))


def _fields(node: ast.ClassDef) -> tuple[str, ...]:
    return tuple(
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    )
