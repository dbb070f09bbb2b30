"""Reading of a value as someone typed it, and writing of a value as YAML text."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recipes.errors import RecipeError
from recipes.values import plain
from recipes.yaml.compose import compose
from recipes.yaml.layout import Layout
from recipes.yaml.nodes import ScalarNode
from recipes.yaml.parse import parse
from recipes.yaml.scalars import Scalar
from recipes.yaml.write import BlockWriter, scalar_text

if TYPE_CHECKING:
    from recipes.yaml.write import Writable


class Typed(NamedTuple):
    """Value and, for a scalar on one line, how it was spelled; `remark` is a comment behind it."""

    value: Writable
    spelling: str
    remark: str = ""


def read_typed(text: str) -> Typed:
    """Read a value as YAML, typed as OmegaConf types it; raises `RecipeError`."""
    fix = "Quote text that YAML would read as something else: '\"@home\"'."
    if text.lstrip().startswith("#"):
        raise RecipeError(f"The value {text!r} is only a comment", fix="Quote text that begins with '#'.")
    try:
        tree = parse(text, "the value")
    except RecipeError as error:
        raise RecipeError(f"The value {text!r} is not YAML: {error.what}", fix=fix) from error
    composed = compose(tree)
    if composed.problems:
        raise RecipeError(f"The value {text!r} cannot be used: {composed.problems[0].what}", fix=fix)
    node = tree.root
    spelling = ""
    if isinstance(node, ScalarNode) and not node.tag and not node.anchor and not node.block:
        spelling = text[node.body : node.end]
    value = plain(composed.value) if composed.value is not None else None
    behind = text[node.end :].strip() if node is not None and "\n" not in text.strip() else ""
    remark = behind.lstrip("#").strip() if behind.startswith("#") else ""
    return Typed(writable(value), "" if "\n" in spelling else spelling, remark)


def writable(data: object) -> Writable:
    """Return data as what can be written: also OmegaConf's bytes (in base 64) and paths, as texts."""
    if isinstance(data, dict):
        return {key: writable(item) for key, item in data.items()}
    if isinstance(data, list):
        return [writable(item) for item in data]
    if isinstance(data, bytes):
        return b2a_base64(data, newline=False).decode()
    return data if isinstance(data, Scalar) else str(data)


def yaml_text(value: Writable) -> str:
    """Write a value as YAML lines, without a line break at the end."""
    if isinstance(value, Mapping) and value:
        return BlockWriter(Layout(), "\n").lines_of_mapping(value)
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return BlockWriter(Layout(), "\n").lines_of_sequence(value)
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return "{}" if isinstance(value, Mapping) else "[]"
    return scalar_text(value)
