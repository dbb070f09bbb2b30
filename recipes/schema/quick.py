"""Values that a core schema surely accepts, told without `pydantic_core`.

Importing `pydantic_core` and building the validators takes 0.06 s, longer than all rules together, and nearly
every recipe is accepted. What is not certain here (a conversion, a limit on something unusual) is `False`,
and `pydantic_core` is asked; so this never decides against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LIMITS = frozenset(("gt", "ge", "lt", "le"))
_NUMBERS = frozenset((*_LIMITS, "type"))
_EXACT = 2**53
"""Whole numbers below it are floats without loss."""


def surely_accepts(core: Mapping[str, Any], value: object, *, strict: bool) -> bool:
    """Tell whether plain data (`core_schema.as_data`) surely accepts a value as it is."""
    shared = {item["ref"]: item for item in core["definitions"]} if core["type"] == "definitions" else {}
    return _Reader(shared, strict).accepts(core["schema"] if core["type"] == "definitions" else core, value)


class _Reader:
    """Follows a core schema and a value side by side; `shared` are the definitions by their reference."""

    def __init__(self, shared: Mapping[str, Any], strict: bool) -> None:
        self.shared = shared
        self.strict = strict

    def accepts(self, core: Mapping[str, Any], value: object) -> bool:
        kind = core["type"]
        if kind == "any":
            return True
        if kind == "nullable":
            return value is None or self.accepts(core["schema"], value)
        if kind == "none":
            return value is None
        if kind == "bool":
            return len(core) == 1 and type(value) is bool
        if kind == "str":
            return len(core) == 1 and _is_plain(value)
        if kind in ("int", "float"):
            return self._number(core, value)
        if kind == "literal":
            return any(type(item) is type(value) and item == value for item in core["expected"])
        if kind == "union":
            return any(self.accepts(choice["$of"], value) for choice in core["choices"])
        if kind == "definition-ref":
            return self.accepts(self.shared[core["schema_ref"]], value)
        if kind == "default":
            return self.accepts(core["schema"], value)
        return self._holds(core, value)

    def _holds(self, core: Mapping[str, Any], value: object) -> bool:
        """Tell whether a container is accepted."""
        kind = core["type"]
        if kind == "list":
            item = core["items_schema"]
            return type(value) is list and len(core) == 2 and all(self.accepts(item, one) for one in value)
        if type(value) is not dict:
            return False
        if kind == "dict":
            keys, values = core["keys_schema"], core["values_schema"]
            return len(core) == 3 and all(
                self.accepts(keys, key) and self.accepts(values, one) for key, one in value.items()
            )
        if kind == "typed-dict":
            extra = core["extra_behavior"]
            return self._fields(core["fields"], value, extra, core["config"])
        if kind == "model" and core["schema"]["type"] == "model-fields" and not self.strict:
            extra = core["config"].get("extra_fields_behavior", "ignore")
            return self._fields(core["schema"]["fields"], value, extra, core["config"])
        return False

    def _fields(
        self, fields: Mapping[str, Any], value: Mapping[Any, object], extra: str, config: Mapping[str, Any]
    ) -> bool:
        if set(config) - {"extra_fields_behavior", "title"} or not all(map(_is_plain, value)):
            return False
        if extra == "forbid" and not value.keys() <= fields.keys():
            return False
        for name, field in fields.items():
            if "validation_alias" in field:
                return False
            if name in value:
                if not self.accepts(field["schema"], value[name]):
                    return False
            elif field.get("required", field["schema"]["type"] != "default"):
                return False
        return True

    def _number(self, core: Mapping[str, Any], value: object) -> bool:
        if core.keys() - _NUMBERS:
            return False
        if type(value) is int:
            certain = abs(value) < _EXACT and (core["type"] == "int" or not self.strict)
        else:
            certain = core["type"] == "float" and type(value) is float
        return certain and all(_within(name, value, core[name]) for name in _LIMITS & core.keys())


def _is_plain(value: object) -> bool:
    """Tell whether a value is a text of which every part is a character, not half of one."""
    return type(value) is str and value.isascii()


def _within(name: str, value: Any, limit: Any) -> bool:  # noqa: ANN401 - numbers
    """Tell whether a number is within a limit; nan is within none."""
    if name in ("gt", "ge"):
        return bool(value > limit if name == "gt" else value >= limit)
    return bool(value < limit if name == "lt" else value <= limit)
