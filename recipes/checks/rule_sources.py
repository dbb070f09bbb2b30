"""Where in NeMo-RL each rule's failure comes from, and which form of a rule a checkout has.

A rule applies to a checkout only where its source is in it; no release number is asked, since forks have none
and the main branch's is wrong. Verified against v0.4.0, v0.5.0, v0.6.0, v0.7.0 and the main branch of August
2026 (`python -m recipes.checks.releases`).
"""

from __future__ import annotations

from dataclasses import dataclass

_CONFIG = ("utils/config.py",)
_DISTILLATION = ("algorithms/distillation.py",)
_CHECKPOINT = ("utils/checkpoint.py",)
_POLICY = ("models/policy/lm_policy.py",)
_BATCHES = ("distributed/batched_data_dict.py",)
_PACKING = ("data/packing/algorithms.py",)
_CLUSTER = ("distributed/virtual_cluster.py",)
_VLLM = ("models/generation/vllm/vllm_generation.py",)
_VLLM_CONFIG = ("models/generation/vllm/config.py",)
_DATA = ("data/utils.py",)
_LOSS = ("algorithms/loss/loss_functions.py", "algorithms/loss_functions.py")
_DTENSOR = (
    "models/automodel/setup.py",
    "models/policy/workers/dtensor_policy_worker_v2.py",
    "models/policy/workers/dtensor_policy_worker.py",
    "models/policy/dtensor_policy_worker_v2.py",
    "models/policy/dtensor_policy_worker.py",
)
_MEGATRON = (
    "models/megatron/setup.py",
    "models/policy/workers/megatron_policy_worker.py",
    "models/policy/megatron_policy_worker.py",
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a rule stands on.

    `quote` is a piece of a text that NeMo-RL raises, asserts or prints, within one string literal. `code` is
    a regular expression for code that fails by itself, without a text of its own. `files` are the places
    since v0.4, below `nemo_rl/`. A `dependency` (torch, vLLM, …) raises what is not in the checkout.
    """

    files: tuple[str, ...] = ()
    quote: str = ""
    code: str = ""
    dependency: str = ""
    needs: str = ""
    """A feature without which the code is not reached."""
    never: str = ""
    """Why no run of distillation comes to it, in any release so far."""


SOURCES: dict[str, Anchor] = {
    "C1": Anchor(_CONFIG, code=r"def load_config_with_inheritance"),
    "C2": Anchor(_CONFIG, code=r"def load_config", dependency="OmegaConf"),
    "C3": Anchor(_CONFIG, quote="Failed to parse Hydra overrides"),
    "C4": Anchor(dependency="pydantic"),
    "C5": Anchor(_DISTILLATION, code=r"def setup\("),
    "C6": Anchor(_DISTILLATION, quote="A generation config in the PolicyConfig is required for distillation"),
    "C7": Anchor(_DISTILLATION, quote="Remote sparse refit is currently supported only by GRPO"),
    "C8": Anchor(
        _DISTILLATION, quote="Distillation does not support DTensor sequence parallel + sequence packing"
    ),
    "C9": Anchor(_DATA, quote="The dataset config structure is updated. Please refer to"),
    "C10": Anchor(("data/datasets/response_datasets/__init__.py",), quote="Unsupported "),
    "C11": Anchor(("data/interfaces.py",), quote="Prompt file "),
    "C12": Anchor(("environments/utils.py",), quote=" is not registered in ENV_REGISTRY"),
    "C13": Anchor(_DISTILLATION, quote="Validation dataset is required if validation is enabled"),
    "C14": Anchor(_DISTILLATION, code=r"max_val_samples\W[^/]*//"),
    "C15": Anchor(
        ("environments/nemo_gym.py", "algorithms/grpo.py"),
        quote="In order to use NeMo-Gym, you must use",
        needs="nemo-gym",
    ),
    "C16": Anchor(
        ("algorithms/loss/loss_functions.py", "algorithms/loss_functions.py"), quote="Invalid KL type"
    ),
    "C17": Anchor(
        ("distributed/model_utils.py", "algorithms/loss_functions.py"), quote="topk must be positive"
    ),
    "C18": Anchor(("utils/timer.py",), code=r"days, hours, minutes, seconds = map\(int, time_string\.split"),
    "C19": Anchor(_DISTILLATION, quote=" must start with 'val:' or 'train:'"),
    "C20": Anchor(_DISTILLATION, quote=" not found in "),
    "C21": Anchor(_DISTILLATION, code=r"% (?:\n\s*)?master_config[^=]{0,80}\"save_period\""),
    "C22": Anchor(_BATCHES, quote="is not a multiple of batch_size"),
    "C23": Anchor(_BATCHES, quote="is not a multiple of shards"),
    "C24": Anchor(_BATCHES, quote=", however max microbatch size is "),
    "C25": Anchor(_PACKING, quote=" exceeds bin capacity "),
    "C26": Anchor(_BATCHES, quote="is not a multiple of the provided microbatch size"),
    "C27": Anchor(_BATCHES, quote="sequence packing microbatch_order must be 'packer' or "),
    "C28": Anchor(dependency="torch"),
    "C29": Anchor(("models/megatron/data.py",), quote=") is not a multiple of minimum_pad_factor ("),
    "C30": Anchor(
        ("distributed/model_utils.py",),
        quote=" when using top-p/top-k sampling",
        never="only losses on log probabilities filter by top-k and top-p, the distillation loss does not",
    ),
    "C31": Anchor(_DISTILLATION, code=r"drop_last=True"),
    "C32": Anchor(_DISTILLATION, code=r"while .*total_steps.* < max_steps|for batch in dataloader"),
    "C33": Anchor(_POLICY, quote="Configure either Megatron (policy.megatron_cfg.enabled=true) or "),
    "C34": Anchor(_POLICY, quote=") is insufficient for the parallelism configuration. "),
    "C35": Anchor(_POLICY, quote=") must be divisible by PP * CP * TP ("),
    "C36": Anchor(
        _POLICY,
        quote="There is a known batch-variant accuracy issue with TP>=4 for both DTensor and Megatron",
    ),
    "C37": Anchor(("models/dtensor/parallelize.py",), quote=") must be divisible by TP size ("),
    "C38": Anchor(_VLLM, quote="World size must be a multiple of model parallel size. "),
    "C39": Anchor(_VLLM, quote="When pipeline_parallel_size > 1, async_engine must be set to True"),
    "C40": Anchor(_VLLM, quote="When EP > 1, EP must be a multiple of TP"),
    "C41": Anchor(_VLLM, quote="top_k "),
    "C42": Anchor(_VLLM, quote="VLLM Configuration Error: Missing required keys in VllmConfig."),
    "C43": Anchor(_POLICY, quote="Dynamic Batching is exclusive of Sequence Packing."),
    "C44": Anchor(_POLICY, quote="Dynamic batching is only supported for single pipeline parallel stage"),
    "C45": Anchor(_DTENSOR, quote="Context parallel is not supported for sequence packing."),
    "C46": Anchor(
        _DTENSOR,
        quote="It's a known issue that context parallel can't be used together with sequence parallel",
    ),
    "C47": Anchor(_DTENSOR, quote="Context parallel is not supported for Gemma3"),
    "C48": Anchor(_DTENSOR, quote="[WARNING]: sequence_parallel=True, but tp_size=1 which has no effect."),
    "C49": Anchor(_DTENSOR, quote="sequence_packing requires attn_implementation='flash_attention_2'"),
    "C50": Anchor(_DTENSOR, quote="YaRN RoPE scaling is not supported with the automodel (DTensor) backend."),
    "C51": Anchor(_DTENSOR, quote="Unknown precision: "),
    "C52": Anchor((*_POLICY, *_DTENSOR), quote="LoRA is not supported for DTensorPolicyWorker V1"),
    "C53": Anchor(_MEGATRON, quote="Sequence Packing must be enabled to use Context Parallelism with MCore"),
    "C54": Anchor(_POLICY, quote="TORCH_CUDA_ARCH_LIST is not set. This is required in Megatron backend."),
    "C55": Anchor(_MEGATRON, quote="defer_fp32_logits must be True if logprob_chunk_size is set"),
    "C56": Anchor(_MEGATRON, code=r"optimizer_offload_fraction"),
    "C57": Anchor(
        _MEGATRON, quote="policy.megatron_cfg.optimizer.bf16=True must be set if policy.precision=bfloat16"
    ),
    "C58": Anchor(
        _DISTILLATION, quote="Non-colocated inference is not supported for Megatron generation backends."
    ),
    "C59": Anchor(
        _DISTILLATION,
        quote="policy.generation.colocated.resources.gpus_per_node must be explicitly set to a value > 0 ",
    ),
    "C60": Anchor(_DISTILLATION, quote="policy.generation.colocated.resources.num_nodes must be > 0 "),
    "C61": Anchor(_CLUSTER, quote="Not enough GPUs available. Requested "),
    "C62": Anchor(_CLUSTER, quote="Timed out waiting for placement groups to be ready."),
    "C63": Anchor(_CLUSTER, quote="segment_size ("),
    "C64": Anchor(_DISTILLATION, quote="Token->ID mapping differs between student and teacher. "),
    "C65": Anchor(dependency="vLLM"),
    "C66": Anchor(dependency="transformers, datasets, uv"),
    "C67": Anchor(_POLICY, quote="policy.draft.enabled=true is only supported with the Megatron backend."),
    "C68": Anchor(_DTENSOR, quote="unknown scheduler config: "),
    "C69": Anchor(
        _POLICY, quote="model_save_format must be None or omitted if using DTensorPolicyWorker (_v2=False)."
    ),
    "C70": Anchor(dependency="the driver script"),
    "C71": Anchor(_DISTILLATION, code=r"elif backend == \"vllm\":\s"),
    "C72": Anchor(_DTENSOR, quote="Triton is not supported when tensor_parallel_size > 1"),
    "C73": Anchor(_VLLM_CONFIG, quote="Unknown vLLM refit transport "),
    "C74": Anchor(dependency="vLLM"),
    "C75": Anchor(dependency="Megatron-Core"),
    "C76": Anchor(_PACKING, quote="Unknown packing algorithm: "),
    "C77": Anchor(_DISTILLATION, code=r"% ft_save_period"),
    "C78": Anchor(dependency="vLLM"),
    "C79": Anchor(dependency="torch"),
    "C80": Anchor(_DISTILLATION, code=r"< max_steps|>= max_steps|max_num_steps"),
    "C81": Anchor(_DTENSOR[:1], code=r"nemo_automodel"),
    "C82": Anchor(_LOSS, code=r"zero_outside_topk"),
    "C83": Anchor(_DTENSOR, code=r"nemo_automodel"),
    "C84": Anchor(("models/automodel/train.py",), code=r"def automodel_forward_backward"),
    "C85": Anchor(_MEGATRON, quote="Invalid attention backend: "),
    "C86": Anchor(_MEGATRON, quote="Context Parallelism is not supported with linear CE fusion loss"),
    "C87": Anchor(_MEGATRON, quote="offload_modules must be a non-empty list when "),
    "C88": Anchor(dependency="OmegaConf"),
    "C89": Anchor(_CONFIG, code=r"def load_config_with_inheritance"),
    "C90": Anchor(dependency="Python, torch, vLLM"),
    "C91": Anchor(dependency="Megatron-Core, Automodel"),
    "C92": Anchor(dependency="Megatron-Core"),
}
"""By rule."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that makes a rule's form differ: `newest` tells whether the newest release has it."""

    files: tuple[str, ...]
    pattern: str
    newest: bool = True


FEATURES: dict[str, Feature] = {
    "validates": Feature(_DISTILLATION, r"class MasterConfig\(BaseModel"),
    "data.train": Feature(_DATA, r"The dataset config structure is updated"),
    "environment registry": Feature(("environments/utils.py",), r"def create_env"),
    "val_at_end": Feature(_DISTILLATION, r"val_at_end"),
    "nemo-gym": Feature(_DISTILLATION, r"should_use_nemo_gym"),
    "dataset paths": Feature(
        ("data/datasets/response_datasets/__init__.py",), r"elif \"\.\" in dataset_name"
    ),
    "packing pads by the recipe": Feature(
        _POLICY, r"sequence_length_pad_multiple = config\[\"make_sequence_length_divisible_by\"\]"
    ),
    "optimizer offload in part": Feature(_MEGATRON, r"0 < optimizer_offload_fraction <= 1"),
    "optimizer offload overlap": Feature(_MEGATRON, r"overlap_cpu_optimizer_d2h_h2d=True requires"),
    "Megatron precision": Feature(
        _MEGATRON, r"optimizer\.fp16=False must be set if policy\.precision=float32"
    ),
    "fused log probabilities": Feature(_MEGATRON, r"use_fused_linear_logprobs"),
    "sampling thresholds": Feature(_VLLM, r"TOP_K_THRESHOLD = ", newest=False),
    "Gemma3 by model type": Feature(_DTENSOR[:1], r"model_type == \"gemma3\""),
    "Qwen3.5": Feature(_DTENSOR[:1], r"model_type == \"qwen3_5\""),
    "experts in DTensor": Feature(_DTENSOR, r"expert_parallel_size"),
    "validation rounds up": Feature(_DISTILLATION, r"max_val_samples\W+\+"),
    "YaRN's fields": Feature(_MEGATRON, r"_YARN_REQUIRED_FIELDS"),
    "replicas": Feature(_POLICY, r"dp_replicate_size > 1 requires"),
    "LoRA": Feature(_POLICY, r"LoRA is not supported for DTensorPolicyWorker V1"),
    "a parent's own directory": Feature(_CONFIG, r"parent_path, parent_path\.parent"),
    "override marker": Feature(_CONFIG, r"_override_"),
    "mandatory values while merging": Feature(_CONFIG, r"OmegaConf\.is_missing"),
    "CPU offload": Feature(_DTENSOR, r"CPUOffload doesn't work on single GPU"),
}
"""By name."""

FORMS: dict[str, tuple[str, ...]] = {
    "C4": ("validates",),
    "C9": ("data.train",),
    "C10": ("data.train", "dataset paths"),
    "C11": ("data.train",),
    "C12": ("data.train",),
    "C13": ("data.train", "val_at_end"),
    "C14": ("validation rounds up",),
    "C25": ("packing pads by the recipe",),
    "C31": ("data.train",),
    "C41": ("sampling thresholds",),
    "C47": ("Gemma3 by model type", "Qwen3.5"),
    "C50": ("YaRN's fields",),
    "C51": ("Megatron precision",),
    "C52": ("replicas", "CPU offload"),
    "C56": ("optimizer offload in part", "optimizer offload overlap"),
    "C86": ("fused log probabilities",),
    "C91": ("experts in DTensor",),
    "C89": ("a parent's own directory", "override marker", "mandatory values while merging"),
}
"""Features on which a rule's form depends."""
