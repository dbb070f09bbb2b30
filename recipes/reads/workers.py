"""Following Ray: groups of workers that are made by name, and environments that are registered by name."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from recipes.reads.expressions import Expressions
from recipes.reads.read_conditions import FALSE, Condition, Test, all_of, both
from recipes.reads.symbols import (
    ANYTHING,
    ClassValue,
    Config,
    ConstValue,
    FunctionValue,
    Instance,
    Mapping,
    Value,
    WorkerClass,
    Workers,
    choose,
    each,
)

if TYPE_CHECKING:
    from recipes.reads.frame import CallFrame

_REMOTE_CALL = "run_"


class RayWorkers(Expressions):
    """Makes workers and asks them to run methods."""

    @abstractmethod
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
        """Follow the making of an object."""

    def group(self, frame: CallFrame, arguments: tuple[Value, ...]) -> Value:
        """Make the workers of a group: one instance for each class that the recipe may choose."""
        made: list[tuple[Condition, Instance]] = []
        for value in arguments:
            for condition, builder in each(value):
                if not isinstance(builder, WorkerClass):
                    continue
                for guard, cls in self.classes_named(builder.names):
                    full = both(condition, guard)
                    outer = frame.guard
                    frame.guard = both(outer, full)
                    if frame.guard != FALSE:
                        worker = self.construct(
                            frame, cls, builder.arguments, dict(builder.keywords), None, remote=True
                        )
                        if isinstance(worker, Instance):
                            made.append((full, worker))
                    frame.guard = outer
        return Workers(tuple(made))

    def classes_named(self, names: Value) -> list[tuple[Condition, ClassValue]]:
        """Return the classes of the checkout that dotted names stand for."""
        found: list[tuple[Condition, ClassValue]] = []
        for guard, name in each(names):
            if isinstance(name, ConstValue) and isinstance(name.value, str):
                module, _, last = name.value.rpartition(".")
                value = self.of_module(module, last) if module else ANYTHING
                if isinstance(value, ClassValue):
                    found.append((guard, value))
        return found

    def remote_call(
        self,
        frame: CallFrame,
        workers: Workers,
        name: str,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
    ) -> Value:
        """Follow a method that all workers of a group are asked to run."""
        if not name.startswith(_REMOTE_CALL):
            return ANYTHING
        given = dict(keywords)
        chosen = given.pop("method_name", arguments[0] if arguments else ANYTHING)
        shared = given.pop("common_kwargs", None)
        if isinstance(shared, Mapping):
            given.update({str(key): value for key, value in shared.items})
        results: list[tuple[Condition, Value]] = []
        outer = frame.guard
        for guard, worker in workers.instances:
            for within, method in each(chosen):
                frame.guard = all_of((outer, guard, within))
                if frame.guard == FALSE or not isinstance(method, ConstValue):
                    continue
                function = self.attribute(frame, worker, str(method.value))
                if isinstance(function, FunctionValue):
                    self.invoke(frame, function, (), given)
        frame.guard = outer
        return choose(results)

    def make_environments(
        self, frame: CallFrame, function: FunctionValue, arguments: tuple[Value, ...]
    ) -> Value:
        """Make each registered environment, for recipes whose data sets name it."""
        registry = self.of_module(function.module.name, "ENV_REGISTRY")
        if not isinstance(registry, Mapping) or not any(
            isinstance(value, Config) and value.path[:1] == ("env",) for value in arguments
        ):
            return ANYTHING
        outer = frame.guard
        for name, entry in registry.items:
            fqn = entry.get("actor_class_fqn") if isinstance(entry, Mapping) else None
            for _, cls in self.classes_named(fqn) if fqn is not None else ():
                frame.guard = both(outer, Test("uses-env", (), name))
                self.construct(frame, cls, (Config(("env", str(name))),), {}, None)
        frame.guard = outer
        return ANYTHING
