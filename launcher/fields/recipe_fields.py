"""Fields that set values of the recipe; each is an override of `submit`, and `--set NAME=VALUE`."""

from __future__ import annotations

from launcher.fields.request_field import OFF, ON, Field, StepId

_SWITCH = ((ON, "on"), (OFF, "off"))


def _size(side: str, axis: str, name: str, meaning: str, follows: str) -> Field:
    title = {"policy": "Student", "teacher": "Teacher"}[side]
    megatron = {"tensor": "tensor_model", "context": "context", "pipeline": "pipeline_model"}[axis]
    dtensor = "" if axis == "pipeline" else f"{side}.dtensor_cfg.{axis}_parallel_size"
    return Field(
        f"{side}_{name.lower()}", f"{title} {name}", f"{axis.title()} parallel size: {meaning}", "whole",
        key=dtensor, megatron=f"{side}.megatron_cfg.{megatron}_parallel_size", only_megatron=not dtensor,
        unit="GPUs", step="parallelism", follows=follows,
    )  # fmt: skip


def _sizes(side: str, role: str) -> tuple[Field, ...]:
    return (
        _size(
            side, "tensor", "TP", f"the GPUs that share each layer of the {role}. Must divide its heads.",
            "Its layers and logits take less memory on each GPU, and fewer copies of it work at a time.",
        ),
        _size(
            side, "context", "CP", f"the GPUs that share each sequence of the {role}.",
            "Activations and logits of long sequences take less memory on each GPU.",
        ),
        _size(
            side, "pipeline", "PP", f"the stages that the layers of the {role} are divided into.",
            "Each GPU holds fewer layers, and waits while the first and last micro batches pass.",
        ),
    )  # fmt: skip


_MODELS = (
    Field(
        "student", "Student", "The model that learns: Hugging Face id or directory. F2 lists known ones.",
        "text", key="policy.model_name", step="models",
        follows="Its vocabulary must be the teacher's; its size decides memory and time.",
    ),
    Field(
        "teacher", "Teacher", "The model that is learnt from; it must have the student's vocabulary.",
        "text", key="teacher.model_name", step="models",
        follows="Every sample is scored by it once in each step.",
    ),
    Field(
        "kl_type", "KL type", "Divergence between student and teacher that the training makes small.",
        "choice", key="loss_fn.kl_type", step="models",
        choices=(
            ("forward", "the student covers all that the teacher may say"),
            ("reverse", "the student keeps to what the teacher prefers"),
            ("mixed", "both, by the KL mix"),
        ),
    ),
    Field(
        "kl_mix", "KL mix", "Weight of the forward divergence; the reverse one gets the rest.",
        "number", key="loss_fn.mixed_kl_weight", least=0, most=1, step="models",
    ),
    Field(
        "topk", "Top-k", "Tokens of the teacher that are compared at each position.",
        "whole", key="distillation.topk_logits_k", unit="tokens", step="models",
        follows="The driver's memory and the traffic from teacher to student grow with it.",
    ),
)  # fmt: skip

_PARALLELISM = (
    *_sizes("policy", "student"),
    *_sizes("teacher", "teacher"),
    Field(
        "vllm_tp", "Generation TP", "Tensor parallel size of each vLLM engine, which generates the answers.",
        "whole", key="policy.generation.vllm_cfg.tensor_parallel_size", unit="GPUs", step="parallelism",
        follows="Fewer engines with more room for the cache of each.",
    ),
    Field(
        "generation", "Generation", "Whether the GPUs that train also generate, or others do.",
        "choice", compound=True, step="parallelism",
        choices=(
            ("colocated", "all GPUs train and generate, one after the other"),
            ("split", "some GPUs only generate, the others train and score"),
        ),
        follows="With `split`, training and scoring have fewer GPUs: sizes and batches must fit those.",
    ),
    Field(
        "generation_gpus", "GPUs that generate", "On one node: the GPUs that only generate.",
        "whole", key="policy.generation.colocated.resources.gpus_per_node", unit="GPUs", step="parallelism",
        follows="The others of the node train and score.",
    ),
    Field(
        "generation_nodes", "Nodes that generate", "On several nodes: the whole nodes that only generate.",
        "whole", key="policy.generation.colocated.resources.num_nodes", unit="nodes", step="parallelism",
        follows="The others train and score; the GPUs that generate are then all of such a node.",
    ),
    Field(
        "checkpoint_activations", "Recompute activations",
        "Activations are computed again in the backward pass and not kept.",
        "switch", key="policy.dtensor_cfg.activation_checkpointing",
        megatron="policy.megatron_cfg.activation_checkpointing",
        choices=_SWITCH, both=True, step="parallelism",
        follows="Training needs far less memory, and about a third more time.",
    ),
    Field(
        "cpu_offload", "CPU offload",
        "Weights, gradients and the optimizer's state stay in the node's memory.",
        "switch", key="policy.dtensor_cfg.cpu_offload",
        megatron="policy.megatron_cfg.optimizer.optimizer_cpu_offload",
        choices=_SWITCH, both=True, step="parallelism",
        follows="GPU memory becomes free; steps become several times slower.",
    ),
)  # fmt: skip

