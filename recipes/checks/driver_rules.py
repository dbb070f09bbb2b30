"""Rules on the driver and on runs that end before they begin: C70, C76, C77, C79, C80."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.checkout import PACKERS
from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.planning.setup import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

_DISTILLATION = "algorithms/distillation.py"
_NAMES = {
    "cross-tokenizer": "cross-tokenizer distillation",
    "off-policy": "off-policy distillation",
    "nemo-gym": "distillation with NeMo-Gym",
    "distillation": "on-policy distillation",
}


def has_three_pools(context: Context) -> bool:
    """Tell whether the teacher has GPUs of its own, as in forks."""
    return bool(context.three_pools) or (context.checkout is not None and context.checkout.has_teacher_pool)


def _driver(context: Context) -> Iterator[Finding]:
    """C70."""
    driver = context.driver
    checkout = context.checkout
    name = _NAMES.get(driver.kind, "another algorithm")
    if driver.is_on_policy:
        sources = checkout is not None and checkout.has_sources
        if driver.script is None and sources:
            yield warn(f"this recipe is for {name} ({driver.reason})", "env.should_use_nemo_gym")
        elif has_three_pools(context):
            where = context.three_pools or "the driver"
            message = (
                f"whether the GPUs suffice: {where} gives the teacher GPUs of its own, as no release does"
            )
            yield undecided(message, "Compare the sizes with the driver's.", "teacher")
        return
    use = (
        f"Use its driver, {driver.script}."
        if driver.script
        else "Use its driver, with a checkout that has it."
    )
    yield undecided(f"this recipe is for {name} ({driver.reason})", use, "teachers", "teacher")


def _packer(context: Context) -> Iterator[Finding]:
    """C76."""
    known = context.checkout.packers if context.checkout is not None else PACKERS
    for side in context.sides:
        key = side.key("sequence_packing.algorithm")
        value = context.get(key)
        if not side.packing or not context.has(key) or (isinstance(value, str) and value.upper() in known):
            continue
        names = ", ".join(sorted(name.lower() for name in known))
        yield fail(
            f"{key} is {shown(value)} (expected {names})",
            key,
            fixes=[context.fix(key, "modified_first_fit_decreasing")],
            foretells=f"Unknown packing algorithm: {value}",
        )


def _second_period(context: Context) -> Iterator[Finding]:
    """C77."""
    key = "checkpointing.ft_save_period"
    if whole(context.get(key)) == 0:
        yield fail(f"{key} is 0", key, fixes=[context.fix(key, None)])


def _loader_sizes(context: Context) -> Iterator[Finding]:
    """C79."""
    sizes = ["distillation.num_prompts_per_step"]
    if context.validates and not context.gym:
        sizes.append("distillation.val_batch_size")
    for key in sizes:
        value = whole(context.get(key))
        if value is not None and value < 1:
            yield fail(
                f"{key} is {value}",
                key,
                fixes=[context.fix(key, 64)],
                foretells=f"batch_size should be a positive integer value, but got batch_size={value}",
            )


def _no_steps(context: Context) -> Iterator[Finding]:
    """C80."""
    for key, default in (("distillation.max_num_steps", 1000), ("distillation.max_num_epochs", 10)):
        value = whole(context.get(key, default))
        if value is not None and value < 1:
            yield fail(
                f"{key} is {value}: the run would end with exit code 0, without a step",
                key,
                fixes=[context.fix(key, default)],
            )


DRIVER = Rule(
    "C70", "The driver that the recipe is for", _driver, "the driver of another algorithm", "examples/"
)
RULES = (
    DRIVER,
    Rule(
        "C76",
        "Packing algorithms",
        _packer,
        "Unknown packing algorithm",
        "data/packing/algorithms.py",
    ),
    Rule(
        "C77",
        "A second save period",
        _second_period,
        "ZeroDivisionError: integer modulo by zero (in the first step)",
        _DISTILLATION,
    ),
    Rule(
        "C79",
        "Batches of the data loaders",
        _loader_sizes,
        "batch_size should be a positive integer value",
        "torch, dataloader.py",
    ),
    Rule(
        "C80", "At least one step", _no_steps, "nothing: training ends before its first step", _DISTILLATION
    ),
)
