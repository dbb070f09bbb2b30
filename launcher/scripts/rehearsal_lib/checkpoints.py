"""Checkpoints as NeMo-RL lays them out: written as `tmp_step_N`, renamed to `step_N`, worse ones removed."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from .language import VOCABULARY
from .settings import RehearsalError, Saving
from .student import Adam, Weights

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class TrainingProgress:
    """Content of `training_info.json`; `scores`: the keys that only some checkpoints have.

    current_step counts within current_epoch, which counts from 0.
    """

    total_steps: int = 0
    current_epoch: int = 0
    current_step: int = 0
    consumed_samples: int = 0
    total_valid_tokens: float = 0.0
    scores: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, float]:
        """Return the keys that NeMo-RL writes."""
        values = asdict(self)
        return {**{key: value for key, value in values.items() if key != "scores"}, **self.scores}


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """Checkpoint on disk."""

    folder: Path
    step: int
    info: dict[str, Any]


def history(folder: Path) -> list[SavedCheckpoint]:
    """Return the finished checkpoints, earliest step first.

    Raises:
        RehearsalError: one of them cannot be read.
    """
    if not folder.is_dir():
        return []
    checkpoints = []
    for entry in folder.iterdir():
        if match := re.fullmatch(r"step_(\d+)", entry.name):
            try:
                info = json.loads((entry / "training_info.json").read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise RehearsalError(
                    f"Not a readable checkpoint: {error}", str(entry), "Move this folder away."
                ) from None
            checkpoints.append(SavedCheckpoint(entry, int(match[1]), info))
    return sorted(checkpoints, key=lambda saved: saved.step)


def save(
    saving: Saving, recipe: dict[str, Any], progress: TrainingProgress, weights: Weights, adam: Adam
) -> None:
    """Write the checkpoint of `progress.total_steps` and remove those that keep_top_k does not keep."""
    step = progress.total_steps
    folder = saving.folder / f"tmp_step_{step}"
    shutil.rmtree(folder, ignore_errors=True)
    parts = ("weights", "tokenizer", "optimizer") if saving.optimizer else ("weights", "tokenizer")
    for part in parts:
        (folder / "policy" / part).mkdir(parents=True)
    (folder / "training_info.json").write_text(json.dumps(progress.as_json()), encoding="utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    vocabulary = json.dumps({"vocabulary": VOCABULARY})
    (folder / "policy" / "tokenizer" / "tokenizer.json").write_text(vocabulary, encoding="utf-8")
    _write(folder / "policy" / "weights" / "weights.npz", weights)
    if saving.optimizer:
        state = {f"mean.{name}": value for name, value in adam.mean.items()}
        state |= {f"square.{name}": value for name, value in adam.square.items()}
        _write(
            folder / "policy" / "optimizer" / "optimizer.npz",
            state | {"updates": np.array(float(adam.updates))},
        )
    final, old = saving.folder / f"step_{step}", saving.folder / f"old_step_{step}"
    if final.exists():
        final.rename(old)
    folder.rename(final)
    shutil.rmtree(old, ignore_errors=True)
    for saved in superfluous(history(saving.folder), saving):
        print(f"Removing checkpoint {saved.folder} (step {saved.step})", flush=True)
        shutil.rmtree(saved.folder)


def _write(file: Path, arrays: Weights) -> None:
    with file.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def superfluous(saved: list[SavedCheckpoint], saving: Saving) -> list[SavedCheckpoint]:
    """Return the checkpoints that NeMo-RL would remove: all but the latest and the periodic top k."""
    if saving.keep_top_k is None or not saved:
        return []
    worst = float("-inf") if saving.higher_is_better else float("inf")
    sign = 1.0 if saving.higher_is_better else -1.0

    def rank(one: SavedCheckpoint) -> tuple[float, int]:
        score = 0.0 if saving.metric is None else sign * float(one.info.get(saving.metric, worst))
        return score, one.step

    periodic = sorted((one for one in saved if one.step % saving.period == 0), key=rank, reverse=True)
    kept = {one.step for one in periodic[: saving.keep_top_k]} | {saved[-1].step}
    return [one for one in saved if one.step not in kept]


def load(saved: SavedCheckpoint, weights: Weights, adam: Adam) -> tuple[TrainingProgress, Weights, Adam]:
    """Return the state in a checkpoint; `weights`, `adam`: expected shapes, defaults for missing parts.

    Raises:
        RehearsalError: it cannot be read, or belongs to another model.
    """
    counters = {key: saved.info[key] for key in asdict(TrainingProgress()) if key in saved.info}
    loaded = _read(saved.folder / "policy" / "weights" / "weights.npz", weights)
    file = saved.folder / "policy" / "optimizer" / "optimizer.npz"
    if not file.exists():
        return TrainingProgress(**counters), loaded, adam
    shapes = {f"{part}.{name}": value for name, value in weights.items() for part in ("mean", "square")}
    state = _read(file, shapes | {"updates": np.array(0.0)})
    mean = {name: state[f"mean.{name}"] for name in weights}
    square = {name: state[f"square.{name}"] for name in weights}
    return TrainingProgress(**counters), loaded, Adam(adam.rate, mean, square, int(state["updates"]))


def _read(file: Path, like: Weights) -> Weights:
    fix = "Another model's checkpoints? Choose another checkpointing.checkpoint_dir."
    try:
        with np.load(file, allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name], dtype=np.float64) for name in like}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise RehearsalError(f"Cannot load the checkpoint: {error}", str(file), fix) from None
    for name, value in arrays.items():
        if value.shape != like[name].shape:
            raise RehearsalError(f"Size mismatch for {name}: {value.shape}", str(file), fix)
    return arrays
