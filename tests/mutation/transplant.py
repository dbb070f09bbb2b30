"""Putting a mutant into a module that is imported already, which spares importing all that uses it anew."""

from __future__ import annotations

import re
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

_DATA = (bool, int, float, str, bytes, type(None), tuple, list, dict, set, frozenset, re.Pattern)


def transplant(module: ModuleType, function: str, code: str) -> bool:
    """Change a module as `code` has it; False where that takes a new import.

    `function` is the dotted name of what holds the change, empty for the module itself.
    """
    compiled = compile(code, str(module.__file__), "exec", dont_inherit=True)
    if function:
        return _function(vars(module), compiled, function.split("."))
    return _globals(module, compiled)


def _function(names: Any, compiled: CodeType, path: list[str]) -> bool:
    for place, name in enumerate(path):
        nested = [item for item in compiled.co_consts if isinstance(item, CodeType) and item.co_name == name]
        if len(nested) != 1 or name not in names:
            return False
        compiled = nested[0]
        target = _unwrapped(names[name])
        if isinstance(target, FunctionType):
            if target.__code__ == compiled or target.__code__.co_freevars != compiled.co_freevars:
                return False
            target.__code__ = compiled
            return True
        if not isinstance(target, type) or place + 1 == len(path):
            return False
        names = vars(target)
    return False


def _unwrapped(item: Any) -> Any:
    """Return the function behind a property, a class method or a cache."""
    if isinstance(item, property):
        return item.fget
    if isinstance(item, (classmethod, staticmethod)):
        return item.__func__
    return getattr(item, "__wrapped__", item)


def _globals(module: ModuleType, compiled: CodeType) -> bool:
    """Change tables and limits, also where other modules have imported them or functions default to them."""
    fresh: dict[str, Any] = {
        name: value
        for name, value in vars(module).items()
        if name.startswith("__") and name != "__builtins__"
    }
    registered = sys.modules[module.__name__]
    exec(compiled, fresh)
    sys.modules[module.__name__] = registered
    changed = False
    for name, value in fresh.items():
        known = vars(module).get(name)
        if isinstance(value, FunctionType) and isinstance(known, FunctionType):
            if value.__defaults__ != known.__defaults__ and all(
                isinstance(item, _DATA) for item in value.__defaults__ or ()
            ):
                known.__defaults__, changed = value.__defaults__, True
        elif not name.startswith("__") and isinstance(value, _DATA) and _content(value) != _content(known):
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is known:
                    setattr(other, name, value)
            changed = True
    return changed


def _content(value: Any) -> Any:
    """Return what tells values apart; the text of a pattern is cut, and a class made anew is not equal."""
    if isinstance(value, re.Pattern):
        return value.pattern, value.flags
    if isinstance(value, (tuple, list)):
        return [_content(item) for item in value]
    if isinstance(value, dict):
        return [(_content(key), _content(item)) for key, item in value.items()]
    return sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else repr(value)
