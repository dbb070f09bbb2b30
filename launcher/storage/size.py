"""Bytes that a run will write, from its effective recipe and the facts about its student. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recipes.planning.setup import whole

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe
    from recipes.models.facts import ModelFacts, UnknownModel

WEIGHTS, ADAM, BF16 = 4, 8, 2
"""Bytes a parameter: fp32 weights, Adam's two moments in fp32, and a copy in bf16.

DTensor's checkpoints hold the weights as the optimizer steps them, in fp32, and the optimizer's state
(nemo_rl/algorithms/distillation.py:1056); Megatron's hold bf16 weights besides the fp32 ones."""
_LATEST = 1


@dataclass(frozen=True, slots=True)
class CheckpointSize:
    """Size of a run's checkpoints; None where it is unknown."""

    model: str
    """The student, as the recipe names it."""
    bytes: int | None
    """One checkpoint."""
    kept: int | None
    """The most that are kept; 0 where none is saved, None where their number is unknown."""
    saves: int | None
    """Saves during the run."""
    optimizer: bool = True
    """Whether the optimizer's state is saved."""
    unknown: str = ""
    """Why the size is unknown."""

    @property
    def peak_bytes(self) -> int | None:
        """The most at one time: a new checkpoint is complete before an old one is removed."""
        if self.bytes is None or self.kept is None:
            return None
        more = self.kept + 1 if self.kept else 0
        return self.bytes * (more if self.saves is None else min(more, self.saves))

    def in_words(self) -> str:
        """Return the size as a sentence; empty where no checkpoint is saved."""
        if self.kept == 0:
            return ""
        if self.bytes is None:
            return f"the size of a checkpoint of {self.model} is unknown: {self.unknown}"
        adam = " with Adam" if self.optimizer else ""
        text = f"a checkpoint of {self.model}{adam} is about {gigabytes(self.bytes)}"
        if self.kept is None:
            return f"{text}; all of them are kept"
        if self.kept == 1:
            return f"{text}; one is kept"
        kept = f"{text}; up to {self.kept} are kept ({gigabytes(self.bytes * self.kept)})"
        peak = self.peak_bytes
        return (
            f"{kept}, one more while saving" if peak is not None and peak > self.bytes * self.kept else kept
        )


def checkpoint_size(recipe: EffectiveRecipe, student: ModelFacts | UnknownModel) -> CheckpointSize:
    """Return the size of the checkpoints that a recipe's run saves."""
    model = str(recipe.get("policy.model_name", "the student"))
    optimizer = recipe.get("checkpointing.save_optimizer", True) is not False
    size, unknown = _bytes(recipe, student, optimizer=optimizer)
    saves = _saves(recipe)
    return CheckpointSize(model, size, _kept(recipe, saves), saves, optimizer, unknown)


def saves_checkpoints(recipe: EffectiveRecipe) -> bool:
    """Return whether a run may save any."""
    return _saves(recipe) != 0


def _bytes(
    recipe: EffectiveRecipe, student: ModelFacts | UnknownModel, *, optimizer: bool
) -> tuple[int | None, str]:
    """Return the bytes of one checkpoint, and why they are unknown."""
    from recipes.models.facts import UnknownModel

    if isinstance(student, UnknownModel):
        return None, student.reason
    params = student.params
    if params is None:
        return None, "its layers are of different kinds"
    if recipe.get("policy.dtensor_cfg.lora_cfg.enabled") is True or recipe.get(
        "policy.megatron_cfg.peft.enabled"
    ):
        return None, "only the adapters are saved"
    megatron = recipe.get("policy.megatron_cfg.enabled") is True
    key = "policy.megatron_cfg.optimizer.optimizer" if megatron else "policy.optimizer.name"
    name = str(recipe.get(key) or "adam")
    if optimizer and "adam" not in name.lower():
        return None, f"the state of the optimizer {name} is unknown"
    each = BF16 if megatron else WEIGHTS
    if optimizer:
        each += ADAM + (WEIGHTS if megatron else 0)
    if recipe.get("checkpointing.save_consolidated") is True:
        each += WEIGHTS
    return params * each, ""


def _saves(recipe: EffectiveRecipe) -> int | None:
    """Return how often a run saves; None where that is unknown."""
    if recipe.get("checkpointing.enabled") is not True:
        return 0
    steps = whole(recipe.get("distillation.max_num_steps"))
    period = whole(recipe.get("checkpointing.save_period"))
    if steps is None or period is None or steps < 1 or period < 1:
        return None
    recovery = whole(recipe.get("checkpointing.ft_save_period"))
    count = steps // period
    if recovery is not None and recovery > 0:
        # Inclusion and exclusion: steps of both periods are saved once.
        count += steps // recovery - steps // _common_multiple(period, recovery)
        ends = steps % period and steps % recovery
    else:
        ends = steps % period
    return count + bool(ends)


def _common_multiple(first: int, second: int) -> int:
    from math import lcm

    return lcm(first, second)


def _kept(recipe: EffectiveRecipe, saves: int | None) -> int | None:
    """Return the most checkpoints that are kept (nemo_rl/utils/checkpoint.py, remove_old_checkpoints)."""
    if saves == 0:
        return 0
    best = whole(recipe.get("checkpointing.keep_top_k"))
    recovery = whole(recipe.get("checkpointing.ft_keep_latest_k"))
    if best is None:
        return saves
    # The latest is kept besides the best ones: by a metric, or off the period, it need not be among them.
    steps, period = (
        whole(recipe.get("distillation.max_num_steps")),
        whole(recipe.get("checkpointing.save_period")),
    )
    aligned = bool(steps and period and steps % period == 0)
    by_metric = recipe.get("checkpointing.metric_name") is not None
    kept = best + (recovery or 0) + (_LATEST if (by_metric or not aligned) and not recovery else 0)
    return kept if saves is None else min(kept, saves)


def gigabytes(size: int | float) -> str:
    """Return bytes for people, in units of 1000: `20.6 GB`, `180 MB`."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            value = int(size / factor * 10) / 10
            return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"
    return f"{size:.0f} B"
