"""Every rule is broken once, by a change that breaks it and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from recipes.checks import RULES, ClusterRequest
from recipes.checks.rule_sources import SOURCES
from tests.checks.world import ENVIRONMENT, REQUEST, STUDENT, TOKENIZER, World

MEGATRON = tuple(
    f"{side}.{section}.enabled={value}"
    for side in ("policy", "teacher")
    for section, value in (("dtensor_cfg", "false"), ("megatron_cfg", "true"))
)
PACKED = ("policy.sequence_packing.enabled=true", "teacher.sequence_packing.enabled=true")
LORA = (
    "{enabled:true,target_modules:[],exclude_modules:[],dim:8,alpha:32,dropout:0.0,"
    "dropout_position:post,lora_A_init:xavier}"
)
GYM = ("++env.should_use_nemo_gym=true", "++env.nemo_gym={}", "distillation.max_val_samples=null")
GYM_ENGINE = tuple(
    f"++policy.generation.vllm_cfg.{name}=true" for name in ("async_engine", "expose_http_server")
)
APART = ("policy.generation.colocated.enabled=false", "teacher.dtensor_cfg.tensor_parallel_size=2")
ONE_APART = (*APART, "policy.generation.colocated.resources.gpus_per_node=2")
TWO_APART = (
    *APART,
    "cluster.num_nodes=2",
    "policy.generation.colocated.resources.num_nodes=1",
    "policy.generation.colocated.resources.gpus_per_node=4",
)

LORA_KERNEL = (f"++policy.dtensor_cfg.lora_cfg={LORA}", "++policy.dtensor_cfg.lora_cfg.use_triton=false")
THOUSAND = (
    "policy.make_sequence_length_divisible_by=2",
    "teacher.make_sequence_length_divisible_by=2",
    *(
        f"{key}=1000"
        for key in (
            "policy.max_total_sequence_length",
            "teacher.max_total_sequence_length",
            "policy.sequence_packing.train_mb_tokens",
            "teacher.sequence_packing.logprob_mb_tokens",
        )
    ),
)


def prepared(root: Path, *, file: str, text: str) -> None:
    """Write one file of the world."""
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@dataclass(frozen=True)
class Case:
    """A violation: overrides, files, environment; `offered` says that the recipe can be mended."""

    id: str
    overrides: tuple[str, ...] = ()
    setting: tuple[str, ...] = ()
    """What makes room for the violation and is legal alone."""
    files: dict[str, str] = field(default_factory=dict)
    change: Callable[[World], World] = lambda world: world
    outcome: str = "fail"
    offered: bool = True
    recipe: str = "recipe.yaml"
    refused: bool = False
    """Whether the classes refuse it as well, so that C4 finds it besides."""
    cut: str = ""
    """What is cut out of the recipe's text."""


def request(wanted: ClusterRequest) -> Callable[[World], World]:
    return lambda world: replace(world, request=wanted)


def without(name: str) -> Callable[[World], World]:
    def change(world: World) -> World:
        return replace(world, environment={key: value for key, value in ENVIRONMENT.items() if key != name})

    return change


def model(**values: object) -> str:
    return json.dumps({**STUDENT, **values})


NINES = ("distillation.num_prompts_per_step=72", "policy.train_global_batch_size=36")


def scheduler(name: str, kwargs: str) -> tuple[str, ...]:
    """One scheduler of torch, as a list, which the classes ask for."""
    entry = f"{{name:torch.optim.lr_scheduler.{name},kwargs:{kwargs}}}"
    return (f"++policy.scheduler=[{entry},{{milestones:[]}}]",)


THREE_NODES = (
    "cluster.num_nodes=3",
    "distillation.num_prompts_per_step=96",
    "policy.train_global_batch_size=96",
    "teacher.dtensor_cfg.tensor_parallel_size=1",
)
WIDE = ("policy.dtensor_cfg.tensor_parallel_size=1",)
TEACHER_ALONE = "teacher.dtensor_cfg.tensor_parallel_size=1"
LONG = (
    "policy.train_global_batch_size=64",
    "policy.max_total_sequence_length=16384",
    "teacher.max_total_sequence_length=16384",
    "policy.generation.vllm_cfg.max_model_len=16384",
)
LARGE_VOCABULARY = {f"models/{side}/config.json": model(vocab_size=151936) for side in ("student", "teacher")}
LARGE_STUDENT = {
    "models/student/config.json": model(
        num_hidden_layers=36, hidden_size=4096, num_attention_heads=32, head_dim=128, intermediate_size=12288
    )
}
CASES = [
    Case("C1", files={"child.yaml": "defaults: nowhere.yaml\n"}, recipe="child.yaml", offered=False),
    Case("C1", files={"child.yaml": "- a list\n"}, recipe="child.yaml", offered=False),
    Case("C1", files={"child.yaml": "a: *unknown\n"}, recipe="child.yaml", offered=False),
    Case(
        "C2",
        files={"child.yaml": "defaults: recipe.yaml\ncluster: {num_nodes: '${cluster.nodes}'}\n"},
        recipe="child.yaml",
        offered=False,
    ),
    Case("C3", ("policy.no_such_key=1",), offered=False),
    Case("C3", ("+cluster.num_nodes=1",), offered=False),
    Case("C4", ("policy.max_total_sequence_length=long",), offered=False),
    Case("C4", ("checkpointing.keep_top_k=null",), offered=False),
    Case("C4", ("~policy.precision",)),
    Case("C4", ("++policy.dtensor_cfg.env_vars={NCCL_DEBUG:1}",)),
    Case("C4", ("~loss_fn",), offered=False),
    Case("C4", ("logger.wandb_enabled=maybe",), offered=False),
    Case("C5", cut="  checkpoint_must_save_by: null\n"),
    Case("C5", ("~logger.gpu_monitoring.flush_interval",), refused=True),
    Case("C5", ("~policy.generation.colocated",), offered=False),
    Case("C5", ("~policy.generation.vllm_kwargs",), offered=False),
    Case("C5", ("~policy.generation.vllm_cfg.enforce_eager",), offered=False),
    Case("C5", ("~teacher.max_grad_norm",), offered=False),
    Case("C5", ("~policy.offload_optimizer_for_logprob",), MEGATRON, offered=False),
    Case("C6", ("policy.generation=null",), offered=False, refused=True),
    Case("C7", ("++policy.generation.refit_transport=vllm_s3_sparse",)),
    Case("C8", ("policy.dtensor_cfg.sequence_parallel=true",), PACKED),
    Case("C9", ("~data.train",), offered=False, refused=True),
    Case("C10", ("data.train.dataset_name=ResponsDataset",)),
    Case("C11", ("data.default.prompt_file=prompts/absent.txt",)),
    Case("C12", ("data.default.env_name=code",)),
    Case("C12", ("data.default.env_name=mine", "++env.mine.a=1"), offered=False),
    Case("C13", ("data.validation=null",)),
    Case("C14", ("distillation.max_val_samples=null",)),
    Case("C15", ("distillation.max_val_samples=5",), (*GYM, *GYM_ENGINE)),
    Case("C15", (), GYM, outcome="warn"),
    Case("C16", ("loss_fn.kl_type=revers",)),
    Case("C16", ("loss_fn.mixed_kl_weight=1.5",)),
    Case("C17", ("distillation.topk_logits_k=0",)),
    Case("C18", ("checkpointing.checkpoint_must_save_by=216000",), refused=True),
    Case("C18", ("checkpointing.checkpoint_must_save_by='03:45:00'",)),
    Case(
        "C18",
        ("checkpointing.checkpoint_must_save_by='00:03:55:00'",),
        change=request(replace(REQUEST, time_s=4 * 3600)),
        outcome="warn",
    ),
    Case("C19", ("checkpointing.metric_name=accuracy",)),
    Case("C20", ("checkpointing.metric_name='val:loss'",)),
    Case("C20", ("distillation.val_period=0",), outcome="warn"),
    Case("C21", ("checkpointing.save_period=0",)),
    Case("C22", ("policy.train_global_batch_size=48",)),
    Case("C23", ("policy.train_global_batch_size=1",)),
    Case(
        "C24",
        ("teacher.dynamic_batching.logprob_mb_tokens=1024",),
        ("teacher.dynamic_batching.enabled=true",),
    ),
    Case("C25", ("policy.sequence_packing.train_mb_tokens=1024",), PACKED),
    Case("C26", ("policy.train_micro_batch_size=3",)),
    Case("C27", ("policy.sequence_packing.microbatch_order=random",), PACKED),
    Case(
        "C28",
        ("policy.make_sequence_length_divisible_by=2",),
        ("policy.dtensor_cfg.context_parallel_size=2",),
    ),
    Case(
        "C29",
        ("policy.make_sequence_length_divisible_by=3",),
        (
            *MEGATRON,
            *PACKED,
            "policy.megatron_cfg.context_parallel_size=2",
            "policy.max_total_sequence_length=1536",
        ),
    ),
    Case("C31", files={"data/train.jsonl": "{}\n" * 40}),
    Case("C32", files={"results/step_100/config.yaml": "a: 1\n"}),
    Case("C32", files={"results/step_7/config.yaml": "policy: {model_name: other}\n"}, outcome="warn"),
    Case("C33", ("policy.megatron_cfg.enabled=true",)),
    Case("C33", ("teacher.dtensor_cfg.enabled=false",)),
    Case("C34", ("policy.dtensor_cfg.context_parallel_size=4",)),
    Case(
        "C35",
        ("policy.dtensor_cfg.context_parallel_size=3",),
        (
            "cluster.num_nodes=2",
            "policy.make_sequence_length_divisible_by=24",
            "policy.max_total_sequence_length=1920",
        ),
    ),
    Case("C36", ("teacher.logprob_batch_size=2",)),
    Case("C37", (), files={"models/teacher/config.json": model(num_key_value_heads=2)}),
    Case("C38", ("policy.generation.vllm_cfg.tensor_parallel_size=8",)),
    Case("C39", ("policy.generation.vllm_cfg.pipeline_parallel_size=2",)),
    Case(
        "C40",
        ("policy.generation.vllm_cfg.expert_parallel_size=3",),
        ("policy.generation.vllm_cfg.tensor_parallel_size=2",),
    ),
    Case(
        "C40",
        ("policy.generation.vllm_cfg.expert_parallel_size=4", "policy.generation.vllm_cfg.async_engine=true"),
    ),
    Case("C41", ("policy.generation.top_p=0.0",)),
    Case("C41", ("policy.generation.top_k=0",)),
    Case("C42", ("~policy.generation.vllm_cfg.expert_parallel_size",)),
    Case("C43", ("policy.dynamic_batching.enabled=true",), PACKED),
    Case(
        "C44",
        ("policy.dynamic_batching.enabled=true",),
        (*MEGATRON, "policy.megatron_cfg.pipeline_model_parallel_size=2"),
    ),
    Case("C45", ("policy.sequence_packing.enabled=true",), ("policy.dtensor_cfg.context_parallel_size=2",)),
    Case(
        "C46", ("policy.dtensor_cfg.sequence_parallel=true",), ("policy.dtensor_cfg.context_parallel_size=2",)
    ),
    Case(
        "C47",
        (),
        ("policy.dtensor_cfg.context_parallel_size=2",),
        files={"models/student/config.json": model(model_type="gemma3")},
    ),
    Case(
        "C48",
        ("policy.dtensor_cfg.sequence_parallel=true",),
        ("policy.dtensor_cfg.tensor_parallel_size=1",),
        outcome="warn",
    ),
    Case("C49", ("++policy.dtensor_cfg.automodel_kwargs.attn_implementation=sdpa",), PACKED),
    Case("C50", ("++policy.hf_config_overrides.rope_scaling.rope_type=yarn",)),
    Case("C51", ("policy.precision=bf16",)),
    Case(
        "C52",
        (f"++policy.dtensor_cfg.lora_cfg={LORA}", "policy.dtensor_cfg._v2=false"),
        ("checkpointing.model_save_format=null",),
    ),
    Case("C52", ("++policy.dtensor_cfg.dp_replicate_size=3",)),
    Case("C53", ("policy.megatron_cfg.context_parallel_size=2",), MEGATRON),
    Case("C54", (), MEGATRON, change=without("TORCH_CUDA_ARCH_LIST"), offered=False),
    Case("C55", ("policy.logprob_chunk_size=512",), MEGATRON),
    Case("C56", ("policy.megatron_cfg.optimizer.optimizer_cpu_offload=true",), MEGATRON),
    Case("C57", ("policy.megatron_cfg.optimizer.bf16=false",), MEGATRON),
    Case("C85", ("++teacher.megatron_cfg.attention_backend=flashy",), MEGATRON),
    Case(
        "C86",
        ("policy.megatron_cfg.distributed_data_parallel_config.overlap_param_gather=true",),
        (
            *MEGATRON,
            "policy.megatron_cfg.distributed_data_parallel_config.overlap_param_gather=false",
            "++policy.megatron_cfg.use_fused_linear_logprobs=true",
        ),
    ),
    Case(
        "C86",
        ("++policy.megatron_cfg.use_fused_linear_logprobs=true",),
        (
            *MEGATRON,
            *PACKED,
            "policy.megatron_cfg.distributed_data_parallel_config.overlap_param_gather=false",
            "policy.megatron_cfg.context_parallel_size=2",
            "policy.make_sequence_length_divisible_by=4",
        ),
    ),
    Case("C87", ("++policy.megatron_cfg.fine_grained_activation_offloading=true",), MEGATRON),
    Case(
        "C87",
        ("++policy.megatron_cfg.offload_modules=[core_attn,moe_act]",),
        (
            *MEGATRON,
            "++policy.megatron_cfg.fine_grained_activation_offloading=true",
            "++policy.megatron_cfg.offload_modules=[core_attn]",
        ),
    ),
    Case(
        "C88",
        recipe="child.yaml",
        files={
            "child.yaml": "defaults: recipe.yaml\npolicy:\n  train_global_batch_size: ${add:32,32}\n",
            "nemo_rl/utils/config.py": 'OmegaConf.register_new_resolver("mul", lambda a, b: a * b)\n',
        },
        change=request(replace(REQUEST, submitting=False)),
        outcome="warn",
    ),
    Case(
        "C89",
        recipe="child.yaml",
        files={
            "child.yaml": "defaults: deep/parent.yaml\n",
            "deep/parent.yaml": "defaults: ../recipe.yaml\n",
            "examples/run_distillation.py": "",
            "nemo_rl/utils/config.py": "def load_config_with_inheritance(parent_path, base_dir): ...\n",
            "nemo_rl/algorithms/distillation.py": "",
        },
        change=request(replace(REQUEST, submitting=False)),
        outcome="warn",
        offered=False,
    ),
    Case("C58", ("policy.generation.backend=megatron",), ONE_APART),
    Case("C59", ("policy.generation.colocated.resources.gpus_per_node=4",), ONE_APART),
    Case("C59", ("policy.generation.colocated.resources.gpus_per_node=null",), ONE_APART),
    Case("C59", ("policy.generation.colocated.resources.num_nodes=2",), ONE_APART),
    Case("C60", ("policy.generation.colocated.resources.num_nodes=null",), TWO_APART),
    Case("C60", ("policy.generation.colocated.resources.num_nodes=2",), TWO_APART),
    Case("C60", ("cluster.num_nodes=2", "policy.generation.colocated.resources.num_nodes=1"), ONE_APART),
    Case("C61", change=request(replace(REQUEST, node_cpus=8)), offered=False),
    Case("C61", ("cluster.num_nodes=2",), change=request(replace(REQUEST, available_nodes=1))),
    Case("C62", ("cluster.gpus_per_node=8",)),
    Case("C63", ("cluster.segment_size=3",)),
    Case("C63", ("cluster.segment_size=1",), outcome="warn"),
    Case(
        "C64",
        files={"models/teacher/tokenizer.json": json.dumps({**TOKENIZER, "model": {"vocab": {"a": 0}}})},
        offered=False,
    ),
    Case("C64", files={"models/teacher/config.json": model(vocab_size=1008)}, offered=False),
    Case("C65", ("policy.generation.vllm_cfg.max_model_len=32768",)),
    Case("C66", ("data.train.data_path=data/train.json",), offered=False),
    Case("C67", ("++policy.draft.enabled=true",)),
    Case("C67", ("++policy.draft.enabled=true",), (*MEGATRON, *PACKED)),
    Case("C68", ("++policy.scheduler=null",)),
    Case(
        "C68",
        ("++policy.scheduler=[{name:torch.optim.lr_scheduler.ConstantLR,kwargs:{}},{milestones:[10]}]",),
    ),
    Case("C68", ("++policy.optimizer.kwargs.learning_rate=1",)),
    Case("C68", ("policy.optimizer.name=AdamW",)),
    Case("C69", ("policy.dtensor_cfg._v2=false",)),
    Case("C69", ("policy.dtensor_cfg._v2=false",), MEGATRON),
    Case("C70", ("++teacher.resources.num_nodes=1",), outcome="unknown", offered=False),
    Case("C71", ("policy.generation.backend=sglang",)),
    Case("C72", ("++policy.dtensor_cfg.lora_cfg.use_triton=true",), LORA_KERNEL),
    Case("C73", ("++policy.generation.refit_transport=ipc",)),
    Case("C73", ("++policy.generation.refit_transport=nixl",)),
    Case("C73", ("++policy.generation.refit_transport='my.module:Engine'",)),
    Case("C73", ("++policy.generation.checkpoint_engine.enabled=true",)),
    Case(
        "C74",
        ("policy.generation.vllm_cfg.tensor_parallel_size=4",),
        files={"models/student/config.json": model(num_attention_heads=14, num_key_value_heads=2)},
    ),
    Case(
        "C75",
        ("policy.megatron_cfg.tensor_model_parallel_size=4",),
        MEGATRON,
        files={"models/student/config.json": model(num_attention_heads=14, num_key_value_heads=2)},
    ),
    Case(
        "C75",
        ("policy.megatron_cfg.pipeline_model_parallel_size=2",),
        MEGATRON,
        files={"models/student/config.json": model(num_hidden_layers=13)},
    ),
    Case("C76", ("policy.sequence_packing.algorithm=best_fit",), PACKED),
    Case("C77", ("++checkpointing.ft_save_period=0",)),
    Case("C78", ("policy.generation.vllm_cfg.gpu_memory_utilization=0",)),
    Case("C78", ("policy.generation.vllm_cfg.gpu_memory_utilization=1.5",)),
    Case("C79", ("distillation.val_batch_size=0",)),
    Case("C80", ("distillation.max_num_steps=0",)),
    Case("C25", ("teacher.make_sequence_length_divisible_by=16",), (*PACKED, *THOUSAND)),
    Case("C51", ("policy.precision=float32",), MEGATRON),
    Case("C51", ("policy.precision=bf16",), MEGATRON),
    Case("C56", ("++policy.megatron_cfg.optimizer.overlap_cpu_optimizer_d2h_h2d=true",), MEGATRON),
    Case("C56", ("teacher.megatron_cfg.optimizer.optimizer_cpu_offload=true",), MEGATRON),
    Case("C81", files=LARGE_STUDENT, outcome="warn"),
    Case("C82", ("loss_fn.zero_outside_topk=true",), WIDE, files=LARGE_VOCABULARY, outcome="warn"),
    Case("C83", ("cluster.gpus_per_node=1",), (*WIDE, TEACHER_ALONE), files=LARGE_STUDENT, outcome="warn"),
    Case("C84", ("policy.dtensor_cfg.context_parallel_size=2",), (*WIDE, *LONG), outcome="warn"),
    Case("C11", ("++policy.tokenizer.chat_template=absent.jinja",)),
    Case(
        "C14",
        ("distillation.max_val_samples=16",),
        files={
            "nemo_rl/algorithms/distillation.py": 'batches = c["max_val_samples"] // c["val_batch_size"]\n',
            "examples/run_distillation.py": "",
        },
        outcome="warn",
    ),
    Case("C20", ("checkpointing.metric_name='train:los'",), outcome="warn"),
    Case(
        "C28",
        ("policy.make_sequence_length_divisible_by=1",),
        (*MEGATRON, "policy.megatron_cfg.sequence_parallel=true"),
    ),
    Case("C36", ("teacher.logprob_batch_size=null",), refused=True),
    Case(
        "C38",
        ("policy.generation.vllm_cfg.pipeline_parallel_size=3",),
        (*WIDE, *THREE_NODES, "policy.generation.vllm_cfg.async_engine=true"),
    ),
    Case("C40", ("policy.generation.vllm_cfg.expert_parallel_size=2",)),
    Case(
        "C40",
        ("policy.generation.vllm_cfg.expert_parallel_size=8",),
        files={"models/student/config.json": model(num_experts=16, moe_intermediate_size=768)},
    ),
    Case("C42", ("policy.generation.vllm_kwargs=null",)),
    Case("C42", ("policy.generation.vllm_cfg.pipeline_parallel_size=null",)),
    Case("C50", ("++policy.hf_config_overrides.rope_scaling={rope_type:yarn,factor:2.0}",), MEGATRON),
    Case("C51", ("policy.generation.vllm_cfg.precision=bf16",)),
    Case("C51", ("policy.megatron_cfg.pipeline_dtype=bf16",), MEGATRON),
    Case("C52", ("++policy.dtensor_cfg.dp_replicate_size=2",)),
    Case("C67", ("++teacher.draft.enabled=true",)),
    Case("C68", ("policy.optimizer.name=torch.optim.AdamWW",)),
    Case("C68", ("policy.optimizer.kwargs.lr=-1.0e-5",)),
    Case("C68", ("policy.optimizer.kwargs.betas=[0.9,1.0]",)),
    Case("C68", scheduler("LinearLRR", "{}")),
    Case("C68", scheduler("LinearLR", "{total_iter:5}")),
    Case("C68", scheduler("StepLR", "{}"), offered=False),
    Case("C68", scheduler("LinearLR", "{start_factor:0.0}")),
    Case("C69", ("checkpointing.model_save_format=pickle",)),
    Case(
        "C74",
        ("policy.generation.vllm_cfg.tensor_parallel_size=3",),
        (*WIDE, *THREE_NODES, "cluster.gpus_per_node=3", *NINES),
        files={"models/student/config.json": model(num_attention_heads=12, num_key_value_heads=2)},
    ),
    Case("C90", ("policy.train_global_batch_size=0",)),
    Case("C90", ("policy.train_micro_batch_size=0",)),
    Case("C90", ("cluster.num_nodes=0",)),
    Case("C90", ("policy.dtensor_cfg.tensor_parallel_size=0",)),
    Case("C90", ("policy.generation.temperature=-0.5",)),
    Case("C90", ("env.math.num_workers=0",)),
    Case("C91", ("policy.megatron_cfg.expert_model_parallel_size=2",), MEGATRON),
    Case("C91", ("teacher.megatron_cfg.expert_tensor_parallel_size=8",), MEGATRON),
    Case("C91", ("++policy.dtensor_cfg.expert_parallel_size=3",)),
    Case(
        "C91",
        MEGATRON,
        files={"models/student/config.json": model(num_experts=16, moe_intermediate_size=768)},
    ),
    Case("C92", ("policy.megatron_cfg.optimizer.min_lr=2.0e-5",), MEGATRON),
    Case("C92", ("policy.megatron_cfg.scheduler.lr_decay_style=cosne",), MEGATRON),
    Case("C92", ("policy.megatron_cfg.scheduler.end_weight_decay=0.1",), MEGATRON),
    Case("C92", ("policy.megatron_cfg.optimizer.optimizer=adamw",), MEGATRON),
    Case(
        "C92",
        ("policy.megatron_cfg.scheduler.lr_warmup_iters=50",),
        (*MEGATRON, "++policy.megatron_cfg.scheduler.lr_decay_iters=50"),
        outcome="warn",
    ),
    Case("C61", APART[:1], ONE_APART, change=request(replace(REQUEST, node_cpus=11)), offered=False),
]


