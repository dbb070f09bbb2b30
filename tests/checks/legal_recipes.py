"""Legal recipes by construction: sizes first, batches as their multiples, written in the ways of YAML.

A recipe is a child of the release's own base recipe. It depends on a seed alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import lcm
from typing import Any


@dataclass(frozen=True)
class Model:
    """A public model: heads, key-value heads, layers, experts."""

    name: str
    heads: int
    kv_heads: int
    layers: int
    experts: int = 0

    def shares(self, tp: int) -> bool:
        return self.heads % tp == 0 and self.kv_heads % tp == 0


FAMILIES = (
    (
        Model("Qwen/Qwen3-0.6B", 16, 8, 28),
        Model("Qwen/Qwen3-1.7B", 16, 8, 28),
        Model("Qwen/Qwen3-4B", 32, 8, 36),
        Model("Qwen/Qwen3-8B", 32, 8, 36),
        Model("Qwen/Qwen3-32B", 64, 8, 64),
        Model("Qwen/Qwen3-30B-A3B", 32, 4, 48, 128),
    ),
    (Model("Qwen/Qwen2.5-0.5B", 14, 2, 24), Model("Qwen/Qwen2.5-1.5B", 12, 2, 28)),
    (Model("meta-llama/Llama-3.2-1B", 32, 8, 16), Model("meta-llama/Llama-3.1-8B", 32, 8, 32)),
)
SCHEDULE = "torch.optim.lr_scheduler"
SCHEDULES: tuple[Any, ...] = (
    [{"name": f"{SCHEDULE}.ConstantLR", "kwargs": {"factor": 1.0}}, {"milestones": []}],
    [
        {"name": f"{SCHEDULE}.LinearLR", "kwargs": {"start_factor": 0.01, "total_iters": 5}},
        {"name": f"{SCHEDULE}.CosineAnnealingLR", "kwargs": {"T_max": 95, "eta_min": 1.0e-7}},
        {"milestones": [5]},
    ],
)
OPTIMIZERS: tuple[dict[str, Any], ...] = (
    {"name": "torch.optim.AdamW", "kwargs": {"lr": 5.0e-6, "fused": False, "foreach": False}},
    {"name": "torch.optim.Adam", "kwargs": {"lr": 1.0e-5, "betas": [0.9, 0.98], "eps": 1.0e-8}},
)


@dataclass
class Settings:
    """Values by dotted key, drawn one after another."""

    rng: random.Random
    old: bool
    """Whether the release is v0.4 or v0.5."""
    given: dict[str, Any] = field(default_factory=dict)

    def set(self, key: str, value: Any) -> None:
        self.given[key] = value

    def pick(self, *values: Any) -> Any:
        return self.rng.choice(values)


def size(settings: Settings, gpus: int, model: Model | None = None, largest: int = 8) -> int:
    sizes = [n for n in (1, 2, 4, 8) if n <= largest and gpus % n == 0 and (not model or model.shares(n))]
    return int(settings.pick(*sizes))


def dtensor(settings: Settings, side: str, model: Model, gpus: int) -> tuple[int, int]:
    tp = size(settings, gpus, model)
    cp = size(settings, gpus // tp, largest=4)
    batching = settings.pick("none", "dynamic") if cp > 1 else settings.pick("none", "dynamic", "packing")
    sequence = cp == 1 and tp > 1 and batching != "packing" and settings.pick(True, False)
    base = f"{side}.dtensor_cfg"
    settings.set(base + ".tensor_parallel_size", tp)
    settings.set(base + ".context_parallel_size", cp)
    settings.set(base + ".sequence_parallel", sequence)
    settings.set(base + ".activation_checkpointing", settings.pick(True, False))
    settings.set(base + ".cpu_offload", gpus > 1 and settings.pick(False, False, True))
    settings.set(base + ".env_vars", {"NCCL_DEBUG": "WARN"})
    batch(settings, side, batching)
    return tp * cp, (2 * cp if cp > 1 else 1) * (tp if sequence else 1)


def megatron(settings: Settings, side: str, model: Model, gpus: int) -> tuple[int, int]:
    tp = size(settings, gpus, model)
    cp = size(settings, gpus // tp, largest=4)
    pp = size(settings, gpus // tp // cp, largest=4)
    pp = pp if model.layers % pp == 0 else 1
    batching = "packing" if cp > 1 else settings.pick("none", "packing", *["dynamic"] * (pp == 1))
    sequence = tp > 1 and (model.experts > 0 or settings.pick(True, False))
    base = f"{side}.megatron_cfg"
    settings.set(f"{side}.dtensor_cfg.enabled", False)
    settings.set(base + ".enabled", True)
    settings.set(base + ".tensor_model_parallel_size", tp)
    settings.set(base + ".context_parallel_size", cp)
    settings.set(base + ".pipeline_model_parallel_size", pp)
    settings.set(base + ".sequence_parallel", sequence)
    settings.set(base + ".expert_tensor_parallel_size", 1)
    settings.set(base + ".expert_model_parallel_size", size(settings, gpus // pp) if model.experts else 1)
    settings.set(base + ".optimizer.lr", 3.0e-6)
    settings.set(base + ".optimizer.min_lr", settings.pick(0.0, 3.0e-6))
    settings.set(base + ".scheduler.lr_warmup_init", settings.pick(0.0, 1.0e-7))
    settings.set(base + ".scheduler.lr_decay_style", settings.pick("constant", "cosine", "linear"))
    settings.set(base + ".env_vars", None)
    batch(settings, side, batching)
    return tp * cp * pp, (2 * cp if cp > 1 else 1) * (tp if sequence else 1)


def batch(settings: Settings, side: str, batching: str) -> None:
    settings.set(f"{side}.dynamic_batching.enabled", batching == "dynamic")
    settings.set(f"{side}.sequence_packing.enabled", batching == "packing")


def cluster(settings: Settings) -> tuple[int, int, int]:
    """Draw nodes and a split; returns training GPUs, generating GPUs, and those of a node that generate."""
    nodes, per_node = settings.pick(1, 1, 2, 3, 4), settings.pick(4, 8)
    settings.set("cluster.num_nodes", nodes)
    settings.set("cluster.gpus_per_node", per_node)
    if settings.pick(True, False):
        return nodes * per_node, nodes * per_node, per_node
    base = "policy.generation.colocated"
    taken = settings.rng.randint(1, per_node - 1) if nodes == 1 else settings.rng.randint(1, nodes - 1)
    settings.set(base + ".enabled", False)
    settings.set(base + ".resources.gpus_per_node", taken if nodes == 1 else per_node)
    settings.set(base + ".resources.num_nodes", settings.pick(None, 1) if nodes == 1 else taken)
    generating = taken if nodes == 1 else taken * per_node
    return nodes * per_node - generating, generating, taken if nodes == 1 else per_node


def generation(settings: Settings, model: Model, gpus: int, of_node: int) -> None:
    base = "policy.generation.vllm_cfg"
    tp = int(settings.pick(*[n for n in (1, 2, 4, 8) if of_node % n == 0 and model.heads % n == 0]))
    stages = settings.pick(1, *[2] * (of_node % (2 * tp) == 0))
    settings.set(base + ".tensor_parallel_size", tp)
    settings.set(base + ".pipeline_parallel_size", stages)
    settings.set(base + ".async_engine", stages > 1 or settings.pick(True, False))
    settings.set(base + ".expert_parallel_size", tp if model.experts else 1)
    settings.set(base + ".gpu_memory_utilization", settings.pick(0.5, 0.85, 1.0))
    settings.set(base + ".enforce_eager", settings.pick(True, False))
    settings.set("policy.generation.top_k", settings.pick(None, -1, *[50] * (not settings.old)))
    settings.set("policy.generation.top_p", settings.pick(1.0, *[0.9] * (not settings.old)))
    settings.set("policy.generation.temperature", settings.pick(1.0, 0.7))
    settings.set("policy.generation.stop_strings", settings.pick(None, ["</answer>"]))


def training(settings: Settings) -> None:
    settings.set("distillation.topk_logits_k", settings.pick(1, 64, 512))
    settings.set("distillation.val_at_start", settings.pick(True, False))
    settings.set("distillation.max_num_steps", settings.pick(100, 1000))
    settings.set("loss_fn.kl_type", settings.pick("forward", "reverse", "mixed"))
    settings.set("loss_fn.mixed_kl_weight", settings.pick(0.0, 0.3, 1.0))
    settings.set("checkpointing.keep_top_k", settings.pick(1, 5))
    settings.set("checkpointing.checkpoint_must_save_by", settings.pick(None, "00:03:30:00"))
    settings.set(
        "policy.optimizer", {"name": "torch.optim.AdamW", "kwargs": {"lr": settings.pick(1.0e-5, 3.0e-6)}}
    )
    settings.set("policy.optimizer.kwargs", settings.pick(*OPTIMIZERS)["kwargs"])
    settings.set("policy.scheduler", settings.pick(*SCHEDULES))
    settings.set("policy.tokenizer.chat_template_kwargs", settings.pick(None, {"enable_thinking": True}))
    settings.set("logger.wandb_enabled", settings.pick(True, False))
    if settings.pick(True, False):
        settings.set("distillation.val_period", 0)
        settings.set("distillation.val_at_start", False)
        settings.set("checkpointing.metric_name", settings.pick(None, "train:loss"))
    else:
        settings.set("distillation.val_period", 10)
        settings.set("checkpointing.save_period", settings.pick(10, 20, 5))


def legal_values(seed: int, *, old: bool) -> dict[str, Any]:
    """Return the values of a legal recipe by dotted key."""
    settings = Settings(random.Random(seed), old)
    training_gpus, generating, of_node = cluster(settings)
    family = settings.pick(*FAMILIES)
    models = {"policy": settings.pick(*family), "teacher": settings.pick(*family)}
    padding, ranks = 1, {}
    for side, model in models.items():
        settings.set(f"{side}.model_name", model.name)
        make = settings.pick(dtensor, megatron)
        width, needed = make(settings, side, model, training_gpus)
        padding = lcm(padding, needed)
        micro = settings.pick(1, 2, 3)
        settings.set(f"{side}.train_micro_batch_size", micro)
        settings.set(f"{side}.logprob_batch_size", micro)
        ranks[side] = training_gpus // width * micro
    global_batch = ranks["policy"] * settings.pick(1, 2, 4)
    settings.set("policy.train_global_batch_size", global_batch)
    prompts = lcm(global_batch, ranks["teacher"]) * settings.pick(1, 2)
    generations = settings.pick(1, 2)
    settings.set("distillation.num_prompts_per_step", prompts)
    settings.set("distillation.num_generations_per_prompt", generations)
    length = 64 * padding * settings.pick(4, 16)
    for side in models:
        settings.set(f"{side}.make_sequence_length_divisible_by", padding * settings.pick(1, 2))
        settings.set(f"{side}.max_total_sequence_length", length)
        for batching in ("dynamic_batching", "sequence_packing"):
            for kind in ("train", "logprob"):
                settings.set(f"{side}.{batching}.{kind}_mb_tokens", 2 * length)
    settings.set("policy.generation.vllm_cfg.max_model_len", min(length, 16384))
    generation(settings, models["policy"], generating, of_node)
    training(settings)
    return settings.given


def nested(values: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *above, last = key.split(".")
        holder = tree
        for step in above:
            holder = holder.setdefault(step, {})
        holder[last] = value
    return tree


class Writer:
    """Writer of a tree in forms that say the same to NeMo-RL's loader."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"text {seed}")
        self.indent = self.rng.choice((2, 4))

    def scalar(self, value: Any, *, flow: bool = False) -> str:
        if value is None:
            return str(self.rng.choice(("null", "~")))
        if isinstance(value, bool):
            return str(self.rng.choice(("true", "True", "yes") if value else ("false", "False", "no")))
        if isinstance(value, int):
            forms = [str(value)]
            if not flow and value > 2 and value % 2 == 0:
                forms += [f"${{mul:{value // 2}, 2}}", f"${{oc.decode:${{oc.env:NRL_ABSENT,{value}}}}}"]
            return self.rng.choice(forms)
        if isinstance(value, float):
            return self.rng.choice((repr(value), f"{value:.6e}"))
        return self.rng.choice(
            (f'"{value}"', f"'{value}'", value if str(value).isidentifier() else f"'{value}'")
        )

    def flow(self, value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key}: {self.flow(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.flow, value)) + "]"
        return self.scalar(value, flow=True)

    def block(self, tree: dict[str, Any], depth: int = 0) -> list[str]:
        lines, space = [], " " * self.indent * depth
        for key, value in tree.items():
            if self.rng.random() < 0.15:
                lines.append(space + self.rng.choice(("# a remark", "#", "", "# old: 1")))
            name = self.rng.choice((key, key, key, f'"{key}"'))
            if isinstance(value, dict) and value and (depth < 2 or self.rng.random() < 0.6):
                lines += [f"{space}{name}:", *self.block(value, depth + 1)]
            elif isinstance(value, list) and value and self.rng.random() < 0.5:
                dash = space + self.rng.choice(("", " " * self.indent))
                lines += [f"{space}{name}:", *(f"{dash}- {self.flow(item)}" for item in value)]
            else:
                text = self.flow(value) if isinstance(value, dict | list) else self.scalar(value)
                lines.append(f"{space}{name}: {text}" + self.rng.choice(("", "", "  # why")))
        return lines

    def text(self, parent: str, tree: dict[str, Any]) -> str:
        defaults = self.rng.choice(
            (f"defaults: {parent}", f'defaults: ["{parent}"]', f"defaults:\n  - {parent}")
        )
        own = {"my_notes": {"who": "me", "tags": ["a", "b"]}}
        lines = [defaults, *self.block({**tree, **own})]
        if self.rng.random() < 0.3:
            lines.insert(0, "---")
        end = self.rng.choice(("\n", "\n", "\r\n"))
        text = end.join("\n".join(lines).split("\n")) + self.rng.choice((end, "", end * 2))
        return self.rng.choice(("", "", "\ufeff")) + text


def legal_recipe(seed: int, parent: str, *, old: bool) -> tuple[str, dict[str, Any]]:
    """Return the text of a legal recipe, and the values that it sets."""
    values = legal_values(seed, old=old)
    return Writer(seed).text(parent, nested(values)), values
