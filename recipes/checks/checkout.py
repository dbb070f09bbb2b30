"""What a NeMo-RL checkout can do, found out by looking at its sources (version numbers mislead)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_DATASETS = "nemo_rl/data/datasets/response_datasets/__init__.py"
_ENVIRONMENTS = "nemo_rl/environments/utils.py"
_DRIVER = "nemo_rl/algorithms/distillation.py"
_POLICY = "nemo_rl/models/policy/lm_policy.py"
_REGISTRY = re.compile(r"^(DATASET_REGISTRY|ENV_REGISTRY)\b[^=]*= \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r'^    "([^"]+)":', re.MULTILINE)

BUILT_IN_DATASETS = frozenset(
    (
        "audiomcq",
        "arrow_text",
        "avqa",
        "AIME2024",
        "AIME2025",
        "AIME2026",
        "clevr-cogent",
        "daily-omni",
        "general-conversation-jsonl",
        "DAPOMath17K",
        "DAPOMathAIME2024",
        "DeepScaler",
        "GSM8K",
        "gsm8k",
        "geometry3k",
        "mmpr-tiny",
        "HelpSteer3",
        "intent-train",
        "intent-bench",
        "open_assistant",
        "OpenMathInstruct-2",
        "NuminaMath-1.5",
        "OpenR1-Math-220k",
        "refcoco",
        "squad",
        "tulu3_sft_mixture",
        "Nemotron-Cascade-2-SFT-Math",
        "openai_format",
        "NemoGymDataset",
        "ResponseDataset",
    )
)
"""Data sets that NeMo-RL of August 2026 knows by name."""

BUILT_IN_ENVIRONMENTS = frozenset(
    (
        "math_default",
        "math",
        "math_multi_reward",
        "code",
        "code_jaccard",
        "reward_model",
        "vlm",
        "nemo_gym",
    )
)
"""Environments that NeMo-RL of August 2026 knows by name."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A NeMo-RL checkout and its features; where a source file is missing, those of the newest version."""

    path: Path
    validates: bool
    """Whether the driver validates the recipe with pydantic before Ray starts (v0.7 and later)."""
    tp_accuracy_check: bool
    datasets: frozenset[str]
    environments: frozenset[str]

    @classmethod
    def at(cls, path: Path) -> Checkout:
        """Look at a checkout."""
        driver, policy = _read(path / _DRIVER), _read(path / _POLICY)
        return cls(
            path,
            not driver or "class MasterConfig(BaseModel" in driver,
            not policy or "NRL_IGNORE_TP_ACCURACY_CHECK" in policy,
            _names(_read(path / _DATASETS)) or BUILT_IN_DATASETS,
            _names(_read(path / _ENVIRONMENTS)) or BUILT_IN_ENVIRONMENTS,
        )


def _read(path: Path) -> str:
    try:
        stamp = path.stat()
    except OSError:
        return ""
    return _text(path, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=32)
def _text(path: Path, modified: int, size: int) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _names(text: str) -> frozenset[str]:
    match = _REGISTRY.search(text)
    return frozenset(_NAME.findall(match[2])) if match else frozenset()