_BATCHES = (
    Field(
        "prompts", "Prompts per step", "Prompts of one step; times generations per prompt it gives samples.",
        "whole", key="distillation.num_prompts_per_step", step="batches",
        follows="The global batch must divide the samples of a step.",
    ),
    Field(
        "generations", "Generations per prompt", "Answers that the student writes to each prompt.",
        "whole", key="distillation.num_generations_per_prompt", step="batches",
        follows="The samples of a step are prompts times this.",
    ),
    Field(
        "global_batch", "Global batch", "Samples of one optimizer update; divides the samples of a step.",
        "whole", key="policy.train_global_batch_size", unit="samples", step="batches",
        follows="Fewer samples mean more updates in each step.",
    ),
    Field(
        "micro_batch", "Micro batch", "Samples a rank processes at once; more need more memory.",
        "whole", key="policy.train_micro_batch_size", unit="samples", both=True, step="batches",
    ),
    Field(
        "generation_batch", "Generation batch",
        "Samples of one call of a generation backend that takes no queue; vLLM decides itself.",
        "whole", key="policy.generation_batch_size", unit="samples", both=True, step="batches",
    ),
    Field(
        "length", "Sequence length", "Longest prompt with its answer; long ones need memory and time.",
        "whole", key="policy.max_total_sequence_length", unit="tokens", both=True, step="batches",
        follows="The teacher must score as many tokens: set it for both where its own does not follow.",
    ),
    Field(
        "temperature", "Temperature", "Randomness of the student's answers; 1 is the model's own.",
        "number", key="policy.generation.temperature", least=0, step="batches",
    ),
    Field(
        "lr", "Learning rate", "Largest step size of the optimizer, after the warm-up.",
        "number", key="policy.optimizer.kwargs.lr", megatron="policy.megatron_cfg.optimizer.lr",
        least=0, step="batches",
    ),
    Field(
        "schedule", "Schedule", "Course of the learning rate after the warm-up.",
        "choice", compound=True, step="batches",
        choices=(
            ("constant", "it stays"),
            ("linear", "it falls to 0 at the last step, evenly"),
            ("cosine", "it falls to 0 at the last step, slowly at first and at the end"),
        ),
        follows="It ends at the steps that are set now: set those first.",
    ),
    Field(
        "warmup", "Warm-up", "Steps until the learning rate is reached.",
        "whole", compound=True, least=0, unit="steps", step="batches",
    ),
    Field(
        "steps", "Steps", "The run is complete after this many steps.",
        "whole", key="distillation.max_num_steps", step="batches",
        follows="It ends earlier where the data set is read `max_num_epochs` times.",
    ),
)  # fmt: skip


def _text(name: str, title: str, text: str, key: str, *, step: StepId = "data", follows: str = "") -> Field:
    return Field(name, title, text, "text", key=key, step=step, follows=follows)


_DATA = (
    Field(
        "data_set", "Data set", "The prompts: a data set that NeMo-RL has by name.",
        "text", key="data.train.dataset_name", earlier=("data.dataset_name",), step="data",
        follows="Compute nodes without internet need it in the Hugging Face cache.",
    ),
    Field(
        "validation_set", "Validation set", "The problems by which the student's accuracy is measured.",
        "text", key="data.validation.dataset_name", step="data",
    ),
    Field(
        "val_period", "Validation period", "Steps from one validation to the next; 0 for none.",
        "whole", key="distillation.val_period", least=0, unit="steps", step="data",
        follows="A checkpoint knows its accuracy where one is saved at the same step.",
    ),
    Field(
        "val_samples", "Validation samples", "The most samples of one validation.",
        "whole", key="distillation.max_val_samples", step="data",
    ),
    Field(
        "save_period", "Save period", "Steps from one checkpoint to the next.",
        "whole", key="checkpointing.save_period", unit="steps", step="data",
        follows="What was trained since the last checkpoint is lost with a job.",
    ),
    Field(
        "keep_checkpoints", "Checkpoints kept", "The best checkpoints that stay on disk.",
        "whole", key="checkpointing.keep_top_k", step="data",
        follows="Each takes some 14 bytes per parameter of the student.",
    ),
    Field(
        "checkpoint_dir", "Checkpoint directory", "Directory of the checkpoints.",
        "path", key="checkpointing.checkpoint_dir", step="data",
        follows="A run resumes from what is in it: give every run its own.",
    ),
    Field(
        "log_dir", "Log directory", "Directory of NeMo-RL's logs.",
        "path", key="logger.log_dir", step="data",
    ),
    Field(
        "wandb", "W&B", "Whether metrics go to Weights & Biases.",
        "choice", compound=True, step="data",
        choices=(
            ("off", "not at all"),
            ("offline", "into files; `wandb sync` sends them later"),
            ("online", "at once; nodes need internet and a key"),
        ),
    ),
    _text("wandb_project", "W&B project", "Project that the run is listed in.", "logger.wandb.project"),
    _text("wandb_name", "W&B name", "Name of the run.", "logger.wandb.name"),
)  # fmt: skip

RECIPE_FIELDS: tuple[Field, ...] = (*_MODELS, *_PARALLELISM, *_BATCHES, *_DATA)
