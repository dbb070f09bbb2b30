"""What a release refuses, or what ends its run later, is found in that release, and blamed on its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.checks import Checker, Inputs
from tests.checks.releases import RELEASES, release

MEGATRON = (
    "policy.dtensor_cfg.enabled=false",
    "policy.megatron_cfg.enabled=true",
    *(
        f"policy.megatron_cfg.{axis}_parallel_size=1"
        for axis in ("tensor_model", "pipeline_model", "context")
    ),
    "policy.dynamic_batching.enabled=false",
)
EXPERTS = ("policy.model_name=Qwen/Qwen3-30B-A3B", "teacher.model_name=Qwen/Qwen3-30B-A3B")
APART = (
    "policy.generation.colocated.enabled=false",
    "policy.generation.colocated.resources.gpus_per_node=4",
    "teacher.dtensor_cfg.context_parallel_size=1",
)
STUDENT, CORE = "policy.dtensor_cfg", "policy.megatron_cfg"
ENGINE, RESOURCES = "policy.generation.vllm_cfg", "policy.generation.colocated.resources"
STATIC = ("policy.dynamic_batching.enabled=false", "teacher.dynamic_batching.enabled=false")
ALL, NEW, SIX = RELEASES, RELEASES[3:], RELEASES[2:]

# Overrides of the release's base recipe, the last one of which is wrong; the rule and the key it blames.
ILLEGAL: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (("policy.train_global_batch_size=48",), "C22", ALL),
    (("policy.train_global_batch_size=1",), "C23", ALL),
    ((*STATIC, "policy.train_micro_batch_size=3"), "C26", ALL),
    ((*STATIC, "teacher.logprob_batch_size=5"), "C36 C26", ALL),
    (("policy.dynamic_batching.train_mb_tokens=1024",), "C24", ALL),
    (("policy.sequence_packing.enabled=true",), "C43 C45", ALL),
    ((f"{STUDENT}.sequence_parallel=true",), "C46", ALL),
    (("policy.megatron_cfg.enabled=true",), "C33", ALL),
    ((f"{STUDENT}.enabled=false",), "C33", ALL),
    ((f"{STUDENT}.context_parallel_size=8",), "C34", ALL),
    (("cluster.num_nodes=3", f"{STUDENT}.tensor_parallel_size=5"), "C35 C37", ALL),
    ((f"{STUDENT}.tensor_parallel_size=0",), "C90", ALL),
    (("policy.make_sequence_length_divisible_by=2",), "C28", ALL),
    (("teacher.precision=bf16",), "C51", ALL),
    ((*MEGATRON, f"{CORE}.context_parallel_size=2"), "C53", ALL),
    ((*MEGATRON, "policy.logprob_chunk_size=256"), "C55", ALL),
    (
        (
            *MEGATRON,
            f"{CORE}.optimizer.optimizer_cpu_offload=true",
            f"{CORE}.optimizer.optimizer_offload_fraction=0",
        ),
        "C56",
        ALL,
    ),
    ((*MEGATRON, f"{CORE}.pipeline_model_parallel_size=8"), "C75", ALL),
    ((*MEGATRON, f"{CORE}.pipeline_dtype=bf16"), "C51", ALL),
    ((*MEGATRON, f"{CORE}.expert_model_parallel_size=2"), "C91", ALL),
    ((*MEGATRON, *EXPERTS, f"{CORE}.expert_model_parallel_size=16"), "C91", ALL),
    ((*MEGATRON, f"{CORE}.optimizer.min_lr=1.0e-3"), "C92", ALL),
    ((*MEGATRON, f"{CORE}.scheduler.lr_warmup_init=1.0e-3"), "C92", ALL),
    ((*MEGATRON, f"{CORE}.scheduler.lr_decay_style=cosne"), "C92", ALL),
    ((*MEGATRON, f"{CORE}.optimizer.optimizer=adamw"), "C92", ALL),
    (("policy.optimizer.name=torch.optim.AdmW",), "C68", ALL),
    (("++policy.optimizer.kwargs.learning_rate=1.0e-5",), "C68", ALL),
    (("policy.optimizer.kwargs.lr=-1.0",), "C68", ALL),
    (("policy.scheduler=null",), "C68", ALL),
    ((f"{ENGINE}.tensor_parallel_size=3",), "C38", ALL),
    ((f"{ENGINE}.pipeline_parallel_size=2",), "C39", ALL),
    ((f"{ENGINE}.expert_parallel_size=2",), "C40", ALL),
    ((f"~{ENGINE}.gpu_memory_utilization",), "C42", ALL),
    ((f"{ENGINE}.gpu_memory_utilization=60",), "C78", ALL),
    ((f"{ENGINE}.max_model_len=100000",), "C65", ALL),
    ((f"{ENGINE}.precision=bf16",), "C51", ALL),
    (("policy.generation.vllm_kwargs=null",), "C42", SIX),
    (("policy.generation.top_p=1.5",), "C41", SIX),
    (("policy.generation.top_k=50",), "C41", RELEASES[:2]),
    (("policy.generation.backend=sglang",), "C71", ALL),
    (("policy.generation.temperature=-1.0",), "C90", ALL),
    ((*APART, f"{RESOURCES}.num_nodes=2"), "C59", ALL),
    ((*APART, f"{RESOURCES}.gpus_per_node=8"), "C59", ALL),
    (("cluster.num_nodes=2", *APART, f"{RESOURCES}.num_nodes=null"), "C60", ALL),
    ((*APART, f"{ENGINE}.tensor_parallel_size=8"), "C38", ALL),
    (("checkpointing.metric_name=val_accuracy",), "C19", ALL),
    (("checkpointing.metric_name='val:acuracy'",), "C20", ALL),
    (("checkpointing.save_period=0",), "C21", ALL),
    (("checkpointing.checkpoint_must_save_by='3h'",), "C18", ALL),
    (("++checkpointing.model_save_format=pickle",), "C69", ALL),
    (("loss_fn.kl_type=revers",), "C16", ALL),
    (("loss_fn.mixed_kl_weight=2",), "C16", ALL),
    (("distillation.topk_logits_k=0",), "C17", ALL),
    (("distillation.val_batch_size=0",), "C79", ALL),
    (("distillation.max_num_steps=0",), "C80", ALL),
    (("distillation.num_prompts_per_step=1000000",), "C31", ALL),
    (("cluster.gpus_per_node=0",), "C90", ALL),
    (("distillation.seed=-1",), "C90", ALL),
    (("teacher.model_name=meta-llama/Llama-3.1-8B",), "C64", ALL),
    (("++policy.tokenizer.chat_template=absent.jinja",), "C11", ALL),
    (("~checkpointing.keep_top_k",), "C5", ALL),
    (("~logger.wandb",), "C4 C5", ALL),
    ((*MEGATRON, f"~{CORE}.scheduler"), "C5", ALL),
    ((*MEGATRON, f"~{CORE}.distributed_data_parallel_config.overlap_grad_reduce"), "C5", ALL),
    ((f"{ENGINE}.pipeline_parallel_size=null",), "C42", ALL),
    (("~policy.max_grad_norm",), "C3", ALL),
    (("++data.train.dataset_name=DeepScalr",), "C10", SIX),
    (("data.dataset_name=DeepScalr",), "C10", RELEASES[:2]),
    (("data.default.prompt_file=nowhere.txt",), "C11", SIX),
    (("data.default.env_name=maths",), "C12", SIX),
    (("data.validation=null",), "C13", SIX),
    (("++policy.draft.enabled=true",), "C67", SIX),
    (("++teacher.draft.enabled=true",), "C67", SIX),
    (("++policy.hf_config_overrides.rope_scaling.rope_type=yarn",), "C50", SIX),
    (("policy.max_total_sequence_length=long",), "C4", NEW),
    (("distillation.val_period=often",), "C4", NEW),
    ((f"++{STUDENT}.env_vars={{NCCL_DEBUG:1}}",), "C4", NEW),
    ((f"++{STUDENT}.lora_cfg.enabled=true", f"{STUDENT}._v2=false"), "C52", SIX),
    ((f"++{STUDENT}.expert_parallel_size=3",), "C91", RELEASES[1:]),
    ((f"{STUDENT}.context_parallel_size=1", f"++{STUDENT}.dp_replicate_size=4"), "C52", NEW),
]


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in RELEASES[:-1]), RELEASES[-1]]
)
def test_each_wrong_setting_is_found_and_blamed_on_its_key(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    root = release(shared, tmp_path_factory, name)
    base = root / "examples" / "configs" / "distillation_math.yaml"
    environment = {"HF_HOME": "/nonexistent", "TORCH_CUDA_ARCH_LIST": "9.0"}
    checker = Checker(
        Inputs.of(environment=environment, checkout=root, cache=tmp_path_factory.mktemp("cache"))
    )
    unlike: dict[str, list[tuple[str, list[str]]]] = {}
    for overrides, ids, releases in ILLEGAL:
        if name not in releases:
            continue
        report = checker.check(base, overrides, verify_fixes=False)
        key = overrides[-1].lstrip("+~").partition("=")[0]
        found = [(result.id, [line.key for line in result.where]) for result in report.failing]
        blamed = [
            id_
            for id_, keys in found
            if id_ == "C3" or any(key.startswith(at) or at.startswith(key) for at in keys)
        ]
        if not set(blamed) & set(ids.split()):
            unlike[" ".join(overrides)] = found
    assert unlike == {}
