"""Settings of the rehearsal, read from a recipe; refuses what NeMo-RL refuses, in its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from .language import PROMPT_LENGTH, VOCABULARY
from .student import Divergence

if TYPE_CHECKING:
    from types import EllipsisType

Value = TypeVar("Value", bool, int, float, str)

MAX_LENGTH = 64
"""Longest sequence of the stand-ins, prompt included, in characters."""
RATE_SCALE = 1000.0
"""Recipes give learning rates for models of 10^9 weights; the student here has 10^4."""


class RehearsalError(Exception):
    """Failure that the user can act on: what happened, where, what to do."""

    def __init__(self, what: str, where: str = "", fix: str = "") -> None:
        super().__init__("\n".join([what, *(f"  {line}" for line in (where and f"in {where}", fix) if line)]))


@dataclass(frozen=True, slots=True)
class Saving:
    """`checkpointing:` of the recipe."""

    enabled: bool
    folder: Path
    period: int
    keep_top_k: int | None
    metric: str | None
    higher_is_better: bool
    optimizer: bool
    must_save_by_s: float
    """Seconds after the first step's start; infinite if the recipe sets none."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Validation: its period, number of prompts, and number of printed samples."""

    period: int
    at_start: bool
    at_end: bool
    samples: int
    printed: int


@dataclass(frozen=True, slots=True)
class RehearsalSettings:
    """Settings that the rehearsal reads from a recipe. `batch`: sequences per optimizer update."""

    recipe: dict[str, Any]
    student: str
    teacher: str
    prompts: int
    generations: int
    steps: int
    epochs: int
    shuffle: bool
    validation: Validation
    seed: int
    divergence: Divergence
    top_k: int
    rate: float
    batch: int
    length: int
    log_dir: Path
    saving: Saving
    gpus: int
    notes: tuple[str, ...]
    """Settings that were reduced to the stand-ins' size, for the log."""


class _Recipe:
    """Typed access to a nested mapping; every error names the file and the key."""

    def __init__(self, values: dict[str, Any], file: str) -> None:
        self.values = values
        self.file = file

    def error_at(self, key: str, what: str, fix: str = "") -> RehearsalError:
        return RehearsalError(what, f"{self.file}, {key}", fix)

    def find(self, key: str) -> tuple[bool, Any]:
        value: Any = self.values
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return False, None
            value = value[part]
        return True, value

    def get(self, key: str, kind: type[Value], default: Value | EllipsisType = ...) -> Value:
        """Return a value as its type.

        Raises:
            RehearsalError: it is missing, not resolved or not of the type.
        """
        present, value = self.find(key)
        if not present:
            if default is ...:
                raise self.error_at(key, f"Field required: {key}", "Add this key to the recipe.")
            return default
        if isinstance(value, str) and "${" in value:
            raise self.error_at(key, f"Not resolved: {value}", "Give the effective recipe, without ${…}.")
        try:
            return _convert(value, kind)
        except ValueError:
            what = f"Input should be a valid {kind.__name__}, not {value!r}"
            raise self.error_at(key, what, "Correct the value.") from None

    def optional(self, key: str, kind: type[Value]) -> Value | None:
        """Return None where the key is missing or null."""
        return None if self.find(key)[1] is None else self.get(key, kind)

    def count(self, key: str, default: int | EllipsisType = ..., *, low: int = 1) -> int:
        """Return a whole number.

        Raises:
            RehearsalError: it is missing, or smaller than `low`.
        """
        value = self.get(key, int, default)
        if value < low:
            raise self.error_at(key, f"{key} must be at least {low}, got {value}")
        return value


def _convert(value: object, kind: type[Value]) -> Value:
    """Convert as pydantic does: text to numbers, whole floats to integers, nothing to or from bool."""
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    if kind not in (int, float) or isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(value)
    number = float(value)
    if kind is int and not number.is_integer():
        raise ValueError(value)
    return kind(number)


