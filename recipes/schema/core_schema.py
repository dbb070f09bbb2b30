"""Pydantic's core schemas as plain data, and the validators made of them.

A core schema that pydantic has made is nearly plain data. What is not, and does not change what is accepted,
is left out; then it can be kept on disk, and validating needs `pydantic_core` alone (0.03 s), not pydantic.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Mapping
from typing import Any

Node = dict[str, Any]
"""A node of a core schema."""
ALTERNATIVE = "|"
"""How the label of a union's alternative begins in the location of an error; its number follows."""
_TYPES = ("os.PathLike", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "pathlib.PurePosixPath")
_WITHOUT = frozenset(("metadata", "serialization", "computed_fields", "post_init", "on_error"))
_CLASS_NODES = frozenset(("model", "dataclass"))


class NotPlainError(Exception):
    """A core schema holds something that is no plain data: a validator function, for instance."""


def as_data(node: Any) -> Any:  # noqa: ANN401 - nested data
    """Return a core schema as plain data, alternatives of unions numbered.

    Raises:
        NotPlainError: it holds something else.
    """
    if isinstance(node, Mapping):
        return _node_as_data(dict(node)) if isinstance(node.get("type"), str) else _items(node)
    if isinstance(node, list | tuple):
        return [as_data(item) for item in node]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise NotPlainError(repr(node))


def _items(node: Mapping[str, Any]) -> Node:
    return {name: as_data(item) for name, item in node.items()}


def _node_as_data(node: Node) -> Node:
    kind = node["type"]
    if kind in ("function-after", "function-before", "function-wrap", "function-plain"):
        return _without_function(node)
    for name in _WITHOUT:
        node.pop(name, None)
    if kind == "union":
        choices = [item[0] if isinstance(item, tuple) else item for item in node["choices"]]
        node["choices"] = [{"$of": as_data(item)} for item in choices]
        return {name: item if name == "choices" else as_data(item) for name, item in node.items()}
    if kind == "typed-dict":
        cls = node.pop("cls", None)
        if cls is not None:
            node.setdefault("cls_name", cls.__name__)
    elif kind in _CLASS_NODES or kind == "enum":
        node["cls"] = {"$class": node["cls"].__name__}
        if kind == "enum":
            node["members"] = [member.value for member in node["members"]]
            node.pop("missing", None)
    elif kind == "is-instance":
        node["cls"] = {"$type": f"{node['cls'].__module__}.{node['cls'].__name__}"}
        node.pop("cls_repr", None)
        if node["cls"]["$type"] not in _TYPES:
            raise NotPlainError(node["cls"]["$type"])
    return _items(node)


def _without_function(node: Node) -> Node:
    """Return what a function wraps, for pydantic's own that make a path of a text: they refuse none."""
    function = getattr(node.get("function", {}).get("function"), "__qualname__", "")
    if node["type"] == "function-after" and function == "GenerateSchema._path_schema.<locals>.path_validator":
        inner: Node = as_data(node["schema"])
        return inner
    raise NotPlainError(function)


def restored(data: Any) -> Any:  # noqa: ANN401 - nested data
    """Return the core schema that `as_data` made plain, with stand-ins for the classes.

    One that is no plain data only gets its alternatives numbered.
    """
    if isinstance(data, list):
        return [restored(item) for item in data]
    if not isinstance(data, dict):
        return data
    node = {name: restored(item) for name, item in data.items()}
    kind = node.get("type")
    if kind == "union":
        choices = [choice[0] if isinstance(choice, tuple) else choice for choice in node["choices"]]
        node["choices"] = [
            (choice.get("$of", choice), f"{ALTERNATIVE}{number}") for number, choice in enumerate(choices)
        ]
    elif kind == "enum" and isinstance(node.get("cls"), dict):
        members = {f"MEMBER_{number}": value for number, value in enumerate(node["members"])}
        node["cls"] = enum.Enum(node["cls"]["$class"], members)
        node["members"] = list(node["cls"])
    elif kind in _CLASS_NODES and isinstance(node.get("cls"), dict):
        node["cls"] = _stand_in(node["cls"]["$class"])
    elif kind == "is-instance" and isinstance(node.get("cls"), dict):
        module, _, name = node["cls"]["$type"].rpartition(".")
        node["cls"] = getattr(importlib.import_module(module), name)
    return node


def _stand_in(name: str) -> type:
    """Return a class with the places that pydantic_core fills in a model's objects."""
    slots = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    return type(name, (), {"__slots__": slots})
