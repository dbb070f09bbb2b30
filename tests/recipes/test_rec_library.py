"""The starting recipes: read by NeMo-RL's loader as by us, complete, and with a teacher that follows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import recipes
from recipes.document import Document
from recipes.inheritance import resolve
from recipes.lint import teacher_drift, unknown_keys
from recipes.values import EMPTY
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY = Path(recipes.__path__[0]) / "library"
NAMES = sorted(path.name for path in LIBRARY.glob("*.yaml") if path.name != "rehearsal.yaml")


def test_the_library_covers_what_it_should() -> None:
    assert NAMES == [
        "nemo-gym.yaml",
        "qwen3-1.7b-from-4b-split.yaml",
        "qwen3-1.7b-from-4b.yaml",
        "qwen3-1.7b-from-8b.yaml",
        "qwen3-4b-from-32b.yaml",
        "qwen3-4b-from-8b.yaml",
        "smoke.yaml",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_library_recipe_resolves_and_is_clean(name: str, nemo_rl: Callable[..., Any]) -> None:
    path = LIBRARY / name
    recipe = resolve(path)
    assert same(recipe.values, nemo_rl(path))
    assert unknown_keys(recipe, Document.open(path).revision.values or EMPTY) == []
    assert teacher_drift(recipe) == []
    assert path.read_text().startswith("# ")
    gpus = recipe.get("cluster.num_nodes") * recipe.get("cluster.gpus_per_node")
    assert recipe.get("cluster.gpus_per_node") == 4
    for section in ("policy", "teacher"):
        shards = recipe.get(f"{section}.dtensor_cfg.tensor_parallel_size")
        assert gpus % shards == 0
        assert shards <= recipe.get("cluster.gpus_per_node")


def test_an_override_of_the_student_reaches_the_teacher() -> None:
    overrides = [
        "policy.max_total_sequence_length=4096",
        "policy.precision=float16",
        "policy.train_global_batch_size=32",
    ]
    recipe = resolve(LIBRARY / "qwen3-1.7b-from-4b.yaml", overrides)
    for key in (
        "max_total_sequence_length",
        "precision",
        "train_global_batch_size",
        "dynamic_batching.train_mb_tokens",
    ):
        assert recipe.get(f"teacher.{key}") == recipe.get(f"policy.{key}"), key
    assert teacher_drift(recipe) == []


def test_padding_fits_both_models() -> None:
    path = LIBRARY / "qwen3-1.7b-from-4b.yaml"
    assert resolve(path).get("teacher.make_sequence_length_divisible_by") == 8
    recipe = resolve(
        path, ["policy.dtensor_cfg.context_parallel_size=2", "teacher.dtensor_cfg.tensor_parallel_size=2"]
    )
    assert recipe.get("policy.make_sequence_length_divisible_by") == 8
