"""The driver script that a recipe is for, by its sections and by the scripts that the checkout has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DriverKind = Literal["distillation", "nemo-gym", "cross-tokenizer", "off-policy", "other"]
"""`distillation` is on-policy from one teacher; `other` is another algorithm (GRPO, SFT, …)."""

SCRIPTS: dict[DriverKind, tuple[str, ...]] = {
    # The name changed between v0.5 and v0.6.
    "distillation": ("examples/run_distillation.py", "examples/run_distillation_math.py"),
    "nemo-gym": ("examples/nemo_gym/run_distillation_nemo_gym.py",),
    "cross-tokenizer": (
        "examples/run_xtoken_off_policy_distillation.py",
        "examples/run_xtoken_distillation.py",
    ),
    "off-policy": (
        "examples/run_off_policy_distillation.py",
        "examples/run_off_policy_distillation_math.py",
        "examples/run_offline_distillation.py",
    ),
}
"""Scripts by the kind of recipe, the one of the newest release first."""

_ALGORITHMS = ("grpo", "async_grpo", "ppo", "dpo", "sft", "rm", "eval", "reward_model")
_OWN_SECTIONS = ("off_policy_distillation", "offline_distillation")
_CROSS_TOKENIZER_KEYS = ("gold_loss", "xtoken_loss", "vocab_topk", "kd_loss_mode")


@dataclass(frozen=True, slots=True)
class Driver:
    """The script that runs a recipe, relative to the checkout; None where the checkout has none for it."""

    script: str | None
    kind: DriverKind
    reason: str

    @property
    def is_on_policy(self) -> bool:
        """Return whether the script distils on-policy from one teacher, with NeMo-Gym or without."""
        return self.kind in ("distillation", "nemo-gym")


def recipe_kind(values: Mapping[str, Any]) -> tuple[DriverKind, str]:
    """Return the kind of driver that a recipe is for, and the key that decides it."""
    loss = values.get("loss_fn")
    if "teachers" in values:
        return "cross-tokenizer", "the recipe has a list of teachers"
    crossing = next((key for key in _CROSS_TOKENIZER_KEYS if isinstance(loss, dict) and key in loss), None)
    if crossing is not None:
        return "cross-tokenizer", f"the recipe sets loss_fn.{crossing}"
    section = next((name for name in _OWN_SECTIONS if isinstance(values.get(name), dict)), None)
    if section is not None:
        return "off-policy", f"the recipe has a section {section}"
    if not (isinstance(values.get("distillation"), dict) or isinstance(values.get("teacher"), dict)):
        algorithm = next((name for name in _ALGORITHMS if isinstance(values.get(name), dict)), None)
        if algorithm is not None:
            return "other", f"the recipe has a section {algorithm}"
        return "other", "the recipe has neither a section distillation nor a teacher"
    distillation = values.get("distillation")
    if isinstance(distillation, dict) and (
        distillation.get("off_policy") is True or distillation.get("on_policy") is False
    ):
        return "off-policy", "its section distillation is marked off-policy"
    environment = values.get("env")
    if isinstance(environment, dict) and environment.get("should_use_nemo_gym") is True:
        return "nemo-gym", "env.should_use_nemo_gym is true"
    return "distillation", "the recipe distils on-policy from one teacher"


def choose_driver(values: Mapping[str, Any], scripts: Collection[str]) -> Driver:
    """Return the driver for an effective recipe, among the scripts that a checkout has.

    `scripts` are paths relative to the checkout, as `driver_scripts` lists them.
    """
    kind, reason = recipe_kind(values)
    if kind == "other":
        first_script = next(
            (script for name in values for script in _scripts_of(name) if script in scripts), None
        )
        return Driver(first_script, kind, reason)
    for script in SCRIPTS[kind]:
        if script in scripts:
            return Driver(script, kind, reason)
    similar = _similar(kind, scripts)
    return Driver(similar, kind, reason if similar else f"{reason}, but the checkout has no driver for it")


def driver_scripts(root: Path) -> tuple[str, ...]:
    """Return the driver scripts of a checkout on this machine, relative to it."""
    folders = (root / "examples", root / "examples" / "nemo_gym")
    scripts = [path for folder in folders for path in folder.glob("run_*.py")]
    return tuple(sorted(path.relative_to(root).as_posix() for path in scripts))


def _scripts_of(algorithm: str) -> tuple[str, ...]:
    return f"examples/run_{algorithm}.py", f"examples/run_{algorithm}_math.py"


def _similar(kind: DriverKind, scripts: Collection[str]) -> str | None:
    """Return a script of a fork whose name says that it is of a kind; the shortest name first."""
    words = {
        "distillation": ("distill",),
        "nemo-gym": ("distill", "gym"),
        "cross-tokenizer": ("distill", "token"),
        "off-policy": ("distill", "off"),
    }
    others = {"distillation": ("gym", "token", "off_policy", "offline", "eval")}
    names = (
        script
        for script in scripts
        if all(word in script.rpartition("/")[2] for word in words[kind])
        and not any(word in script for word in others.get(kind, ()))
    )
    return min(names, key=lambda name: (len(name), name), default=None)
