"""Described classes, made again as what they are, for pydantic itself to answer by.

This imports pydantic (0.1 s); what it makes is kept by `recipes.schema.schema_cache` as a core schema.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import importlib
import warnings
from typing import Annotated, Any, Literal, NotRequired, Required, Union

import pydantic
import pydantic_core
import typing_extensions

from recipes.schema.types import Description, SchemaClass, SchemaField, Type

_SIMPLE: dict[str, Any] = {
    "int": int, "float": float, "str": str, "bool": bool, "bytes": bytes, "complex": complex, "None": None,
}  # fmt: skip
_CONTAINERS: dict[str, Any] = {
    "list": list, "dict": dict, "set": set, "frozenset": frozenset, "tuple": tuple,
    "Sequence": collections.abc.Sequence, "Iterable": collections.abc.Iterable,
    "Mapping": collections.abc.Mapping, "MutableMapping": collections.abc.MutableMapping,
}  # fmt: skip
_OF_STRINGS = frozenset(("strip_whitespace", "to_lower", "to_upper"))
_REFUSALS = (
    pydantic.PydanticUserError, pydantic.errors.PydanticUndefinedAnnotation, pydantic_core.SchemaError,
    TypeError, ValueError, NameError, AttributeError, RecursionError,
)  # fmt: skip
"""What pydantic raises for a type that it cannot make a schema of."""


class Builder:
    """Makes the classes of a description.

    `lenient`: nothing is required and nothing is an object, so that only types are judged.
    """

    def __init__(self, description: Description, *, lenient: bool = False) -> None:
        self.description = description
        self.lenient = lenient
        self.refused: set[str] = set()
        """Classes that pydantic cannot make: they accept anything."""
        self._built: dict[str, Any] = {}

    def core_schema(self, class_id: str) -> Any:  # noqa: ANN401 - a core schema, which is nested data
        """Return pydantic's own core schema of a class."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a field may be called like a method of pydantic's base class
            while True:
                try:
                    return self._core_schema(class_id)
                except _REFUSALS:
                    if not self._drop_refused():
                        return {"type": "any"}

    def _core_schema(self, class_id: str) -> Any:  # noqa: ANN401
        made = self.class_(class_id)
        if isinstance(made, type) and issubclass(made, pydantic.BaseModel):
            made.model_rebuild(force=True)
            return made.__pydantic_core_schema__
        return pydantic.TypeAdapter(made).core_schema

    def _drop_refused(self) -> bool:
        """Find the first class that pydantic refuses by itself, and let it accept anything."""
        for id_ in self.description.classes:
            if id_ in self.refused:
                continue
            self._built.clear()
            try:
                self._core_schema(id_)
            except _REFUSALS:
                self.refused.add(self._innermost(id_))
                self._built.clear()
                return True
        return False

    def _innermost(self, id_: str) -> str:
        """Return a refused class to which a refused class refers, itself if those are all made."""
        for item in self.description.classes[id_].fields.values():
            for part in item.type.walk():
                if part.kind == "class" and part.name in self.description.classes and part.name != id_:
                    try:
                        self._core_schema(part.name)
                    except _REFUSALS:
                        return part.name
        return id_

    def class_(self, id_: str) -> Any:  # noqa: ANN401 - a type, for pydantic
        """Return a class; `Any` for one that is not described, accepts anything, or refers to itself."""
        if id_ not in self._built:
            described = self.description.classes.get(id_)
            self._built[id_] = Any
            if described is not None and not described.opaque and id_ not in self.refused:
                self._built[id_] = self._make(described)
        return self._built[id_]

    def _make(self, described: SchemaClass) -> Any:  # noqa: ANN401
        if described.kind == "enum":
            return (
                Literal[described.members] if self.lenient and described.members else _enumeration(described)
            )
        config = {"protected_namespaces": (), **described.config}
        fields = described.fields.values()
        if described.kind == "typed_dict" or self.lenient:
            # Below Python 3.12 pydantic takes only the one of typing_extensions; mypy only literal names.
            make: Any = typing_extensions.TypedDict
            made = make(described.name, {item.name: self._key(item) for item in fields})
            if described.config and not self.lenient:
                made.__pydantic_config__ = config
            return made
        if described.kind == "dataclass":
            return self._dataclass(described, config)
        definitions: dict[str, Any] = {
            item.name: (self.type(item.type), self._value(item)) for item in fields
        }
        config["defer_build"] = True
        make_model: Any = pydantic.create_model
        return make_model(described.name, __config__=config, **definitions)

    def _key(self, item: SchemaField) -> Any:  # noqa: ANN401
        kind = self.type(item.type)
        return Required[kind] if item.required and not self.lenient else NotRequired[kind]

    def _value(self, item: SchemaField) -> Any:  # noqa: ANN401
        """Return a model's field; which default it has does not matter, for none is validated."""
        alias = item.alias or None
        if item.required and not self.lenient:
            return pydantic.Field(validation_alias=alias)
        return pydantic.Field(None, validation_alias=alias)

    def _dataclass(self, described: SchemaClass, config: dict[str, Any]) -> Any:  # noqa: ANN401
        fields: list[tuple[str, Any, Any]] = []
        for item in described.fields.values():
            required = item.required and not self.lenient
            fields.append(
                (
                    item.name,
                    self.type(item.type),
                    dataclasses.field() if required else dataclasses.field(default=None),
                )
            )
        made: Any = dataclasses.make_dataclass(described.name, fields, kw_only=True)
        if described.config:
            made.__pydantic_config__ = config
        return made

    def type(self, described: Type) -> Any:  # noqa: ANN401
        """Return a type as Python has it."""
        if described.kind == "class":
            return self.class_(described.name)
        if described.kind == "union":
            return Union[tuple(self.type(item) for item in described.items)]  # noqa: UP007 - made at run time
        if described.kind == "literal":
            return Literal[described.values] if described.values else Any
        if described.kind == "generic":
            return self._generic(described)
        if described.kind == "annotated":
            return self._annotated(described)
        return self._named(described.name) if described.kind == "name" else Any

    @staticmethod
    def _named(name: str) -> Any:  # noqa: ANN401
        """Return a type by its name; those of other packages are pydantic's and Python's own."""
        if name in _SIMPLE:
            return _SIMPLE[name]
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last, Any)

    def _generic(self, described: Type) -> Any:  # noqa: ANN401
        items = tuple(self.type(item) for item in described.items)
        if described.name == "tuple…":
            items = (*items, ...)
        container = _CONTAINERS.get(described.name.rstrip("…"), Any)
        return (
            container[items if len(items) != 1 else items[0]] if items and container is not Any else container
        )

    def _annotated(self, described: Type) -> Any:  # noqa: ANN401
        inner = self.type(described.items[0])
        limits = dict(described.values)
        strings = {name: limits.pop(name) for name in list(limits) if name in _OF_STRINGS}
        marks: list[Any] = [pydantic.Field(**limits)] if limits else []
        marks += [pydantic.StringConstraints(**strings)] if strings else []
        return Annotated[(inner, *marks)] if marks else inner


def _enumeration(described: SchemaClass) -> Any:  # noqa: ANN401
    members = {f"MEMBER_{number}": value for number, value in enumerate(described.members)}
    if not members:
        return Any
    mixin = {"str": str, "int": int}.get(described.config.get("mixin", ""))
    if mixin is None:
        return enum.Enum(described.name, members)
    return enum.Enum(described.name, members, type=mixin)
