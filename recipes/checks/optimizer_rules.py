"""Rules on optimizers and learning rates: C68 of DTensor, C92 of Megatron."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.checks.torch_classes import OPTIMIZERS, REQUIRED, SCHEDULERS
from recipes.planning.setup import finite, whole

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPTIMIZER, _SCHEDULER = "policy.optimizer", "policy.scheduler"
_TORCH, _TORCH_SCHEDULER = "torch.optim.", "torch.optim.lr_scheduler."
_MEGATRON = "policy.megatron_cfg"
_DECAYS = ("constant", "linear", "cosine", "inverse-square-root", "WSD")
"""Styles of Megatron-Core's OptimizerParamScheduler."""
_NEAR = {"adamw": "adam", "torch.optim.adamw": "adam", "torch.optim.adam": "adam"}
"""Optimizers that Megatron-Core has under another name: its adam decays weights as AdamW does."""


def _dtensor(context: Context) -> Iterator[Finding]:
    """C68."""
    if context.setup.policy.backend != "dtensor":
        return
    yield from _optimizer(context)
    if not context.has(_SCHEDULER):
        return
    value = context.get(_SCHEDULER)
    if value is None:
        yield fail(
            f"{_SCHEDULER} is null; without the key the rate is constant",
            _SCHEDULER,
            fixes=[context.removal(_SCHEDULER)],
            foretells="TypeError: 'NoneType' object is not iterable",
        )
    elif isinstance(value, dict):
        if "name" not in value or "kwargs" not in value:
            yield fail(
                f"{_SCHEDULER} needs name and kwargs",
                _SCHEDULER,
                fixes=[context.removal(_SCHEDULER)],
                foretells="KeyError: 'name'",
            )
        else:
            yield from _class(context, _SCHEDULER, value, _TORCH_SCHEDULER, SCHEDULERS)
    elif isinstance(value, list):
        yield from _several(context, value)


def _optimizer(context: Context) -> Iterator[Finding]:
    name, kwargs = context.get(f"{_OPTIMIZER}.name"), context.get(f"{_OPTIMIZER}.kwargs")
    key = f"{_OPTIMIZER}.name"
    if not isinstance(name, str) or "." not in name or not isinstance(kwargs, dict):
        fixes = [context.fix(key, f"{_TORCH}{name}")] if isinstance(name, str) and name in OPTIMIZERS else []
        yield fail(
            f"{_OPTIMIZER} needs an importable name and kwargs",
            key,
            fixes=fixes,
            foretells="KeyError or ValueError when the optimizer is made",
        )
        return
    yield from _class(context, _OPTIMIZER, {"name": name, "kwargs": kwargs}, _TORCH, OPTIMIZERS)
    if not name.startswith(_TORCH):
        yield undecided(
            f"whether {name} can be imported where the job runs",
            f"Try `python -c 'import {name.rpartition('.')[0]}'` in the worker's environment.",
            key,
        )
        return
    yield from _values(context, kwargs)


def _values(context: Context, kwargs: dict[str, Any]) -> Iterator[Finding]:
    rate, betas = finite(kwargs.get("lr")), kwargs.get("betas")
    if (rate is not None and rate < 0) or isinstance(kwargs.get("lr"), str):
        yield fail(
            f"{_OPTIMIZER}.kwargs.lr is {shown(kwargs['lr'])}, it must be a number of at least 0",
            f"{_OPTIMIZER}.kwargs.lr",
            fixes=[context.fix(f"{_OPTIMIZER}.kwargs.lr", -rate)] if rate else [],
            foretells=f"Invalid learning rate: {shown(kwargs['lr'])}",
        )
    numbers = [finite(beta) for beta in betas] if isinstance(betas, list) else []
    if any(beta is not None and not 0 <= beta < 1 for beta in numbers):
        key = f"{_OPTIMIZER}.kwargs.betas"
        yield fail(
            f"{key} are {', '.join(map(shown, betas or ()))}, each must be at least 0 and below 1",
            key,
            fixes=[context.fix(key, [0.9, 0.999])],
            foretells="Invalid beta parameter at index",
        )


def _class(
    context: Context, key: str, entry: dict[str, Any], module: str, classes: dict[str, str]
) -> Iterator[Finding]:
    """Compare a class of torch and its arguments with those that torch has; others cannot be known."""
    name, kwargs = entry.get("name"), entry.get("kwargs")
    if not isinstance(name, str) or not name.startswith(module) or not isinstance(kwargs, dict):
        return
    kind = name.removeprefix(module)
    if "." in kind:
        return
    if kind not in classes:
        near = get_close_matches(kind[:80], classes, 1, 0.6)
        yield fail(
            f"torch has no {name}" + (f"; there is {near[0]}" if near else ""),
            f"{key}.name",
            fixes=[context.fix(f"{key}.name", f"{module}{near[0]}")] if near else [],
            foretells=f"AttributeError: module '{module[:-1]}' has no attribute '{kind}'",
        )
        return
    taken = classes[kind].split()
    for wrong in sorted(set(map(str, kwargs)) - set(taken)) if taken else ():
        near = get_close_matches(wrong[:80], taken, 1, 0.75)
        place = f"{key}.kwargs.{wrong}"
        yield fail(
            f"{name} takes no '{wrong}'" + (f"; it takes {near[0]}" if near else ""),
            place,
            fixes=[context.removal(place)],
            foretells=f"TypeError: __init__() got an unexpected keyword argument '{wrong}'",
        )
    for needed in sorted(set(REQUIRED.get(kind, "").split()) - set(map(str, kwargs))):
        yield fail(
            f"{name} needs '{needed}'",
            f"{key}.kwargs",
            foretells=f"TypeError: __init__() missing 1 required positional argument: '{needed}'",
        )
    if module == _TORCH_SCHEDULER:
        yield from _factors(context, key, kind, kwargs)


