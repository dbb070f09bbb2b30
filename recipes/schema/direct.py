"""Core schemas of described classes, written without pydantic where their form is certain.

Importing pydantic and letting it make the classes takes 0.2 s, this a hundredth of it. It covers the types
that NeMo-RL's configuration uses; for a description with anything else, pydantic is asked (`build`). The
tests compare both for all releases and for descriptions made at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recipes.schema.types import Description, SchemaClass, SchemaField, Type

Node = dict[str, Any]
"""A node of a core schema, as `core_schema.as_data` gives it."""

_PATH: Node = {
    "type": "json-or-python",
    "json_schema": {"type": "str"},
    "python_schema": {"type": "is-instance", "cls": {"$type": "os.PathLike"}},
}
_NAMED: dict[str, Node] = {
    "int": {"type": "int"},
    "float": {"type": "float"},
    "str": {"type": "str"},
    "bool": {"type": "bool"},
    "None": {"type": "none"},
    "pydantic.PositiveInt": {"type": "int", "gt": 0},
    "pydantic.NonNegativeInt": {"type": "int", "ge": 0},
    "pydantic.NegativeInt": {"type": "int", "lt": 0},
    "pydantic.NonPositiveInt": {"type": "int", "le": 0},
    "pydantic.PositiveFloat": {"type": "float", "gt": 0},
    "pydantic.NonNegativeFloat": {"type": "float", "ge": 0},
    "pydantic.NegativeFloat": {"type": "float", "lt": 0},
    "pydantic.NonPositiveFloat": {"type": "float", "le": 0},
    "os.PathLike": {
        "type": "lax-or-strict",
        "lax_schema": {
            "type": "union",
            "choices": [{"$of": _PATH}, {"$of": {"type": "str", "strict": True}}],
            "custom_error_type": "path_type",
            "custom_error_message": "Input is not a valid path for <class 'os.PathLike'>",
        },
        "strict_schema": _PATH,
    },
}
_LIMITS = frozenset(("gt", "ge", "lt", "le"))
_ANY: Node = {"type": "any"}


class NotDirectError(Exception):
    """A description has something that only pydantic itself can answer for."""


class DirectBuilder:
    """Writes core schemas of a description's classes.

    `lenient`: as for `build.Builder`, nothing is required and nothing is an object.
    """

    def __init__(self, description: Description, *, lenient: bool = False) -> None:
        self.description = description
        self.lenient = lenient
        self._made: dict[str, Node] = {}
        self._uses: dict[str, int] = {}
        self._open: set[str] = set()

    def core_schema(self, class_id: str) -> Node:
        """Return the core schema of a class.

        Raises:
            NotDirectError: it has something that only pydantic can answer for.
        """
        self._made, self._uses, self._open = {}, {}, set()
        top = self._class(class_id, {})
        shared = [self._inlined(node) for id_, node in self._made.items() if self._uses[id_] > 1]
        schema = self._inlined(top)
        return {"type": "definitions", "schema": schema, "definitions": shared} if shared else schema

    def _inlined(self, node: Any) -> Any:  # noqa: ANN401 - nested data
        """Put classes that are used once where they are used."""
        if isinstance(node, list):
            return [self._inlined(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("type") == "definition-ref":
            id_ = node["schema_ref"]
            return node if self._uses[id_] > 1 else self._inlined(self._made[id_])
        return {name: self._inlined(item) for name, item in node.items()}

    def _class(self, id_: str, config: Mapping[str, Any]) -> Node:
        """Return the reference to a class; `config` is that of the model around it, which it may inherit."""
        described = self.description.classes.get(id_)
        if described is None or described.opaque:
            return _ANY
        if described.kind == "enum" and self.lenient and described.members:
            return _literal(described.members)
        if id_ in self._open or described.kind in ("enum", "dataclass") or set(described.config) - {"extra"}:
            raise NotDirectError(id_)
        if id_ not in self._made:
            self._open.add(id_)
            as_dict = described.kind == "typed_dict" or self.lenient
            own = described.config if not self.lenient else {}
            used = (own or config) if as_dict else own
            self._made[id_] = self._typed_dict(described, used) if as_dict else self._model(described, used)
            self._open.remove(id_)
        self._uses[id_] = self._uses.get(id_, 0) + 1
        return {"type": "definition-ref", "schema_ref": id_}

    def _typed_dict(self, described: SchemaClass, config: Mapping[str, Any]) -> Node:
        fields = {
            item.name: {
                "type": "typed-dict-field",
                "schema": self._type(item.type, config),
                "required": item.required and not self.lenient,
            }
            for item in described.fields.values()
        }
        return {
            "type": "typed-dict", "fields": fields, "extra_behavior": config.get("extra") or "ignore",
            "config": _core_config(described.name, config), "ref": described.id, "cls_name": described.name,
        }  # fmt: skip

    def _model(self, described: SchemaClass, config: Mapping[str, Any]) -> Node:
        fields = {item.name: self._model_field(item, config) for item in described.fields.values()}
        return {
            "type": "model", "cls": {"$class": described.name},
            "schema": {"type": "model-fields", "fields": fields, "model_name": described.name},
            "custom_init": False, "root_model": False,
            "config": _core_config(described.name, config), "ref": described.id,
        }  # fmt: skip

    def _model_field(self, item: SchemaField, config: Mapping[str, Any]) -> Node:
        if item.alias or item.name.startswith(("_", "model_")):
            raise NotDirectError(item.name)  # another name, private, or one of pydantic's own
        schema = self._type(item.type, config)
        if not item.required:
            schema = {"type": "default", "schema": schema, "default": None}
        return {"type": "model-field", "schema": schema}

    def _type(self, described: Type, config: Mapping[str, Any]) -> Node:
        if described.kind == "any":
            return _ANY
        if described.kind == "class":
            return self._class(described.name, config)
        if described.kind == "name" and described.name in _NAMED:
            return _NAMED[described.name]
        if described.kind == "literal":
            return _literal(described.values) if described.values else _ANY
        if described.kind == "union":
            return _union([self._type(item, config) for item in described.items])
        if described.kind == "generic":
            return _container(described.name, [self._type(item, config) for item in described.items])
        if described.kind == "annotated":
            return _limited(self._type(described.items[0], config), dict(described.values))
        raise NotDirectError(described.name)


def _core_config(title: str, config: Mapping[str, Any]) -> Node:
    extra = config.get("extra")
    return {**({"extra_fields_behavior": extra} if extra else {}), "title": title}


def _literal(values: tuple[Any, ...]) -> Node:
    if not all(value is None or isinstance(value, bool | int | str) for value in values):
        raise NotDirectError("Literal")
    return {"type": "literal", "expected": list({repr(value): value for value in values}.values())}


def _union(items: list[Node]) -> Node:
    """Return a union as Python has it: repeated types once, and one type is itself; None is set apart."""
    choices = list({repr(item): item for item in items if item != _NAMED["None"]}.values())
    if not choices:
        return _NAMED["None"]
    node = choices[0]
    if len(choices) > 1:
        if any(item["type"] in ("nullable", "union") for item in choices):
            raise NotDirectError("Union")  # in a union of its own: pydantic says how they are nested
        node = {"type": "union", "choices": [{"$of": item} for item in choices]}
    return {"type": "nullable", "schema": node} if _NAMED["None"] in items else node


def _container(name: str, items: list[Node]) -> Node:
    if name in ("list", "set", "frozenset") and len(items) <= 1:
        kind = "frozen_set" if name == "frozenset" else name
        return {"type": kind, "items_schema": items[0] if items else _ANY}
    if name == "dict" and len(items) in (0, 2):
        keys, values = items or (_ANY, _ANY)
        return {"type": "dict", "keys_schema": keys, "values_schema": values}
    if name == "tuple…" and len(items) == 1:
        return {"type": "tuple", "items_schema": items, "variadic_item_index": 0}
    if name == "tuple" and items:
        return {"type": "tuple", "items_schema": items}
    raise NotDirectError(name)


def _limited(node: Node, limits: Mapping[str, Any]) -> Node:
    plain = all(isinstance(value, int | float) and not isinstance(value, bool) for value in limits.values())
    if node not in (_NAMED["int"], _NAMED["float"]) or not plain or set(limits) - _LIMITS:
        raise NotDirectError("Annotated")
    return {**node, **limits}
