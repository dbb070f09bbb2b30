"""Changes of a wizard state that need to know what it comes to: fixes, and keys without a field. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from launcher.fields import OFF, ON
from launcher.fields import field as field_of
from recipes.planning import RecipeEdit
from recipes.yaml.typed import read_typed
from tui.screens.wizard.model import DraftStatus, WizardState, field_with_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recipes.editing.outcomes import ChosenValues
    from recipes.planning import Fix


def with_fix(state: WizardState, fix: Fix, status: DraftStatus) -> WizardState:
    """Return the state with a check's fix applied: in fields that set its keys, else as overrides."""
    return with_edits(state, fix.edits, status)


def with_edits(state: WizardState, edits: Iterable[RecipeEdit], status: DraftStatus) -> WizardState:
    """Return the state with edits of the recipe made: in fields that set their keys, else as overrides."""
    texts, overrides = dict(state.texts), state.overrides
    for edit in edits:
        name = field_with_key(edit.key, status)
        overrides = _without(overrides, edit.key)
        text = _text(edit.after)
        if name is not None and not edit.remove and text and not field_of(name).compound:
            texts[name] = text
            continue
        if name is not None:
            texts.pop(name, None)
        overrides = (*overrides, *edit.overrides())
    return replace(state, texts=texts, overrides=overrides)


def with_override(state: WizardState, key: str, text: str, status: DraftStatus) -> WizardState:
    """Return the state with any key set to a value as it is typed in YAML.

    Raises:
        RecipeError: it is no value.
    """
    value = read_typed(text).value
    recipe = status.recipe
    before = recipe.get(key) if recipe is not None else None
    return with_edits(
        state, [RecipeEdit(key, before, value, absent=recipe is None or not recipe.has(key))], status
    )


def without_override(state: WizardState, key: str) -> WizardState:
    """Return the state without overrides of a key."""
    return replace(state, overrides=_without(state.overrides, key))


def own_values(state: WizardState) -> Mapping[str, str]:
    """Return the keys that overrides set, with their texts; keys of fields are not in it."""
    pairs = (text.lstrip("+~").partition("=") for text in state.overrides)
    return {key: value for key, _, value in pairs}


def with_chosen(state: WizardState, chosen: ChosenValues, status: DraftStatus) -> WizardState:
    """Return the state whose recipe has these values and no other changes: what an editor made of it.

    Raises:
        RecipeError: a removed key cannot be expressed.
    """
    kept = {
        name: text
        for name, text in state.texts.items()
        if not field_of(name).of_recipe and name not in ("nodes", "gpus_per_node")
    }
    return with_edits(replace(state, texts=kept, overrides=(), both=frozenset()), chosen.edits(), status)


def _without(overrides: tuple[str, ...], key: str) -> tuple[str, ...]:
    return tuple(text for text in overrides if text.lstrip("+~").partition("=")[0] != key)


def _text(value: object) -> str:
    """Return a value as a field has it; "" for one that no field can hold."""
    if isinstance(value, bool):
        return ON if value else OFF
    return str(value) if isinstance(value, str | int | float) else ""