@pytest.fixture(scope="module")
def legal(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world that no test changes."""
    return World.at(tmp_path_factory.mktemp("legal"))


def test_the_base_recipe_is_legal(legal: World) -> None:
    report = legal.check()
    assert {result.outcome for result in report.results} == {"pass"}
    assert len({result.id for result in report.results}) == 92


def test_every_rule_has_a_violation() -> None:
    never = {id_ for id_, source in SOURCES.items() if source.never}
    assert never == {"C30"}
    assert {rule.id for rule in RULES} - never == {case.id for case in CASES}
    assert [rule.id for rule in RULES] == [f"C{number}" for number in range(1, 93)]


def test_a_refused_value_is_reported_where_it_is_written(tmp_path: Path) -> None:
    world = World.at(tmp_path)
    text = "defaults: recipe.yaml\ndistillation: {val_period: often, val_batch_size: '${.val_period}'}\n"
    prepared(world.root, file="child.yaml", text=text)
    report = world.check(recipe="child.yaml", verify=False)
    assert [line.key for result in report.of("C4") for line in result.where] == ["distillation.val_period"]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id}:{','.join(case.overrides)[:40]}")
def test_a_violation_is_found_by_its_rule_alone_and_its_fixes_work(
    legal: World, tmp_path: Path, case: Case
) -> None:
    world = World.at(tmp_path) if case.files or case.cut else legal
    if case.setting and (case.outcome == "fail" or case.overrides):
        allowed = legal.check(case.setting, verify=False)
        assert [r.id for r in allowed.failing] == [] or case.files, (
            "the setting is legal without the violation"
        )
    for file, text in case.files.items():
        prepared(world.root, file=file, text=text)
    recipe = world.root / case.recipe
    if case.cut:
        recipe.write_text(recipe.read_text().replace(case.cut, ""))
    changed = case.change(world)
    overrides = (*case.setting, *case.overrides)
    report = changed.check(overrides, recipe=case.recipe)
    wrong = {result.id for result in report.results if result.outcome == "fail"}
    doubted = {result.id for result in report.results if result.outcome == "warn"}
    if case.id == "C4":
        wrong -= {"C5"}  # a key that the classes require may be read without a default, too
    if case.refused:
        assert "C4" in wrong
        wrong -= {"C4"}
    if case.outcome == "fail":
        assert wrong == {case.id}, [result.message for result in report.failing]
    elif case.outcome == "warn":
        assert (wrong, doubted) == (set(), {case.id})
    else:
        assert {result.id for result in report.results if result.outcome == case.outcome} == {case.id}
    several = len(report.of(case.id)) > 1
    for result in report.of(case.id):
        assert result.message
        assert result.foretells or case.outcome == "unknown"
        assert result.fixes or not case.offered, "a fix is offered"
        assert result.where or case.id in ("C54", "C3", "C2"), "the place is named"
        for fix in result.fixes[:1]:
            after = changed.check((*overrides, *fix.overrides()), recipe=case.recipe, verify=False)
            left = {r.id for r in after.results if r.outcome == case.outcome}
            assert left <= ({case.id} if several else set()), (fix.title, left)
