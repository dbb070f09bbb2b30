"""Fields whose value stands for several keys of a recipe, or for a key and a variable of the job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from launcher.fields.schedules import Course, schedule_edits, schedule_of
from recipes.planning import RecipeEdit, Setup, overrides_of

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe

WANDB_KEY = "logger.wandb_enabled"
WANDB_VARIABLE = "WANDB_MODE"
"""The variable by which wandb chooses where metrics go; `wandb.init` gets no mode
(nemo_rl/utils/logger.py:209)."""
_COLOCATED = "policy.generation.colocated"
_RESOURCES = f"{_COLOCATED}.resources"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Effect of a field's value: edits of the recipe, and variables of the job as NAME=VALUE."""

    edits: tuple[RecipeEdit, ...] = ()
    env: tuple[str, ...] = ()

    def overrides(self) -> tuple[str, ...]:
        """Return the edits as overrides."""
        return overrides_of(self.edits)


@dataclass(frozen=True, slots=True)
class FieldContext:
    """Other choices that a field's effect depends on."""

    nodes: int | None = None
    """Nodes of the job; None where the recipe decides."""
    gpus_per_node: int | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Valid texts of other fields, by name."""

    def count(self, name: str) -> int | None:
        """Return the whole number that another field was given."""
        text = self.texts.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() else None


@dataclass(frozen=True, slots=True)
class CompoundField:
    """Reading and setting of a field."""

    text: Callable[[EffectiveRecipe], str]
    """Present value; empty for one that the field has no word for."""
    changes: Callable[[EffectiveRecipe, str, FieldContext], FieldChange]
    keys: tuple[str, ...]
    """Keys that it may set."""


def edit_of(recipe: EffectiveRecipe, key: str, value: object) -> RecipeEdit:
    """Return the edit of one value."""
    return RecipeEdit(key, recipe.get(key), value, absent=not recipe.has(key))


def _generation(recipe: EffectiveRecipe) -> str:
    return "colocated" if Setup.of(recipe).colocated else "split"


def _split(recipe: EffectiveRecipe, text: str, context: FieldContext) -> FieldChange:
    """Change where generation runs; a split that is not legal yet gets half of the GPUs, or one node."""
    setup = Setup.of(recipe)
    if text == "colocated":
        return FieldChange((edit_of(recipe, f"{_COLOCATED}.enabled", value=True),))
    nodes, gpus = context.nodes or setup.nodes, context.gpus_per_node or setup.gpus_per_node
    present_nodes, present_gpus = setup.generation_nodes, setup.generation_gpus_per_node or 0
    values: dict[str, object] = {f"{_COLOCATED}.enabled": False}
    if nodes == 1:
        if not 0 < present_gpus < gpus:
            values[f"{_RESOURCES}.gpus_per_node"] = max(gpus // 2, 1)
        if present_nodes not in (None, 1):
            values[f"{_RESOURCES}.num_nodes"] = None
    else:
        if not 0 < (present_nodes or 0) < nodes:
            values[f"{_RESOURCES}.num_nodes"] = 1
        values[f"{_RESOURCES}.gpus_per_node"] = gpus
    return FieldChange(tuple(edit_of(recipe, key, value) for key, value in values.items()))


def _wandb(recipe: EffectiveRecipe) -> str:
    return "online" if recipe.get(WANDB_KEY) is True else "off"


def _set_wandb(recipe: EffectiveRecipe, text: str, _context: FieldContext) -> FieldChange:
    edit = edit_of(recipe, WANDB_KEY, text != "off")
    return FieldChange((edit,), (f"{WANDB_VARIABLE}={text}",) if text != "off" else ())


def _schedule(recipe: EffectiveRecipe) -> str:
    return schedule_of(recipe).course or ""


def _set_schedule(recipe: EffectiveRecipe, text: str, context: FieldContext) -> FieldChange:
    return _scheduled(recipe, text, context.count("warmup"), context)


def _scheduled(
    recipe: EffectiveRecipe, course: str | None, warmup: int | None, context: FieldContext
) -> FieldChange:
    steps = context.count("steps")
    edits = schedule_edits(recipe, course=cast("Course | None", course), warmup=warmup, steps=steps)
    return FieldChange(edits)


def _warmup(recipe: EffectiveRecipe) -> str:
    schedule = schedule_of(recipe)
    return str(schedule.warmup) if schedule.course is not None else ""


def _set_warmup(recipe: EffectiveRecipe, text: str, context: FieldContext) -> FieldChange:
    return _scheduled(recipe, context.texts.get("schedule"), int(text), context)


_SCHEDULE_KEYS = ("policy.scheduler", "policy.megatron_cfg.scheduler.lr_decay_style")
COMPOUND: dict[str, CompoundField] = {
    "generation": CompoundField(_generation, _split, (f"{_COLOCATED}.enabled",)),
    "wandb": CompoundField(_wandb, _set_wandb, (WANDB_KEY,)),
    "schedule": CompoundField(_schedule, _set_schedule, _SCHEDULE_KEYS),
    "warmup": CompoundField(_warmup, _set_warmup, _SCHEDULE_KEYS),
}
