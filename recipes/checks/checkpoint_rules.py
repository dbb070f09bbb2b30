"""Rules on checkpoints: C18 to C21. They predict failures at the first save, hours after the start."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.planning.setup import whole
from recipes.planning.sizes import must_save_by

if TYPE_CHECKING:
    from collections.abc import Iterator


_SETUP_S, _SAVE_S, _STEP_S = 1200.0, 300.0, 300.0
"""Usual durations of set-up (10 to 30 minutes), of a save and of a step, where nothing was measured."""
_METRICS = {"val": ("accuracy", "avg_length"), "train": ("loss", "grad_norm", "lr")}
_OF_TRAINING = (
    *("loss", "grad_norm", "lr", "wd", "mean_prompt_length", "total_num_tokens", "global_valid_seqs"),
    *("global_valid_toks", "num_valid_samples", "num_unmasked_tokens", "mean_gen_tokens_per_sample"),
)
_SAVE_BY = re.compile(r"\s*\d+\s*:\s*\d+\s*:\s*\d+\s*:\s*\d+\s*")
_DISTILLATION = "algorithms/distillation.py"


def _save_by(context: Context) -> Iterator[Finding]:
    """C18."""
    key = "checkpointing.checkpoint_must_save_by"
    value = context.get(key)
    if value is None:
        return
    if isinstance(value, str) and _SAVE_BY.fullmatch(value):
        yield from _save_in_time(context, value)
        return
    fixes = []
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        text = "unquoted, YAML reads it as a number in base 60"
        fixes.append(context.fix(key, _clock(value)))
    else:
        text = "it must be DD:HH:MM:SS, quoted"
        parts = str(value).replace("-", ":").split(":")
        if all(part.strip().isdigit() for part in parts) and len(parts) < 4:
            fixes.append(
                context.fix(key, ":".join(["00"] * (4 - len(parts)) + [part.zfill(2) for part in parts]))
            )
        elif all(part.strip().isdigit() for part in parts) and len(parts) == 4:
            fixes.append(context.fix(key, ":".join(part.zfill(2) for part in parts)))
    fixes.append(context.fix(key, None))
    yield fail(f"{key} is {shown(value)}: {text}", key, fixes=fixes)


def _save_in_time(context: Context, value: str) -> Iterator[Finding]:
    """Compare with the job's limit; NeMo-RL's clock starts after set-up."""
    limit = context.inputs.request.time_s
    days, hours, minutes, seconds = (int(field) for field in value.split(":"))
    wanted = days * 86400 + hours * 3600 + minutes * 60 + seconds
    if limit is None or wanted + _SETUP_S < limit:
        return
    key = "checkpointing.checkpoint_must_save_by"
    fitting = must_save_by(limit, setup_s=_SETUP_S, save_s=_SAVE_S, step_s=_STEP_S)
    message = f"{key} is {value}, counted from the end of set-up: the job ends before it would save"
    fixes = [context.fix(key, fitting)] if fitting else []
    yield warn(message, key, fixes=fixes, foretells="CANCELLED DUE TO TIME LIMIT, without a checkpoint")


def _clock(number: int) -> str:
    """Return a base-60 number as the fields that YAML made it from."""
    fields = [number // 216000, number // 3600 % 60, number // 60 % 60, number % 60]
    return ":".join(f"{field:02d}" for field in fields)


def _metric_form(context: Context) -> Iterator[Finding]:
    """C19."""
    key = "checkpointing.metric_name"
    value = context.get(key)
    if not isinstance(value, str) or context.get("checkpointing.enabled") is not True:
        return
    if not value.startswith(("val:", "train:")):
        fixes = [context.fix(key, f"val:{value}" if value in _METRICS["val"] else "val:accuracy")]
        yield fail(
            f"{key} is {value}, it must start with val: or train:",
            key,
            fixes=fixes,
            foretells=f"metric_name={value} must start with 'val:' or 'train:'",
        )


def _metric(context: Context) -> Iterator[Finding]:
    """C20."""
    key = "checkpointing.metric_name"
    value = context.get(key)
    if not isinstance(value, str) or context.get("checkpointing.enabled") is not True:
        return
    kind, _, name = value.partition(":")
    if kind == "train":
        yield from _train_metric(context, key, name)
    elif kind == "val" and name not in _METRICS["val"] and context.gym:
        need = "NeMo-Gym adds metrics of its own; the log of a first run lists them."
        yield undecided(f"whether validation has a metric '{name}'", need, key)
    elif kind == "val" and name not in _METRICS["val"]:
        fixes = [context.fix(key, "val:accuracy")]
        yield fail(
            f"validation has no metric '{name}': only accuracy and avg_length",
            key,
            fixes=fixes,
            foretells=f"Metric {name} not found in val metrics",
        )
    elif kind == "val" and not context.validates:
        yield warn(
            f"{key} is {value}, but validation is off",
            key,
            fixes=[context.fix(key, "train:loss")],
            foretells="You asked to save checkpoints based on … but no val metrics were collected.",
        )
    elif kind == "val" and (period := whole(context.get("distillation.val_period"))):
        save = whole(context.get("checkpointing.save_period"))
        if save and period > 0 and save % period and period % save:
            yield warn(
                f"checkpoints at multiples of {save} seldom meet validations at multiples of {period}",
                "checkpointing.save_period",
                "distillation.val_period",
                fixes=[context.fix("checkpointing.save_period", period)],
                foretells="You asked to save checkpoints based on … but no val metrics were collected.",
            )


def _train_metric(context: Context, key: str, name: str) -> Iterator[Finding]:
    """Find a name that is nearly a metric's; rollouts add others, which are not listed."""
    near = get_close_matches(name[:80], _OF_TRAINING, 1, 0.75) if name not in _OF_TRAINING else []
    if near:
        yield warn(
            f"training probably has no metric '{name}'; it has {near[0]}",
            key,
            fixes=[context.fix(key, f"train:{near[0]}")],
            foretells=f"Metric {name} not found in train metrics",
        )


def _save_period(context: Context) -> Iterator[Finding]:
    """C21."""
    key = "checkpointing.save_period"
    value = whole(context.get(key))
    if value is not None and value < 1:
        yield fail(f"{key} is {value}", key, fixes=[context.fix(key, 10)])


RULES = (
    Rule(
        "C18",
        "Form of checkpoint_must_save_by",
        _save_by,
        "ValueError: not enough values to unpack (expected 4) (after set-up)",
        "utils/timer.py",
    ),
    Rule(
        "C19",
        "Form of the checkpoint metric",
        _metric_form,
        "metric_name=… must start with 'val:' or 'train:' (at the first save)",
        _DISTILLATION,
    ),
    Rule(
        "C20",
        "The checkpoint metric exists",
        _metric,
        "Metric … not found in … metrics (at the first save)",
        _DISTILLATION,
    ),
    Rule(
        "C21",
        "A save period",
        _save_period,
        "ZeroDivisionError: integer modulo by zero (in the first step)",
        _DISTILLATION,
    ),
)
