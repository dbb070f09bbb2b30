"""Measured points: what they say of the work, and how far the account is from them.

`python -m recipes.memory.points FILE` prints the table of errors of docs/memory.md.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from recipes.memory.shapes import Moment, Work
from recipes.memory.training import student_moments, teacher_moments
from recipes.memory.uncertainty import MEASURED, groups_of
from recipes.memory.wrapping import V1, V1_UNTIED, V2_HOLDING, V2_INSIDE, V2_PLAIN, Wrapping
from recipes.models.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recipes.models.facts import ModelFacts

PROBE = replace(V1_UNTIED, name="probe", logits_held=True)
"""The measuring script of the first points: logits live to the end of a step, norms return bf16."""
_WAYS = {"probe": "measuring script", "nemo": "DTensor v1", "v2": "DTensor v2"}
_CUT = "-4l"
"""Suffix of a measured model with four layers."""
_OWNERS = {"qwen": "Qwen/Q", "llam": "meta-llama/L"}


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """Measurement on one rank, in GiB: torch's peaks, and the least limit under which two steps ran."""

    way: str
    teacher: bool
    work: Work
    allocated: float
    reserved: float | None = None
    least: float | None = None
    least_repeated: float | None = None
    """The least limit under which a teacher's two forward passes ran in a row."""

    def moments(self) -> tuple[Moment, ...]:
        """Return the account's moments for this work."""
        return teacher_moments(self.work) if self.teacher else student_moments(self.work)

    @property
    def error(self) -> float:
        """Relative error of the account's peak."""
        return max(moment.gib for moment in self.moments()) / self.allocated - 1


def read_point(row: Mapping[str, Any]) -> MeasuredPoint:
    """Read a measurement; raises `KeyError` for a missing field or an unknown model."""
    way = str(row.get("way", "probe"))
    facts, gpus = measured_model(str(row["model"])), int(row["gpus"])
    if row.get("tied") is False and gpus == 1:
        facts = replace(facts, tied=False)
    length, rows = int(row["sequence_length"]), int(row.get("micro_batch", 1))
    packed = row.get("packed_sequences") or 1
    teacher = row["role"] == "teacher"
    work = Work(
        facts=facts,
        gpus=gpus,
        tp=int(row.get("tensor_parallel", 1)),
        cp=int(row.get("context_parallel", 1)),
        tokens=length * rows,
        rows=rows,
        micro_batches=int(row.get("micro_batches") or 1),
        checkpointing=row.get("activation_checkpointing") is not False,
        cpu_offload=bool(row.get("cpu_offload")),
        sequence_parallel=bool(row.get("sequence_parallel")),
        packed=tuple(packed) if isinstance(packed, list) else (1,) * packed if packed > 1 else (),
        dynamic=bool(row.get("micro_batch_shapes")),
        padded=bool(row.get("padded")),
        lora_rank=int(row.get("lora_rank") or 0),
        zero_outside_topk=bool(row.get("zero_outside_topk")),
        wrapping=_wrapping(way, row),
    )
    return MeasuredPoint(
        way,
        teacher,
        work,
        allocated=float(row["peak_allocated_gib"]),
        reserved=_gib(row, "peak_reserved_gib"),
        least=_gib(row, "least_gib"),
        least_repeated=_gib(row, "least_repeated_gib"),
    )


def _gib(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    return float(value) if value is not None else None


def measured_model(name: str) -> ModelFacts:
    """Return the facts of a measured model: its name in small letters, `-4l` for its first four layers."""
    base = name.removesuffix(_CUT)
    key = _OWNERS.get(base[:4], "").lower() + base[1:]
    facts = {id_.lower().replace("llama-", "llama"): facts for id_, facts in TABLE.items()}[key]
    return replace(facts, layers=4) if base != name else facts


def _wrapping(way: str, row: Mapping[str, Any]) -> Wrapping:
    """Return the wrapping that a point re-created; it dropped losses at once unless it says otherwise."""
    if way == "probe":
        return PROBE
    if way == "nemo":
        return V1 if row.get("tied") else V1_UNTIED
    if not row.get("reentrant_checkpointing", True):
        chosen = V2_INSIDE
    else:
        chosen = V2_HOLDING if row.get("explicit_prefetch", True) else V2_PLAIN
    return replace(chosen, keeps_losses=bool(row.get("losses_kept")), ties_again=bool(row.get("tied")))


def errors_table(points: Sequence[MeasuredPoint]) -> str:
    """Return the errors of the account by way of working and by group, as Markdown."""
    kinds: dict[str, list[float]] = {
        f"{way}, {role}": [] for way in _WAYS.values() for role in ("student", "teacher")
    }
    for point in points:
        kinds[f"{_WAYS[point.way]}, {'teacher' if point.teacher else 'student'}"].append(abs(point.error))
    for name in MEASURED:
        kinds[name] = [abs(point.error) for point in points if name in groups_of(point.work)]
    lines = ["| points | number | median error | worst error |", "|---|---|---|---|"]
    lines += [
        f"| {kind} | {len(errors)} | {median(errors):.2%} | {max(errors):.2%} |".replace("%", " %")
        for kind, errors in kinds.items()
        if errors
    ]
    return "\n".join(lines) + "\n"


def read_points(path: Path) -> tuple[MeasuredPoint, ...]:
    """Read a file of measurements, one JSON object a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(read_point(json.loads(line)) for line in lines if line.strip())


if __name__ == "__main__":
    sys.stdout.write(errors_table(read_points(Path(sys.argv[1]))))
