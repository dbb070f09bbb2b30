"""The course of the learning rate, as PyTorch's schedulers and as Megatron's settings have it.

DTensor's worker makes a chain of the list at `policy.scheduler` and takes one step of it in each step of
the training (nemo_rl/models/automodel/setup.py:824, dtensor_policy_worker_v2.py:555).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from recipes.planning import RecipeEdit
from recipes.planning.setup import Setup, value_at, whole

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe

Course = Literal["constant", "linear", "cosine"]
LIST_KEY = "policy.scheduler"
MEGATRON_KEY = "policy.megatron_cfg.scheduler"
_PREFIX = "torch.optim.lr_scheduler."
_CLASSES: dict[str, Course] = {
    "ConstantLR": "constant",
    "LinearLR": "linear",
    "CosineAnnealingLR": "cosine",
}
_FOREVER = 10_000_000_000
"""Steps that a constant factor holds for, as NeMo-RL's own recipes write it."""
_START_FACTOR = 0.1


@dataclass(frozen=True, slots=True)
class Schedule:
    """Course of the learning rate; None where the recipe has one that is none of these."""

    course: Course | None
    warmup: int
    """Steps until the rate is reached."""
    start_factor: float = _START_FACTOR
    """Share of the rate at the first step."""


def schedule_of(recipe: EffectiveRecipe) -> Schedule:
    """Return the schedule of a recipe."""
    if Setup.of(recipe).policy.backend == "megatron":
        style = value_at(recipe, f"{MEGATRON_KEY}.lr_decay_style")
        course = style if style in get_args(Course) else None
        return Schedule(course, max(whole(value_at(recipe, f"{MEGATRON_KEY}.lr_warmup_iters")) or 0, 0))
    return _of_list(value_at(recipe, LIST_KEY))


def schedule_edits(
    recipe: EffectiveRecipe,
    *,
    course: Course | None = None,
    warmup: int | None = None,
    steps: int | None = None,
) -> tuple[RecipeEdit, ...]:
    """Return the edits after which a recipe has another course, or warms up for so many steps.

    `steps` are those of the run, at which the rate has fallen; None: the recipe's.
    """
    present = schedule_of(recipe)
    course = course or present.course or "constant"
    warmup = present.warmup if warmup is None else warmup
    steps = steps or whole(recipe.get("distillation.max_num_steps")) or warmup + 1
    if Setup.of(recipe).policy.backend == "megatron":
        values: dict[str, object] = {
            f"{MEGATRON_KEY}.lr_decay_style": course,
            f"{MEGATRON_KEY}.lr_warmup_iters": warmup,
            f"{MEGATRON_KEY}.lr_decay_iters": max(steps, warmup + 1),
        }
    else:
        values = {LIST_KEY: _chain(course, warmup, max(steps - warmup, 1), present.start_factor)}
    return tuple(
        RecipeEdit(key, recipe.get(key), value, absent=not recipe.has(key))
        for key, value in values.items()
        if recipe.get(key) != value
    )


def _of_list(value: object) -> Schedule:
    if value is None:
        return Schedule("constant", 0)
    entries = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    named = [item for item in entries if "name" in item]
    if len(named) == 1:
        return Schedule(_course(named[0]), 0)
    first = _kwargs(named[0]) if len(named) == 2 and _course(named[0]) == "linear" else {}
    rises = whole(first.get("total_iters"))
    if rises is None or first.get("end_factor", 1.0) != 1.0:
        return Schedule(None, 0)
    factor = first.get("start_factor", _START_FACTOR)
    return Schedule(
        _course(named[1]), rises, float(factor) if isinstance(factor, int | float) else _START_FACTOR
    )


def _course(entry: dict[str, Any]) -> Course | None:
    return _CLASSES.get(str(entry.get("name")).removeprefix(_PREFIX))


def _kwargs(entry: dict[str, Any]) -> dict[str, Any]:
    kwargs = entry.get("kwargs")
    return kwargs if isinstance(kwargs, dict) else {}


def _chain(course: Course, warmup: int, rest: int, start_factor: float) -> list[dict[str, Any]]:
    later = {
        "constant": _entry("ConstantLR", factor=1.0, total_iters=_FOREVER),
        "linear": _entry("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=rest),
        "cosine": _entry("CosineAnnealingLR", T_max=rest, eta_min=0.0),
    }[course]
    if not warmup:
        return [later, {"milestones": []}]
    first = _entry("LinearLR", start_factor=start_factor, end_factor=1.0, total_iters=warmup)
    return [first, later, {"milestones": [warmup]}]


def _entry(name: str, **kwargs: object) -> dict[str, Any]:
    return {"name": f"{_PREFIX}{name}", "kwargs": kwargs}
