"""The memory model against measurements, and what it must do whatever the numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recipes.memory.calibration import FITTED, cross_validate, fit, measured

from recipes.inheritance import resolve
from recipes.memory import Work, demand_of, estimate, options
from recipes.memory.training import student_peak, teacher_peak
from recipes.models import Models
from recipes.models.table import TABLE

MODELS = Models.of({"HF_HOME": "/nonexistent"})


@pytest.mark.parametrize("folds", [4, 6, 9])
def test_held_out_points_are_predicted(folds: int) -> None:
    errors = cross_validate(measured(), folds)
    assert errors.median <= 0.01, f"median error {errors.median:.2%}"
    assert errors.worst <= 0.03, f"worst error {errors.worst:.2%}"
    assert max(errors.reserved) <= 0.15


def test_models_of_a_family_that_was_not_fitted_are_predicted() -> None:
    llama = [point for point in measured() if point.work.facts.family == "llama"]
    known = fit([point for point in measured() if point.work.facts.family != "llama"])
    errors = [abs(known.allocated(p.work, teacher=p.teacher) / p.allocated - 1) for p in llama]
    assert len(errors) >= 5
    assert max(errors) <= 0.02


def test_the_constants_in_use_are_the_fitted_ones() -> None:
    fresh = fit(measured())
    assert FITTED.workspace == pytest.approx(fresh.workspace, abs=1e-3)
    assert FITTED.student_reserve == pytest.approx(fresh.student_reserve, abs=1e-3)
    assert FITTED.teacher_reserve == pytest.approx(fresh.teacher_reserve, abs=1e-3)


WORK = Work(TABLE["Qwen/Qwen3-4B"], gpus=8, tp=2, tokens=8192)


@pytest.mark.parametrize(
    "less",
    [
        replace(WORK, gpus=16),
        replace(WORK, tokens=4096),
        replace(WORK, cp=2),
        replace(WORK, tp=4),
        replace(WORK, cpu_offload=True),
    ],
)
def test_what_relieves_a_gpu_lowers_the_student(less: Work) -> None:
    assert student_peak(less).gib < student_peak(WORK).gib


def test_recomputing_lowers_activations_and_terms_sum_up() -> None:
    kept = student_peak(replace(WORK, checkpointing=False))
    assert kept.gib > student_peak(WORK).gib
    assert kept.gib == pytest.approx(sum(term.gib for term in kept.terms))
    assert all(term.gib >= 0 for term in kept.terms)
    assert teacher_peak(WORK).gib < student_peak(WORK).gib


RECIPE = """
distillation: {num_prompts_per_step: 64, num_generations_per_prompt: 1, topk_logits_k: 64}
policy: &policy
  model_name: Qwen/Qwen3-8B
  train_global_batch_size: 64
  train_micro_batch_size: 1
  logprob_batch_size: 1
  max_total_sequence_length: 8192
  make_sequence_length_divisible_by: 8
  dtensor_cfg: &dtensor
    {enabled: true, tensor_parallel_size: 1, context_parallel_size: 1, activation_checkpointing: true}
  generation:
    backend: vllm
    vllm_cfg:
      {tensor_parallel_size: 1, pipeline_parallel_size: 1, gpu_memory_utilization: 0.6, max_model_len: 8192}
    colocated: {enabled: true}
teacher:
  <<: *policy
  model_name: Qwen/Qwen3-32B
cluster: {num_nodes: 1, gpus_per_node: 4}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def test_a_recipe_that_does_not_fit_is_told_what_would(recipe: Path) -> None:
    effective = resolve(recipe)
    found = {phase.id: phase for phase in estimate(effective, MODELS, 40.0).phases}
    assert set(found) == {"student-train", "teacher-score", "generation", "refit"}
    assert not found["student-train"].fits
    assert not found["teacher-score"].fits
    chosen = options(demand_of(effective, MODELS), 40.0)
    assert {option.side for option in chosen} == {"policy", "teacher"}
    assert all(option.needed <= 40.0 for option in chosen)
    for side in ("policy", "teacher"):
        nodes = [option.nodes for option in chosen if option.side == side]
        assert nodes == sorted(nodes), "the cheapest come first"
    first = next(option for option in chosen if option.side == "teacher")
    after = resolve(recipe, first.fix.overrides())
    assert {p.id: p.fits for p in estimate(after, MODELS, 40.0).phases}["teacher-score"]


def test_an_unknown_model_is_not_guessed(recipe: Path) -> None:
    effective = resolve(recipe, ["teacher.model_name=somebody/else"])
    found = estimate(effective, MODELS, 40.0)
    assert "teacher-score" not in {phase.id for phase in found.phases}
    assert found.host_gib_per_node is None
    assert any("teacher's memory is unknown" in note and "hf download" in note for note in found.notes)


def test_a_bigger_card_fits_and_an_unknown_card_is_said(recipe: Path) -> None:
    assert estimate(resolve(recipe), MODELS, 141.0).fits
    assert any("40 GiB assumed" in note for note in estimate(resolve(recipe), MODELS).notes)
