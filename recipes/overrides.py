"""Parsing and applying of Hydra overrides: `a=1`, `+a=1`, `++a=1`, `~a`.

Plain overrides are parsed here; everything else goes to Hydra's own parser, which takes 0.3 s to
import. What cannot be applied raises `UnsupportedError`: Hydra then words the error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.bounds import refuse_brackets
from recipes.errors import RecipeError
from recipes.interpolation import MISSING, UnsupportedError, is_interpolation
from recipes.interpolation import parse as parse_interpolation
from recipes.limits import INTERPOLATION_DEPTH, NUMBER_CHARACTERS, OVERRIDE_CHARACTERS
from recipes.merge import merge
from recipes.values import Leaf, Map, Mark, Seq, Value, item_index, on_top
from recipes.yaml.scalars import Scalar, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recipes.keys import Step

OVERRIDE_FILE = "<override>"
"""File name in the origin of a value that an override gives; the line is the override's number."""

_SIMPLE = re.compile(r"(\+\+|\+|~|)([A-Za-z_][\w-]*(?:\.(?:[A-Za-z_][\w-]*|[0-9]+))*)(?:=(.*))?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_/][\w/.-]*")
_RESERVED = ("null", "true", "false", "inf", "nan")


@dataclass(frozen=True, slots=True)
class Override:
    """Parsed override; `kind` is '' (change), '+' (add), '++' (add or change) or '~' (delete)."""

    text: str
    kind: str
    key: str
    value: object


def parse_overrides(overrides: Sequence[str]) -> list[Override]:
    """Parse overrides; raises `RecipeError` for one that Hydra cannot parse."""
    for text in overrides:
        if len(text) > OVERRIDE_CHARACTERS.value or refuse_brackets(text):
            what = f"invalid override {shortened(text)}"
            fix = f"At most {OVERRIDE_CHARACTERS}, and brackets nested {INTERPOLATION_DEPTH}."
            raise RecipeError(what, fix=fix)
    return [_simple(text) or _by_hydra(text) for text in overrides]


def _simple(text: str) -> Override | None:
    match = _SIMPLE.fullmatch(text)
    if match is None:
        return None
    kind, key, value = match.groups()
    if kind == "~":
        return Override(text, kind, key, None) if value is None else None
    if value is None:
        return None
    if number := _NUMBER.fullmatch(value):
        if len(value) > NUMBER_CHARACTERS.value:
            fix = f"At most {NUMBER_CHARACTERS}; put it in quotes if it is a text."
            raise RecipeError(f"invalid override {shortened(text)}: the number is too long", fix=fix)
        return Override(text, kind, key, float(value) if any(number.groups()) else int(value))
    if value in ("true", "false", "null"):
        return Override(text, kind, key, None if value == "null" else value == "true")
    if _WORD.fullmatch(value) and value.lower() not in _RESERVED:
        return Override(text, kind, key, value)
    return None


def _by_hydra(text: str) -> Override:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_override(text)
        value = parsed.value()
    except HydraException as error:
        what = f"Hydra cannot parse the override {text}"
        fix = "Write KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY; quote a value with special characters."
        raise RecipeError(what, where=" ".join(str(error).split())[:200], fix=fix) from error
    kind = "~" if parsed.is_delete() else "++" if parsed.is_force_add() else "+" if parsed.is_add() else ""
    plain_delete = kind != "~" or value is None or value == ""
    if parsed.package is not None or parsed.is_sweep_override() or not plain_delete:
        return Override(text, "unsupported", str(parsed.key_or_group), None)
    return Override(text, kind, str(parsed.key_or_group), value)


def apply_overrides(root: Map, overrides: Sequence[Override], *, strict: bool = True) -> Map:
    """Apply overrides to merged values; raises `UnsupportedError` for what only Hydra can judge.

    Without `strict` an override that cannot be applied is skipped.
    """
    for number, override in enumerate(overrides, 1):
        mark = Mark(OVERRIDE_FILE, number, number, override=True)
        try:
            changed = _apply(root, override, override.key.split("."), mark)
        except UnsupportedError:
            if strict:
                raise
            continue
        assert isinstance(changed, Map)
        root = changed
    return root


def _apply(value: Value, override: Override, steps: list[str], mark: Mark) -> Value:
    step, *rest = steps
    if isinstance(value, Seq):
        index = item_index(step, len(value.items))
        if index is None or override.kind == "~":
            raise UnsupportedError(override.text)
        new = (
            _apply(value.items[index], override, rest, mark)
            if rest
            else _put(value.items[index], override, mark)
        )
        return Seq((*value.items[:index], new, *value.items[index + 1 :]), value.mark, value.under)
    if not isinstance(value, Map) or not step:
        raise UnsupportedError(override.text)
    items: dict[Step, Value] = dict(value.items)
    old = items.get(step)
    if override.kind == "~" and not rest:
        if old is None or (isinstance(old, Leaf) and (old.value is None or is_interpolation(old.value))):
            raise UnsupportedError(override.text)
        del items[step]
    elif rest:
        if old is None and override.kind in ("+", "++"):
            old = Map({}, mark)
        if old is None:
            raise UnsupportedError(override.text)
        items[step] = _apply(old, override, rest, mark)
    else:
        items[step] = _put(old, override, mark)
    return Map(items, value.mark, value.under)


def _put(old: Value | None, override: Override, mark: Mark) -> Value:
    """Return the value that replaces `old` at the end of an override's key."""
    new = _value(override.value, mark, override.text)
    if old is None:
        if override.kind not in ("+", "++"):
            raise UnsupportedError(override.text)
        return new
    # Hydra adds where there is nothing, or nothing but null or ???.
    vacant = isinstance(old, Leaf) and old.value in (None, MISSING)
    if override.kind == "+" and isinstance(new, Leaf) and not vacant:
        raise UnsupportedError(override.text)
    if override.kind not in ("", "+", "++"):
        raise UnsupportedError(override.text)
    if isinstance(new, Map) and isinstance(old, Map):
        if override.kind == "" and not _inside(new, old):
            raise UnsupportedError(override.text)
        return merge(old, new)
    if not isinstance(new, Leaf) and not isinstance(old, Leaf) and type(new) is not type(old):
        raise UnsupportedError(override.text)
    return on_top(new, old)


def _inside(new: Map, old: Map) -> bool:
    """Return whether a mapping brings no key that the old one lacks."""
    for key, value in new.items.items():
        if key not in old.items:
            return False
        under = old.items[key]
        if isinstance(value, Map) and isinstance(under, Map) and not _inside(value, under):
            return False
    return True


def _value(value: object, mark: Mark, text: str) -> Value:
    if isinstance(value, dict):
        return Map({_key(key, text): _value(item, mark, text) for key, item in value.items()}, mark)
    if isinstance(value, list | tuple):
        return Seq(tuple(_value(item, mark, text) for item in value), mark)
    if value is None or isinstance(value, Scalar):
        if isinstance(value, str) and is_interpolation(value):
            parse_interpolation(value)
        return Leaf(value, mark)
    raise UnsupportedError(text)


def _key(key: object, text: str) -> Step:
    if not isinstance(key, str | int | float | bool):
        raise UnsupportedError(text)
    return key