def load_recipe(file: Path, overrides: list[str]) -> dict[str, Any]:
    """Read an effective recipe and apply `KEY=VALUE` overrides (a leading `+` or `++` may add the key).

    Raises:
        RehearsalError: the recipe or an override cannot be read.
    """
    try:
        recipe = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RehearsalError(f"Cannot read the recipe: {error.strerror}", str(file)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RehearsalError("The recipe is not YAML: " + " ".join(str(error).split()), str(file)) from None
    if not isinstance(recipe, dict):
        raise RehearsalError("Config must be a Dictionary Config", str(file))
    if "defaults" in recipe:
        raise RehearsalError("The recipe has parents (defaults:)", str(file), "Give the effective recipe.")
    for override in overrides:
        _override(recipe, override)
    return recipe


def _override(recipe: dict[str, Any], override: str) -> None:
    match = re.fullmatch(r"(\+{0,2})([\w.-]+)=(.*)", override, re.DOTALL)
    if match is None:
        raise RehearsalError(f"Failed to parse Hydra overrides: {override}", fix="Write KEY=VALUE.")
    adds, key, text = match.groups()
    *parents, last = key.split(".")
    target: Any = recipe
    for part in parents:
        if adds and isinstance(target, dict):
            target.setdefault(part, {})
        target = target.get(part) if isinstance(target, dict) else None
    if not isinstance(target, dict) or (not adds and last not in target):
        raise RehearsalError(f"Could not override '{key}'.", fix=f"To append to your config use +{override}")
    try:
        target[last] = yaml.safe_load(text)
    except yaml.YAMLError:
        raise RehearsalError(f"Error merging override {override}", fix="Quote the value.") from None


def read_settings(recipe: dict[str, Any], file: str) -> RehearsalSettings:
    """Check a recipe and return its settings for the rehearsal.

    Raises:
        RehearsalError: NeMo-RL would refuse the recipe, or the stand-ins cannot follow it.
    """
    read = _Recipe(recipe, file)
    notes: list[str] = []
    prompts = read.count("distillation.num_prompts_per_step")
    generations = read.count("distillation.num_generations_per_prompt", 1)
    return RehearsalSettings(
        recipe=recipe,
        student=read.get("policy.model_name", str),
        teacher=read.get("teacher.model_name", str),
        prompts=prompts,
        generations=generations,
        steps=read.count("distillation.max_num_steps", low=0),
        epochs=read.count("distillation.max_num_epochs", 10, low=0),
        shuffle=read.get("data.shuffle", bool, True),
        validation=_validation(read),
        seed=read.count("distillation.seed", 42, low=0),
        divergence=_divergence(read),
        top_k=_top_k(read, notes),
        rate=read.get("policy.optimizer.kwargs.lr", float) * RATE_SCALE,
        batch=_batch(read, prompts * generations),
        length=_length(read, notes),
        log_dir=Path(read.get("logger.log_dir", str)),
        saving=_saving(read),
        gpus=read.count("cluster.num_nodes") * read.count("cluster.gpus_per_node"),
        notes=tuple(notes),
    )


def _validation(read: _Recipe) -> Validation:
    batch = read.count("distillation.val_batch_size", 64)
    samples = read.count("distillation.max_val_samples", 512)
    validation = Validation(
        period=read.get("distillation.val_period", int, 20),
        at_start=read.get("distillation.val_at_start", bool, False),
        at_end=read.get("distillation.val_at_end", bool, False),
        samples=-(-samples // batch) * batch,
        printed=read.get("logger.num_val_samples_to_print", int, 5),
    )
    enabled = validation.period > 0 or validation.at_start or validation.at_end
    if enabled and read.find("data.validation") == (True, None):
        what = "AssertionError: Validation dataset is required if validation is enabled"
        raise read.error_at("data.validation", what, "Give a data set, or set val_period: 0.")
    return validation


def _divergence(read: _Recipe) -> Divergence:
    kind = read.get("loss_fn.kl_type", str, "mixed")
    weight = read.get("loss_fn.mixed_kl_weight", float, 0.5)
    if kind not in ("forward", "reverse", "mixed"):
        raise read.error_at(
            f"loss_fn.kl_type: {kind}", "AssertionError: Invalid KL type", "Use forward, reverse or mixed."
        )
    if not 0 <= weight <= 1:
        raise read.error_at(
            f"loss_fn.mixed_kl_weight: {weight}",
            "AssertionError: Invalid mixed KL weight",
            "Use a number from 0 to 1.",
        )
    return Divergence(kind, weight, read.get("loss_fn.zero_outside_topk", bool, False))


def _top_k(read: _Recipe, notes: list[str]) -> int:
    key = "distillation.topk_logits_k"
    requested = read.get(key, int, 64)
    if requested < 1:
        raise read.error_at(key, f"ValueError: topk must be positive, got {requested}.", "Use 1 or more.")
    if requested > len(VOCABULARY):
        notes.append(f"{key} {requested} is cut to {len(VOCABULARY)}, the stand-ins' vocabulary")
    return min(requested, len(VOCABULARY))


def _length(read: _Recipe, notes: list[str]) -> int:
    key = "policy.max_total_sequence_length"
    requested = read.count(key)
    if requested <= PROMPT_LENGTH:
        raise read.error_at(
            key,
            f"The stand-ins' prompts have {PROMPT_LENGTH} tokens, which leaves none of {requested}",
            "Raise it.",
        )
    if requested > MAX_LENGTH:
        notes.append(f"{key} {requested} is cut to {MAX_LENGTH}")
    return min(requested, MAX_LENGTH)


def _batch(read: _Recipe, total: int) -> int:
    key = "policy.train_global_batch_size"
    batch = read.count(key)
    if total % batch:
        raise read.error_at(
            key,
            f"AssertionError: Total batch size ({total}) is not a multiple of batch_size ({batch})",
            "Let it divide num_prompts_per_step x num_generations_per_prompt.",
        )
    return batch


def _saving(read: _Recipe) -> Saving:
    metric = read.optional("checkpointing.metric_name", str)
    if metric is not None and not metric.startswith(("val:", "train:")):
        raise read.error_at(
            "checkpointing.metric_name",
            f"AssertionError: metric_name={metric} must start with 'val:' or 'train:'",
            "Write for example val:accuracy.",
        )
    return Saving(
        enabled=read.get("checkpointing.enabled", bool),
        folder=Path(read.get("checkpointing.checkpoint_dir", str)),
        period=read.count("checkpointing.save_period"),
        keep_top_k=read.optional("checkpointing.keep_top_k", int),
        metric=metric,
        higher_is_better=read.get("checkpointing.higher_is_better", bool, True),
        optimizer=read.get("checkpointing.save_optimizer", bool, True),
        must_save_by_s=_seconds(read),
    )


def _seconds(read: _Recipe) -> float:
    key = "checkpointing.checkpoint_must_save_by"
    _, value = read.find(key)
    if value is None:
        return float("inf")
    if not re.fullmatch(r"\d+:\d+:\d+:\d+", str(value)):
        parts = len(str(value).split(":"))
        raise read.error_at(
            key,
            f"ValueError: not enough values to unpack (expected 4, got {parts})"
            if parts < 4
            else f"ValueError: not a time: {value}",
            "Write DD:HH:MM:SS in quotes.",
        )
    days, hours, minutes, seconds = map(int, str(value).split(":"))
    return ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds
