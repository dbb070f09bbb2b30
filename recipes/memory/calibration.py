"""Comparison of the memory model with measurements: fitted parameters, and errors on held-out points.

The byte counts of `recipes.memory.training` are derived, not fitted. Fitted are the workspace (one
number) and what the caching allocator keeps beyond what is allocated (three numbers for a student, two
for a teacher). `cross_validate` reports the errors on held-out folds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from recipes.memory.shapes import GIB, Work
from recipes.memory.training import student_peak, teacher_peak
from recipes.models.facts import ModelFacts
from recipes.models.table import TABLE

_NAMES = {
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-1.7b": "Qwen/Qwen3-1.7B",
    "qwen3-4b": "Qwen/Qwen3-4B",
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-14b": "Qwen/Qwen3-14B",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen2.5-0.5b": "Qwen/Qwen2.5-0.5B",
    "qwen2.5-1.5b": "Qwen/Qwen2.5-1.5B",
    "qwen2.5-3b": "Qwen/Qwen2.5-3B",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B",
    "llama3.2-1b": "meta-llama/Llama-3.2-1B",
    "llama3.2-3b": "meta-llama/Llama-3.2-3B",
    "llama3.1-8b": "meta-llama/Llama-3.1-8B",
}


@dataclass(frozen=True, slots=True)
class Point:
    """Measurement: the work, and torch's peaks of allocated and reserved memory in GiB."""

    teacher: bool
    work: Work
    allocated: float
    reserved: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted parameters, in GiB or as factors."""

    workspace: float
    student_reserve: tuple[float, ...]
    teacher_reserve: tuple[float, ...]

    def allocated(self, work: Work, *, teacher: bool) -> float:
        """Predict the peak of allocated memory."""
        return (teacher_peak if teacher else student_peak)(work, self.workspace).gib

    def reserve(self, work: Work, *, teacher: bool) -> float:
        """Predict the memory that the allocator keeps beyond the allocated peak."""
        weights = self.teacher_reserve if teacher else self.student_reserve
        return sum(
            weight * feature for weight, feature in zip(weights, _features(work, teacher), strict=True)
        )


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of held-out points."""

    allocated: tuple[float, ...]
    reserved: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median error of the allocated peak."""
        from statistics import median

        return median(self.allocated)

    @property
    def worst(self) -> float:
        """Worst error of the allocated peak."""
        return max(self.allocated)


@cache
def measured() -> tuple[Point, ...]:
    """Return the measurements that come with the project."""
    from importlib.resources import files

    text = files("recipes").joinpath("data/gpu_memory.jsonl").read_text(encoding="utf-8")
    return tuple(read_point(json.loads(line)) for line in text.splitlines() if line.strip())


def read_point(row: dict[str, object]) -> Point:
    """Read one measurement; raises `KeyError` for an unknown model."""
    numbers = {key: value for key, value in row.items() if isinstance(value, (int, float))}
    chunk = row.get("logprob_chunk")
    work = Work(
        facts=model_of(str(row["model"])),
        gpus=int(numbers["gpus"]),
        tp=int(numbers["tensor_parallel"]),
        cp=int(numbers["context_parallel"]),
        tokens=int(numbers["sequence_length"] * numbers["micro_batch"]),
        checkpointing=row.get("activation_checkpointing") is not False,
        chunk=chunk if isinstance(chunk, int) else None,
    )
    allocated, reserved = float(numbers["peak_allocated_gib"]), float(numbers["peak_reserved_gib"])
    return Point(row["role"] == "teacher", work, allocated, reserved)


def model_of(name: str) -> ModelFacts:
    """Return the facts of a measured model."""
    return TABLE[_NAMES[name]]


def fit(points: Sequence[Point]) -> Fit:
    """Fit the few numbers that are not derived."""
    from statistics import median

    import numpy as np

    workspace = median(
        point.allocated - (teacher_peak if point.teacher else student_peak)(point.work, 0.0).gib
        for point in points
    )
    weights: list[tuple[float, ...]] = []
    for teacher in (False, True):
        chosen = [point for point in points if point.teacher is teacher]
        rows = np.array([_features(point.work, teacher) for point in chosen])
        target = np.array([point.reserved - point.allocated for point in chosen])
        weights.append(tuple(float(value) for value in np.linalg.lstsq(rows, target, rcond=None)[0]))
    return Fit(max(workspace, 0.0), weights[0], weights[1])


def cross_validate(points: Sequence[Point], folds: int = 6) -> Errors:
    """Return the errors of every point by a fit without it: every `folds`-th is held out."""
    allocated: list[float] = []
    reserved: list[float] = []
    for fold in range(folds):
        training_fit = fit([point for number, point in enumerate(points) if number % folds != fold])
        for point in points[fold::folds]:
            peak = training_fit.allocated(point.work, teacher=point.teacher)
            estimate = peak + training_fit.reserve(point.work, teacher=point.teacher)
            allocated.append(abs(peak / point.allocated - 1))
            reserved.append(abs(estimate / point.reserved - 1))
    return Errors(tuple(allocated), tuple(reserved))


def _features(work: Work, teacher: bool) -> tuple[float, ...]:
    """Return the GiB of freed blocks by kind: fp32 logits, fp32 gradients of embedding and head."""
    root = work.facts.matrices(untied=work.untied) * work.facts.embedding_params / work.tp * 4 / GIB
    if teacher:
        return (root if work.shards > 1 else 0.0, 1.0)
    return (work.local_tokens * work.facts.vocab / work.tp * 4 / GIB, root, 1.0)


FITTED = Fit(0.0733, (0.1899, 3.4398, 0.5340), (0.5902, 1.2276))
"""`fit(measured())`, rounded; a test compares."""
