"""Peak and least memory of a rank, measured on one GPU, as points of tests/cases/memory/points.jsonl.

    python3 tests/gpu/measure_memory.py teachers|students >points.jsonl

Rank 0 of W ranks runs with torch's `fake` process group, whose collectives do nothing; random weights. The
model is wrapped as NeMo-RL's DTensor v1 worker does: four parts of a layer checkpointed, every layer an FSDP
unit, fp32 master weights, bf16 compute, fp32 reduction and outputs, logits dropped before the backward pass,
two micro batches a step, AdamW. `least_gib` is the least limit of the allocator under which two steps run.

It needs torch and transformers, which the project does not depend on; nothing of it runs in the test set.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201

from __future__ import annotations

import gc
import json
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

GIB = 2**30
SHAPES = {
    # layers, hidden, heads, kv heads, ffn, tied
    "qwen3-0.6b": (28, 1024, 16, 8, 3072, True),
    "qwen3-1.7b": (28, 2048, 16, 8, 6144, True),
    "qwen3-4b": (36, 2560, 32, 8, 9728, True),
    "qwen3-8b": (36, 4096, 32, 8, 12288, False),
    "qwen3-14b": (40, 5120, 40, 8, 17408, False),
    "qwen3-32b": (64, 5120, 64, 8, 25600, False),
    "qwen3-30b-a3b-4l": (4, 2048, 32, 4, 768, False),
}
PARTS = ("mlp", "self_attn", "input_layernorm", "post_attention_layernorm")
TOP_K = 64


@dataclass
class Run:
    """What one measurement runs."""

    role: str
    model: str
    gpus: int
    length: int
    rows: int = 1
    checkpointing: bool = True
    last_layer_kept: bool = False
    offload: bool = False
    lora: int = 0
    micro_batches: int = 2

    def row(self):
        """Return the fields that describe it."""
        row = {
            "role": self.role,
            "model": self.model,
            "way": "v2" if self.last_layer_kept else "nemo",
            "gpus": self.gpus,
            "sequence_length": self.length,
            "micro_batch": self.rows,
            "micro_batches": self.micro_batches if self.role == "student" else 1,
            "activation_checkpointing": self.checkpointing,
            "cpu_offload": self.offload,
            "tied": True,
        }
        return {**row, "lora_rank": self.lora} if self.lora else row


def build(run):
    """Return the wrapped model with random weights."""
    layers, hidden, heads, kv, ffn, tied = SHAPES[run.model]
    shape = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": 128,
        "vocab_size": 151936,
        "tie_word_embeddings": tied,
        "use_cache": False,
    }
    if "a3b" in run.model:
        config = Qwen3MoeConfig(
            **shape, moe_intermediate_size=ffn, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True
        )
        kind = Qwen3MoeForCausalLM
    else:
        config, kind = Qwen3Config(**shape, intermediate_size=ffn), Qwen3ForCausalLM
    with torch.device("meta"):
        model = kind(config).float()
    if tied:
        model.tie_weights()
    if run.lora:
        add_adapters(model, run.lora)
    wrap(model, run)
    model.to_empty(device="cpu" if run.offload else "cuda")
    if tied:
        model.tie_weights()
    fill(model)
    if run.offload:
        for name, buffer in model.named_buffers():
            owner = model.get_submodule(name.rpartition(".")[0])
            setattr(owner, name.rpartition(".")[2], buffer.cuda())
    return model


def add_adapters(model, rank):
    """Freeze the model and put low-rank adapters on the linear layers but the head."""
    from peft import LoraConfig, inject_adapter_in_model

    names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    with torch.device("meta"):
        inject_adapter_in_model(LoraConfig(r=rank, target_modules=names, lora_dropout=0.0), model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)


def wrap(model, run):
    """Checkpoint and shard as DTensor v1 does."""
    mesh = init_device_mesh("cuda", (run.gpus,))
    half, full = torch.bfloat16, torch.float32
    policy = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=full, output_dtype=full)
    offload = CPUOffloadPolicy(pin_memory=False) if run.offload else OffloadPolicy()
    layers = model.model.layers
    for number, layer in enumerate(layers):
        if run.checkpointing and run.role == "student":
            for part in PARTS:
                setattr(layer, part, checkpoint_wrapper(getattr(layer, part)))
        last = run.last_layer_kept and number == len(layers) - 1
        fully_shard(
            layer, mesh=mesh, mp_policy=policy, offload_policy=offload, reshard_after_forward=not last
        )
    fully_shard(model, mesh=mesh, mp_policy=policy, offload_policy=offload, reshard_after_forward=False)


def fill(model):
    """Fill parameters and buffers: weights small, norms one, rotary frequencies as they are computed."""
    with torch.no_grad():
        for parameter in model.parameters():
            local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            local.normal_(0, 0.02) if parameter.dim() > 1 else local.fill_(1.0)
        for module in model.modules():
            if hasattr(module, "inv_freq"):
                size = module.inv_freq.numel()
                base = 1.0 / (1e6 ** (torch.arange(0, size, dtype=torch.float32) / size))
                module.inv_freq.copy_(base)


def train(model, run, steps=2):
    """Run steps of several micro batches."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = None if run.offload else torch.optim.AdamW(parameters, lr=1e-5, foreach=False)
    for _ in range(steps):
        for _ in range(run.micro_batches):
            tokens = torch.randint(0, 150000, (run.rows, run.length), device="cuda")
            positions = torch.arange(run.length, device="cuda").expand(run.rows, -1)
            with torch.autocast("cuda", torch.bfloat16):
                logits = model(input_ids=tokens, position_ids=positions, use_cache=False).logits
                top = torch.randint(0, 150000, (run.rows, run.length, TOP_K), device="cuda")
                logits = logits.float()
                chosen = logits.gather(-1, top).log_softmax(-1)
                loss = -(chosen.mean())
                del logits, chosen
                loss.backward()
            del loss
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()


