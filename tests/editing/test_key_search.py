"""Search: any part of key, value or comment, also of keys that are not set; the expected key first."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipes.library
from recipes.editing import Analysis, EditSession, KeyMatch, RecipeAnalyser

LIBRARY = Path(recipes.library.__file__).parent / "qwen3-1.7b-from-4b.yaml"


@pytest.fixture(scope="module")
def analyser() -> RecipeAnalyser:
    return RecipeAnalyser(LIBRARY, environment={})


@pytest.fixture(scope="module")
def analysis(analyser: RecipeAnalyser) -> Analysis:
    return analyser.read(EditSession.open(LIBRARY).state)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("lr", "policy.optimizer.kwargs.lr"),
        ("learning rate", "policy.optimizer.kwargs.lr"),
        ("kl", "loss_fn.kl_type"),
        ("kl_type", "loss_fn.kl_type"),
        ("tp", "policy.dtensor_cfg.tensor_parallel_size"),
        ("gpu_memory", "policy.generation.vllm_cfg.gpu_memory_utilization"),
        ("teacher model", "teacher.model_name"),
        ("num_nodes", "cluster.num_nodes"),
        ("DISTILLATION.max_num_steps", "distillation.max_num_steps"),
        ("topk", "distillation.topk_logits_k"),
    ],
)
def test_the_expected_key_comes_first(
    analyser: RecipeAnalyser, analysis: Analysis, text: str, first: str
) -> None:
    matches = analyser.find(analysis, text)
    assert matches[0].key == first


def test_batch_finds_the_batch_sizes_before_anything_else(
    analyser: RecipeAnalyser, analysis: Analysis
) -> None:
    keys = [match.key for match in analyser.find(analysis, "batch")]
    assert {"policy.train_global_batch_size", "policy.train_micro_batch_size"} <= set(keys[:4])


def test_keys_that_are_not_set_are_found_after_those_that_are(
    analyser: RecipeAnalyser, analysis: Analysis
) -> None:
    matches = analyser.find(analysis, "parallel", limit=500)
    unset = [match for match in matches if not match.is_set]
    set_keys = {row.key for row in analysis.outline.rows}
    assert unset
    assert all(match.row is None and match.key not in set_keys for match in unset)
    assert matches[0].is_set


def only(matches: tuple[KeyMatch, ...], reason: str) -> list[str]:
    return [match.key for match in matches if match.reason == reason]


def test_values_and_comments_are_found(child: Path) -> None:
    analyser = RecipeAnalyser(child, environment={})
    analysis = analyser.read(EditSession.open(child).state)
    assert only(analyser.find(analysis, "4096"), "value") == [
        "policy.max_total_sequence_length",
        "teacher.max_total_sequence_length",
        "policy.generation.max_new_tokens",
        "teacher.generation.max_new_tokens",
    ]
    assert "distillation.num_prompts_per_step" in only(analyser.find(analysis, "prompts of one"), "comment")
    assert analyser.find(analysis, "val_period")[0].row == analysis.outline.index("distillation.val_period")
    assert analyser.find(analysis, "   ") == ()
    assert analyser.find(analysis, "no such thing anywhere") == ()
