"""The data sets of a recipe, with the defaults they take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recipes.files import is_file
from recipes.limits import DATA_BYTES
from recipes.models import UnknownModel
from recipes.planning.setup import finite

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe
    from recipes.models import Hub

REPOSITORIES = {
    "DeepScaler": "agentica-org/DeepScaleR-Preview-Dataset",
    "AIME2024": "HuggingFaceH4/aime_2024",
    "AIME2025": "opencompass/AIME2025",
    "OpenMathInstruct-2": "nvidia/OpenMathInstruct-2",
    "DAPOMath17K": "BytedTsinghua-SIA/DAPO-Math-17k",
    "DAPOMathAIME2024": "BytedTsinghua-SIA/AIME-2024",
    "gsm8k": "openai/gsm8k",
    "GSM8K": "openai/gsm8k",
    "HelpSteer3": "nvidia/HelpSteer3",
    "squad": "rajpurkar/squad",
    "tulu3_sft_mixture": "allenai/tulu-3-sft-mixture",
}
"""Where data sets that NeMo-RL knows by name come from."""

SIZES = {
    "DeepScaler": 40_315,
    "OpenMathInstruct-2": 1_000_000,
    "DAPOMath17K": 17_398,
    "gsm8k": 7_473,
    "GSM8K": 7_473,
    "AIME2024": 30,
    "AIME2025": 30,
}
"""Samples of the training split that NeMo-RL loads; the published counts."""

_BLOCK = 1 << 18
_FILES = ("prompt_file", "system_prompt_file")


@dataclass(frozen=True, slots=True)
class DataSet:
    """Data set of a recipe: the key that names it, and the values that it takes from `data.default`."""

    split: Literal["train", "validation"]
    key: str
    name: str
    path: str
    env: str
    env_key: str
    files: dict[str, tuple[str, object]]
    split_size: float
    repeat: int


def datasets(recipe: EffectiveRecipe) -> list[DataSet]:
    """Return the data sets of a recipe, training first."""
    default = recipe.get("data.default")
    default = default if isinstance(default, dict) else {}
    data_sets: list[DataSet] = []
    section = recipe.get("data")
    if isinstance(section, dict) and isinstance(section.get("dataset_name"), str) and "train" not in section:
        return [_read("train", "data", section, {})]  # the form up to v0.5: one data set for all
    for split in ("train", "validation"):
        section = recipe.get(f"data.{split}")
        entries = section if isinstance(section, list) else [section]
        for number, entry in enumerate(entries):
            if isinstance(entry, dict):
                key = f"data.{split}.{number}" if isinstance(section, list) else f"data.{split}"
                data_sets.append(_read(split, key, entry, default))
    return data_sets


def _read(
    split: Literal["train", "validation"], key: str, entry: dict[str, object], default: dict[str, object]
) -> DataSet:
    def with_default(name: str) -> tuple[str, object]:
        return (
            (f"{key}.{name}", entry[name]) if name in entry else (f"data.default.{name}", default.get(name))
        )

    env_key, env = with_default("env_name")
    size, repeat = entry.get("split_validation_size"), entry.get("repeat")
    return DataSet(
        split,
        key,
        str(entry.get("dataset_name") or default.get("dataset_name") or ""),
        str(entry.get("data_path") or ""),
        str(env or ""),
        env_key,
        {name: with_default(name) for name in _FILES},
        finite(size) or 0.0,
        repeat if isinstance(repeat, int) and repeat > 0 else 1,
    )


def length_of(entry: DataSet, root: Path, enough: int) -> int | UnknownModel:
    """Return the number of samples of a data set: lines of a local file, or a published count.

    Counting stops when there are `enough` for sure: files may have many GB.
    """
    if entry.path:
        path = root / entry.path
        if is_file(path):
            share = max(1 - entry.split_size, 0.01) if entry.split_size < 1 else 1.0
            most = max(int(enough / share + max(entry.split_size, 1)) + 1, 1)
            try:
                stamp = path.stat()
                count = _lines(path, stamp.st_mtime_ns, stamp.st_size, most)
            except OSError as error:
                return UnknownModel(f"{path} cannot be read: {error}", "Check its permissions.")
        else:
            return UnknownModel(
                f"{path} is not a file here", "Correct data_path, or give the checkout (--checkout)."
            )
    elif entry.name in SIZES:
        count = SIZES[entry.name]
    else:
        return UnknownModel(
            f"the size of {entry.name or 'the data set'} is unknown", "Look it up where it is published."
        )
    return (
        int(count * (1 - entry.split_size) if entry.split_size < 1 else count - entry.split_size)
        * entry.repeat
    )


@lru_cache(maxsize=32)
def _lines(path: Path, modified: int, size: int, most: int) -> int:
    """Count the lines of a file that hold something, `most` at most; its stamp is part of the cache's key.

    Of a file above the limit, its first part is counted.
    """
    count, left, begun = 0, DATA_BYTES.value, False
    with path.open("rb") as file:
        while count < most and left > 0 and (block := file.read(min(left, _BLOCK))):
            left -= len(block)
            first, *others = block.split(b"\n")
            begun = begun or bool(first.strip())
            for line in others:
                count, begun = count + begun, bool(line.strip())
    return min(count + begun, most)


def is_cached(hub: Hub, name: str) -> bool | None:
    """Return whether a named data set is in the Hugging Face cache; None if its source is unknown."""
    repository = REPOSITORIES.get(name)
    if repository is None:
        return None
    if hub.snapshot(repository, "datasets") is not None:
        return True
    prepared = hub.directory.parent / "datasets" / repository.replace("/", "___")
    return prepared.is_dir()
