"""A checkout-like directory in which the base recipe is legal, and ways to ask for checks there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from recipes.checks import Checker, ClusterRequest, Inputs, Report
from recipes.inheritance import Resolver

BASE = Path(__file__).parent / "base.yaml"
STUDENT = {
    "model_type": "qwen3",
    "num_hidden_layers": 12,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "intermediate_size": 3072,
    "vocab_size": 1000,
    "tie_word_embeddings": True,
    "max_position_embeddings": 16384,
}
TEACHER = {**STUDENT, "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 32}
TOKENIZER = {"model": {"vocab": {"a": 0, "b": 1, "c": 2}}, "added_tokens": []}
ENVIRONMENT = {
    "TORCH_CUDA_ARCH_LIST": "8.0",
    "HOME": "/nonexistent",
    "HF_HOME": "/nonexistent",
    "HF_HUB_OFFLINE": "1",
}
WORKERS = (
    "nemo_rl.models.generation.vllm.vllm_worker.VllmGenerationWorker",
    "nemo_rl.models.generation.vllm.vllm_worker_async.VllmAsyncGenerationWorker",
    "nemo_rl.models.policy.workers.dtensor_policy_worker.DTensorPolicyWorker",
    "nemo_rl.models.policy.workers.dtensor_policy_worker_v2.DTensorPolicyWorkerV2",
    "nemo_rl.models.policy.workers.megatron_policy_worker.MegatronPolicyWorker",
    "nemo_rl.environments.nemo_gym.NemoGym",
)
REQUEST = ClusterRequest(node_gpus=4, node_cpus=48, available_nodes=8, submitting=True)


@dataclass(frozen=True)
class World:
    """A directory with models, data and prompts, where recipes are checked."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    request: ClusterRequest = REQUEST
    resolver: Resolver = field(default_factory=Resolver)

    @classmethod
    def at(cls, root: Path) -> World:
        """Make one."""
        for name, config in (("student", STUDENT), ("teacher", TEACHER)):
            folder = root / "models" / name
            folder.mkdir(parents=True)
            (folder / "config.json").write_text(json.dumps(config))
            (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
            (folder / "model.safetensors").write_bytes(b"")
        (root / "data").mkdir()
        (root / "data" / "train.jsonl").write_text('{"x": 1}\n' * 4096)
        (root / "data" / "validation.jsonl").write_text('{"x": 1}\n' * 64)
        for name in WORKERS:
            (root / "venvs" / name / "bin").mkdir(parents=True)
            (root / "venvs" / name / "bin" / "python").touch()
        (root / "prompts").mkdir()
        (root / "prompts" / "plain.txt").write_text("{}")
        shutil.copy(BASE, root / "recipe.yaml")
        return cls(root)

    def check(
        self, overrides: Sequence[str] = (), *, recipe: str = "recipe.yaml", verify: bool = True
    ) -> Report:
        """Check a recipe of this directory."""
        inputs = Inputs.of(environment=self.environment, checkout=self.root, request=self.request)
        return Checker(inputs, self.resolver).check(self.root / recipe, overrides, verify_fixes=verify)
