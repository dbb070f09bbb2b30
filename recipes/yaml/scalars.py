"""Values of a plain scalar for the three readers that a recipe meets.

OmegaConf (which NeMo-RL uses) decides what a value *is*: PyYAML's YAML 1.1 rules, its own rule for
floats, no timestamps. PyYAML alone and ruamel.yaml (YAML 1.2) matter when something is *written*:
new text is chosen so that all three read the same typed value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from recipes.limits import NUMBER_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.limits import Limit

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Scalar that a reader refuses, or whose type OmegaConf does not have."""

    text: str
    limit: Limit | None = None
    """Limit that it exceeds, where that is the reason."""


def shortened(text: str) -> str:
    """Return a text for a message, cut where it is long."""
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text):,} characters)"


_BOOL = re.compile(r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF")
_BOOL_12 = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL = re.compile(r"~|null|Null|NULL|")
_INT = re.compile(
    r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
)
_INT_12 = re.compile(r"[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+")
_INFINITE = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_FLOAT_11 = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|" + _INFINITE
)
_FLOAT_OMEGACONF = re.compile(
    r"[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+"
    r"|\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?|[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*|" + _INFINITE
)
_FLOAT_12 = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?|" + _INFINITE
)
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?"
)
_SPECIAL = ("<<", "=")


@lru_cache(maxsize=8192)
def read_omegaconf(text: str) -> Scalar | Unreadable:
    """Return the value OmegaConf gives a plain scalar."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return _truth(text)
    if text in _SPECIAL:
        return Unreadable(text)
    try:
        if _FLOAT_11.fullmatch(text):
            return _number(text, read_float)
        if _INT.fullmatch(text):
            return _number(text, read_int)
        if _FLOAT_OMEGACONF.fullmatch(text):
            return _number(text, read_float)
    except ValueError:  # "0b_", or more digits than Python converts
        return Unreadable(text)
    return text


def read_pyyaml(text: str) -> Scalar | Unreadable:
    """Return the value PyYAML's own loader gives a plain scalar; a date is Unreadable."""
    if text not in _SPECIAL and _FLOAT_OMEGACONF.fullmatch(text) and not _FLOAT_11.fullmatch(text):
        return read_omegaconf(text) if _INT.fullmatch(text) else text
    return Unreadable(text) if _TIMESTAMP.fullmatch(text) else read_omegaconf(text)


def read_ruamel(text: str) -> Scalar | Unreadable:
    """Return the value ruamel.yaml's YAML 1.2 gives a plain scalar; a date is Unreadable."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL_12.fullmatch(text):
        return text.lower() == "true"
    if text in _SPECIAL:
        return Unreadable(text)
    try:
        if _INT_12.fullmatch(text) and not text.startswith("_"):
            digits = text.replace("_", "").lower().lstrip("+-")
            base = {"0o": 8, "0b": 2, "0x": 16}.get(digits[:2], 10)
            return (-1 if text.startswith("-") else 1) * int(digits[2:] if base != 10 else digits, base)
        if _FLOAT_12.fullmatch(text):
            return read_float(text)
    except ValueError:
        return Unreadable(text)
    return Unreadable(text) if _TIMESTAMP.fullmatch(text) else text


def read_tagged(tag: str, text: str) -> Scalar | Unreadable:
    """Return the value of a scalar with an explicit tag such as !!str."""
    if tag == "!":  # PyYAML resolves it as if it were a plain scalar, in quotes too
        return read_omegaconf(text)
    try:
        match tag.removeprefix("tag:yaml.org,2002:"):
            case "str":
                return text
            case "int":
                return _number(text, read_int)
            case "float":
                return _number(text, read_float)
            case "null":
                return None
            case "bool" if _BOOL.fullmatch(text):
                return _truth(text)
            case _:
                pass
    except ValueError:
        pass
    return Unreadable(f"!{tag} {text}")


def _number(text: str, read: Callable[[str], int | float]) -> int | float | Unreadable:
    return Unreadable(text, NUMBER_CHARACTERS) if len(text) > NUMBER_CHARACTERS.value else read(text)


def _truth(text: str) -> bool:
    return text.lower() in ("yes", "true", "on")


def read_int(text: str) -> int:
    """Return an integer of YAML 1.1: also 0b1, 0x1f, 017 (octal) and 1:30 (base 60). Raises ValueError."""
    digits = text.replace("_", "").lower()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if digits.startswith("0b"):
        return sign * int(digits[2:], 2)
    if digits.startswith("0x"):
        return sign * int(digits[2:], 16)
    if digits.startswith("0") and digits != "0":
        return sign * int(digits, 8)
    total = 0
    for part in digits.split(":"):
        total = total * 60 + int(part)
    return sign * total


def read_float(text: str) -> float:
    """Return a float of YAML 1.1: also .inf, .nan and 1:30.5 (base 60). Raises ValueError."""
    digits = text.replace("_", "").lower()
    sign = -1.0 if digits.startswith("-") else 1.0
    digits = digits.lstrip("+-")
    if digits == ".inf":
        return sign * math.inf
    if digits == ".nan":
        return math.nan
    total, weight = 0.0, 1
    for part in reversed(digits.split(":")):  # PyYAML's order of summing, so its rounding too
        total, weight = total + float(part) * weight, weight * 60
    return sign * total


def same(a: object, b: object) -> bool:
    """Return whether data is equal, in type too: 1 is not 1.0 is not True; nan is nan; key order counts."""
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is str or kind is int:  # most of a recipe
        return a == b
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(map(same, a, b)) and all(map(same, a.values(), b.values()))
    return bool(a == b)
