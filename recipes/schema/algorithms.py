"""Which module's classes a recipe is for, told from its sections."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

ALGORITHMS = ("distillation", "grpo", "ppo", "dpo", "sft", "rm")
"""NeMo-RL's algorithms: the section that marks a recipe, and the module below nemo_rl/algorithms."""

_ALGORITHMS = "nemo_rl/algorithms"
CROSS_TOKENIZER = "xtoken_off_policy_distillation"
"""The distillation between tokenizers: marked by `teachers` beside `distillation`."""


def holding_checkout(path: Path) -> Path | None:
    """Return the checkout in which a file lies; None if it lies in none."""
    parents = path.absolute().parents
    return next((parent for parent in parents if (parent / _ALGORITHMS).is_dir()), None)


def algorithm_of(values: Mapping[str, Any]) -> str | None:
    """Tell from an effective recipe's sections which algorithm it is for; None if that is unknown."""
    if "teachers" in values and "distillation" in values:
        return CROSS_TOKENIZER
    return next((name for name in ALGORITHMS if name in values), None)


def driver_of_algorithm(algorithm: str) -> str:
    """Return the module of an algorithm."""
    return f"nemo_rl.algorithms.{algorithm}"


def algorithm_of_driver(driver: str) -> str:
    """Return the algorithm of a driver, given as module or script: the longest name that it contains."""
    names = sorted((*ALGORITHMS, CROSS_TOKENIZER), key=len, reverse=True)
    stem = driver.removesuffix(".py").replace("/", ".").rpartition(".")[2]
    return next((name for name in names if name in stem), stem)