def _factors(context: Context, key: str, kind: str, kwargs: dict[str, Any]) -> Iterator[Finding]:
    """Find a warm-up from nothing, which torch refuses."""
    start = finite(kwargs.get("start_factor"))
    if kind == "LinearLR" and start is not None and not 0 < start <= 1:
        place = f"{key}.kwargs.start_factor"
        yield fail(
            f"{place} is {shown(kwargs['start_factor'])}, it must be above 0 and at most 1",
            place,
            fixes=[context.fix(place, 0.001 if start <= 0 else 1.0)],
            foretells="Starting multiplicative factor expected to be greater than 0 and less or equal to 1.",
        )


def _several(context: Context, entries: list[object]) -> Iterator[Finding]:
    named = [entry for entry in entries if isinstance(entry, dict) and "name" in entry]
    marks = [entry["milestones"] for entry in entries if isinstance(entry, dict) and "milestones" in entry]
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not ({"name", "milestones"} & set(entry)):
            yield fail(
                f"{_SCHEDULER}.{number} has neither name nor milestones",
                f"{_SCHEDULER}.{number}",
                foretells="unknown scheduler config",
            )
            return
        if "name" in entry:
            yield from _class(context, f"{_SCHEDULER}.{number}", entry, _TORCH_SCHEDULER, SCHEDULERS)
    last = marks[-1] if marks else None
    if not isinstance(last, list) or len(last) != len(named) - 1:
        have = f"there are {len(last)}" if isinstance(last, list) else "and no entry `milestones` is there"
        yield fail(
            f"{len(named)} schedulers in turn need {max(len(named) - 1, 0)} milestones, {have}",
            _SCHEDULER,
            fixes=[context.removal(_SCHEDULER)],
            foretells="Sequential Schedulers expects one more scheduler than milestone points",
        )


def _megatron(context: Context) -> Iterator[Finding]:
    """C92: what Megatron-Core asserts of the student's rates; the teacher has no optimizer."""
    if context.setup.policy.backend != "megatron":
        return
    base, plan = f"{_MEGATRON}.optimizer", f"{_MEGATRON}.scheduler"
    rate = finite(context.get(f"{base}.lr"))
    highest = shown(context.get(f"{base}.lr"))
    for key, text in (
        (f"{base}.min_lr", "max_lr >= self.min_lr"),
        (f"{plan}.lr_warmup_init", "init_lr <= self.max_lr"),
    ):
        value = finite(context.get(key))
        if rate is not None and value is not None and value > rate:
            yield fail(
                f"{key} is {shown(context.get(key))}, more than lr, which is {highest}",
                key,
                f"{base}.lr",
                fixes=[context.fix(key, context.get(f"{base}.lr")), context.fix(key, 0.0)],
                foretells=f"AssertionError: assert self.{text}",
            )
    yield from _warmup(context, plan)
    style = context.get(f"{plan}.lr_decay_style")
    if isinstance(style, str) and style not in _DECAYS:
        near = get_close_matches(style[:80], _DECAYS, 1, 0.5)
        yield fail(
            f"{plan}.lr_decay_style is {shown(style)}, not {', '.join(_DECAYS)}",
            f"{plan}.lr_decay_style",
            fixes=[context.fix(f"{plan}.lr_decay_style", near[0] if near else "constant")],
            foretells=f"{shown(style)} decay style is not supported.",
        )
    name = context.get(f"{base}.optimizer")
    if isinstance(name, str) and name.lower() in _NEAR:
        yield fail(
            f"{base}.optimizer is {shown(name)}, Megatron-Core calls it adam",
            f"{base}.optimizer",
            fixes=[context.fix(f"{base}.optimizer", _NEAR[name.lower()])],
            foretells=f"{shown(name)} optimizer is not supported.",
        )


def _warmup(context: Context, plan: str) -> Iterator[Finding]:
    warmup, decay = (whole(context.get(f"{plan}.lr_{name}_iters")) for name in ("warmup", "decay"))
    if warmup is not None and decay is not None and warmup >= decay:
        yield warn(
            f"a warm-up of {warmup} steps is not shorter than the decay of {decay}: some versions refuse it",
            f"{plan}.lr_warmup_iters",
            f"{plan}.lr_decay_iters",
            fixes=[context.fix(f"{plan}.lr_decay_iters", warmup + 1)],
            foretells="AssertionError: assert self.lr_warmup_steps < self.lr_decay_steps",
        )
    start, end = (finite(context.get(f"{plan}.{name}_weight_decay")) for name in ("start", "end"))
    constant = context.get(f"{plan}.weight_decay_incr_style") == "constant"
    if start is not None and end is not None and (end < start or (constant and end != start)):
        first = shown(context.get(f"{plan}.start_weight_decay"))
        yield fail(
            f"{plan}.end_weight_decay is {shown(context.get(f'{plan}.end_weight_decay'))}, "
            f"{'not' if constant else 'less than'} the {first} of the start",
            f"{plan}.end_weight_decay",
            f"{plan}.start_weight_decay",
            fixes=[context.fix(f"{plan}.end_weight_decay", context.get(f"{plan}.start_weight_decay"))],
            foretells="AssertionError: assert self.end_wd >= self.start_wd",
        )


RULES = (
    Rule(
        "C68",
        "Optimizer and scheduler",
        _dtensor,
        "unknown scheduler config: …",
        "models/automodel/setup.py",
    ),
    Rule(
        "C92",
        "Megatron's learning rates",
        _megatron,
        "AssertionError: assert self.max_lr >= self.min_lr",
        "Megatron-Core, optimizer_param_scheduler.py",
    ),
)