@torch.no_grad()
def score(model, run, steps=2):
    """Run forward passes, and take the top k of the fp32 logits."""
    for _ in range(steps):
        tokens = torch.randint(0, 150000, (run.rows, run.length), device="cuda")
        positions = torch.arange(run.length, device="cuda").expand(run.rows, -1)
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(input_ids=tokens, position_ids=positions, use_cache=False).logits
        values, _ = torch.topk(logits.float(), TOP_K, dim=-1)
        del logits, values


def peak(run, limit=None):
    """Return allocated and reserved peaks in GiB; None if a limit in GiB does not suffice."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(1.0 if limit is None else limit * GIB / total)
    model, fits = None, True
    torch.cuda.reset_peak_memory_stats()
    try:
        model = build(run)
        (train if run.role == "student" else score)(model, run)
    except torch.OutOfMemoryError:
        fits = False
    found = torch.cuda.max_memory_allocated() / GIB, torch.cuda.max_memory_reserved() / GIB
    del model
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1.0)
    return found if fits else None


def least(run, allocated, reserved):
    """Return the least limit in GiB under which two steps run."""
    low, high = allocated, reserved
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if peak(run, middle) is None:
            low = middle
        else:
            high = middle
    return high


TEACHERS = [
    Run("teacher", "qwen3-8b", 4, 2048),
    Run("teacher", "qwen3-8b", 4, 8192, last_layer_kept=True),
    Run("teacher", "qwen3-14b", 4, 8192),
    Run("teacher", "qwen3-32b", 8, 8192),
    Run("teacher", "qwen3-1.7b", 1, 16384),
    Run("teacher", "qwen3-4b", 4, 8192, rows=4),
    Run("teacher", "qwen3-4b", 8, 2048),
    Run("teacher", "qwen3-8b", 8, 32768),
]
STUDENTS = [
    Run("student", "qwen3-30b-a3b-4l", 2, 4096, checkpointing=False),
    Run("student", "qwen3-30b-a3b-4l", 2, 8192, checkpointing=False),
    Run("student", "qwen3-30b-a3b-4l", 2, 8192),
    Run("student", "qwen3-8b", 2, 2048, lora=16),
    Run("student", "qwen3-4b", 2, 8192, lora=16),
    Run("student", "qwen3-4b", 2, 4096, lora=32, checkpointing=False),
    Run("student", "qwen3-8b", 4, 4096, lora=64),
    Run("student", "qwen3-1.7b", 4, 4096),
]


def main():
    """Measure one list of runs."""
    runs = {"teachers": TEACHERS, "students": STUDENTS}[sys.argv[1]]
    for run in runs:
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=run.gpus)
        try:
            allocated, reserved = peak(run)
            row = run.row() | {
                "peak_allocated_gib": round(allocated, 3),
                "peak_reserved_gib": round(reserved, 3),
            }
            if run.role == "teacher" or not run.lora:
                row["least_gib"] = round(least(run, allocated, reserved), 3)
        except Exception as error:  # noqa: BLE001 - one run must not end the others
            row = run.row() | {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(row), flush=True)
        gc.collect()
        torch.cuda.empty_cache()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
