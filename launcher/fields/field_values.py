"""Values of fields: what a recipe has, what a text means, and the edits that it leads to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from launcher.fields import FIELDS, OFF, ON, Field
from launcher.fields.compound_fields import COMPOUND, FieldChange, FieldContext, edit_of
from recipes.planning import Setup
from recipes.planning.setup import value_at

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe
    from recipes.known_keys import KeyTree

_MISSING = object()
_SWITCH = {ON: True, OFF: False, "on": True, "off": False, "yes": True, "no": False}


def key_in(item: Field, recipe: EffectiveRecipe | None, key_tree: KeyTree | None = None) -> str:
    """Return the recipe key that a field sets in a recipe and a release; "" where they have none.

    The backend decides first, then the keys that the release knows, then those that the recipe has.
    """
    candidates = _candidates(item, recipe)
    if recipe is None or not candidates:
        return candidates[0] if candidates else ""
    if len(candidates) == 1 and key_tree is None:
        return candidates[0]
    by_release = [key for key in candidates if key_tree is not None and _knows(key_tree, key)]
    for key in (*by_release, *candidates):
        if value_at(recipe, key, _MISSING) is not _MISSING:
            return key
    return by_release[0] if by_release else ""


def _candidates(item: Field, recipe: EffectiveRecipe | None) -> tuple[str, ...]:
    side = "teacher" if item.key.startswith("teacher.") or item.megatron.startswith("teacher.") else "policy"
    megatron = recipe is not None and value_at(recipe, f"{side}.megatron_cfg.enabled") is True
    first = item.key_with("megatron" if megatron else None)
    return tuple(key for key in (first, *item.earlier) if key)


def _knows(key_tree: KeyTree, key: str) -> bool:
    tree = key_tree
    for step in key.split("."):
        if step not in tree.keys:
            return tree.open
        tree = tree.keys[step]
    return True


def is_available(item: Field, recipe: EffectiveRecipe, key_tree: KeyTree | None = None) -> bool:
    """Return whether a field sets anything in a recipe and a release."""
    return item.compound or not item.of_recipe or bool(key_in(item, recipe, key_tree))


def counterpart_key(item: Field, recipe: EffectiveRecipe, key_tree: KeyTree | None = None) -> str:
    """Return the teacher's key of a student's field; "" for none, and for one that follows by reference."""
    key = key_in(item, recipe, key_tree)
    if not item.both or not key.startswith("policy."):
        return ""
    other = f"teacher.{key.removeprefix('policy.')}"
    origin = recipe.origin(other)
    return "" if origin is None or origin.how == "interpolation" else other


def text_in(item: Field, recipe: EffectiveRecipe, key_tree: KeyTree | None = None) -> str:
    """Return the present value of a field as it is typed; "" for none, and for lists and sections."""
    if item.compound:
        return COMPOUND[item.name].text(recipe)
    key = key_in(item, recipe, key_tree)
    value = value_at(recipe, key) if key else None
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, bool):
        return ON if value else OFF
    return str(recipe.get_public(key))


def value_error(item: Field, text: str) -> str:
    """Return why a text is no value of a field of the recipe; "" where it is one."""
    if item.kind == "whole":
        return _number_error(item, text, "a whole number", default_least=1)
    if item.kind == "number":
        return _number_error(item, text, "a number", default_least=None)
    if item.kind == "switch":
        return "" if text.lower() in _SWITCH else f"must be {ON} or {OFF}"
    if item.choices and text not in dict(item.choices):
        return f"must be one of {', '.join(value for value, _ in item.choices)}"
    return "" if text else "required"


def _number_error(item: Field, text: str, noun: str, *, default_least: int | None) -> str:
    least = item.least if item.least is not None else default_least
    limits = [f">= {least:g}"] if least is not None else []
    limits += [f"<= {item.most:g}"] if item.most is not None else []
    number = _number(item, text)
    inside = number is not None and (least is None or number >= least)
    if number is not None and inside and (item.most is None or number <= item.most):
        return ""
    return f"must be {noun} {' and '.join(limits)}".rstrip()


def _number(item: Field, text: str) -> int | float | None:
    if item.kind == "whole":
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number - number == 0 and "_" not in text else None  # neither inf nor nan


def value_of(item: Field, text: str) -> object:
    """Return the value that a text without an error means."""
    if item.kind in ("whole", "number"):
        return _number(item, text)
    return _SWITCH[text.lower()] if item.kind == "switch" else text


def changes_of(
    item: Field,
    text: str,
    recipe: EffectiveRecipe,
    *,
    key_tree: KeyTree | None = None,
    both: bool = False,
    context: FieldContext | None = None,
) -> FieldChange:
    """Return the effect of a field's text on a recipe; none for a text with an error.

    With `both` a field of the student is set for the teacher, too, unless that follows by itself.
    """
    if value_error(item, text):
        return FieldChange()
    if item.compound:
        return COMPOUND[item.name].changes(recipe, text, context or FieldContext())
    key = key_in(item, recipe, key_tree)
    if not key:
        return FieldChange()
    value = value_of(item, text)
    other = counterpart_key(item, recipe, key_tree) if both else ""
    return FieldChange(tuple(edit_of(recipe, name, value) for name in (key, other) if name))


def all_changes(
    texts: Mapping[str, str],
    recipe: EffectiveRecipe,
    *,
    key_tree: KeyTree | None = None,
    both: Collection[str] = (),
    nodes: int | None = None,
    gpus_per_node: int | None = None,
) -> tuple[FieldChange, ...]:
    """Return the effects of fields' texts, later ones over earlier ones; texts with an error have none.

    Fields that set several keys come first: the others are more precise. `nodes` and `gpus_per_node` are
    the job's.
    """
    rows = [row for row in FIELDS if row.of_recipe and row.name in texts]
    valid = {row.name: texts[row.name] for row in rows if not value_error(row, texts[row.name])}
    context = FieldContext(nodes, gpus_per_node, valid)
    return tuple(
        changes_of(row, valid[row.name], recipe, key_tree=key_tree, both=row.name in both, context=context)
        for row in sorted(rows, key=lambda row: not row.compound)
        if row.name in valid
    )


def field_with_key(key: str, recipe: EffectiveRecipe | None, key_tree: KeyTree | None = None) -> Field | None:
    """Return the field that sets a recipe key."""
    for item in FIELDS:
        if item.compound and key in COMPOUND[item.name].keys:
            return item
        if key in item.keys and key_in(item, recipe, key_tree) == key:
            return item
    return None


def split_of(recipe: EffectiveRecipe, nodes: int | None) -> tuple[bool, bool]:
    """Return whether GPUs of one node, and whether whole nodes generate apart from the others."""
    setup = Setup.of(recipe)
    nodes = nodes or setup.nodes
    return not setup.colocated and nodes == 1, not setup.colocated and nodes > 1
