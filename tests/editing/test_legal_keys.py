"""Sizes that keys may have, by arithmetic alone."""

from __future__ import annotations

from pathlib import Path

from recipes.models.table import TABLE
from recipes.planning.legal_keys import legal_sizes
from recipes.planning.setup import Setup
from tests.checks.world import World


def test_sizes_follow_heads_gpus_and_batches(tmp_path: Path) -> None:
    world = World.at(tmp_path)
    recipe = world.resolver.resolve(tmp_path / "recipe.yaml", ["cluster.gpus_per_node=8"])
    setup = Setup.of(recipe)
    facts = TABLE["Qwen/Qwen3-4B"]  # 32 heads, 8 key-value heads

    def sizes(key: str) -> tuple[int, ...]:
        return legal_sizes(key, setup, lambda _: facts)

    assert sizes("policy.dtensor_cfg.tensor_parallel_size") == (1, 2, 4, 8)
    assert legal_sizes("policy.dtensor_cfg.tensor_parallel_size", setup, lambda _: None) == (1, 2, 4, 8)
    assert sizes("policy.dtensor_cfg.context_parallel_size") == (1, 2, 4)  # beside TP 2
    for size in sizes("policy.train_global_batch_size"):
        assert setup.samples_per_step % size == 0
        assert size % setup.policy.dp == 0
    assert max(sizes("policy.train_micro_batch_size")) == setup.global_batch // setup.policy.dp
    assert max(sizes("teacher.logprob_batch_size")) == setup.samples_per_step // setup.teacher.dp
    for size in sizes("policy.make_sequence_length_divisible_by"):
        assert size % setup.policy.required_divisor == 0
    for count in sizes("distillation.num_prompts_per_step"):
        assert count * setup.samples_per_step // 64 % setup.global_batch == 0
    assert sizes("policy.model_name") == ()
    assert sizes("policy.dtensor_cfg.enabled") == ()
