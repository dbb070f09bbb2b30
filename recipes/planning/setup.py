"""Arithmetic of a recipe: GPUs of student, teacher and generation, and how each divides them.

Values of a wrong type count as absent here; that they are wrong is what a check says.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from recipes.keys import KeyPath, parse_key

if TYPE_CHECKING:
    from recipes.inheritance import EffectiveRecipe

LARGEST = 10**15
"""Larger numbers are taken for this one: no size comes near it, and products of such stay within a float."""
_DIGITS = re.compile(r"[-+]?[0-9]+")

SideName = Literal["policy", "teacher"]
Backend = Literal["dtensor", "megatron"]


def value_at(recipe: EffectiveRecipe, key: str, default: object = None) -> Any:  # noqa: ANN401 - any value
    """Return the value at a dotted key: what `recipe.get` returns, with keys split once and not each time.

    Rules ask for 450 values; splitting their keys took 40 % of a check.
    """
    value: Any = recipe.values
    for step in _steps(key):
        if isinstance(value, dict):
            if step not in value:
                return default
            value = value[step]
        elif isinstance(value, list) and isinstance(step, str) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return default
    return value


@lru_cache(maxsize=4096)
def _steps(key: str) -> KeyPath:
    return parse_key(key)


def whole(value: object) -> int | None:
    """Return a value as a whole number as NeMo-RL would take it, else None; at most `LARGEST` either way."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return max(-LARGEST, min(value, LARGEST))
    if isinstance(value, float) and value.is_integer():
        return whole(int(value))
    if isinstance(value, str) and (match := _DIGITS.fullmatch(value.strip())):
        return int(value) if len(match[0]) < 16 else (-LARGEST if match[0].startswith("-") else LARGEST)
    return None


def finite(value: object) -> float | None:
    """Return a number as a float, at most `LARGEST` either way; None for NaN and for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(max(-LARGEST, min(value, LARGEST)))


@dataclass(frozen=True)
class Side:
    """Student (`policy`) or teacher: its part of the recipe and the GPUs it runs on."""

    name: SideName
    recipe: EffectiveRecipe
    gpus: int

    def get(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - a recipe holds anything
        """Return a value below this side's section."""
        return value_at(self.recipe, f"{self.name}.{key}", default)

    def key(self, key: str) -> str:
        """Return the full key of a value below this side's section."""
        return f"{self.name}.{key}"

    def count(self, key: str, default: int = 1) -> int:
        """Return a positive whole number below this side's section, else the default."""
        value = whole(self.get(key))
        return value if value is not None and value > 0 else default

    @cached_property
    def backend(self) -> Backend | None:
        """The training backend; None unless exactly one is enabled."""
        megatron = self.get("megatron_cfg.enabled") is True
        dtensor = self.get("dtensor_cfg.enabled") is True
        if megatron == dtensor:
            return None
        return "megatron" if megatron else "dtensor"

    @property
    def section(self) -> str:
        """The section that holds the backend's settings."""
        return "megatron_cfg" if self.backend == "megatron" else "dtensor_cfg"

    def size_key(self, axis: Literal["tp", "pp", "cp"]) -> str:
        """Return the full key of a parallel size."""
        if self.backend == "megatron":
            name = {
                "tp": "tensor_model_parallel_size",
                "pp": "pipeline_model_parallel_size",
                "cp": "context_parallel_size",
            }[axis]
        else:
            name = {"tp": "tensor_parallel_size", "pp": "", "cp": "context_parallel_size"}[axis]
        return f"{self.name}.{self.section}.{name}"

    def _size(self, axis: Literal["tp", "pp", "cp"]) -> int:
        value = whole(value_at(self.recipe, self.size_key(axis)))
        return value if value is not None and value > 0 else 1

    @cached_property
    def tp(self) -> int:
        """Tensor parallel size."""
        return self._size("tp")

    @cached_property
    def cp(self) -> int:
        """Context parallel size."""
        return self._size("cp")

    @cached_property
    def pp(self) -> int:
        """Pipeline parallel size; 1 with DTensor."""
        return self._size("pp") if self.backend == "megatron" else 1

    @property
    def width(self) -> int:
        """GPUs that hold one copy of the model."""
        return self.tp * self.cp * self.pp

    @property
    def divides(self) -> bool:
        """Return whether the GPUs divide into copies of the model."""
        return self.gpus >= self.width and self.gpus % self.width == 0

    @property
    def dp(self) -> int:
        """Data parallel size, at least 1."""
        return max(self.gpus // self.width, 1)

    @cached_property
    def sequence_parallel(self) -> bool:
        """Return whether sequence parallelism is on."""
        return self.get(f"{self.section}.sequence_parallel") is True

    @property
    def dynamic(self) -> bool:
        """Return whether dynamic batching is on."""
        return self.get("dynamic_batching.enabled") is True

    @property
    def packing(self) -> bool:
        """Return whether sequence packing is on."""
        return self.get("sequence_packing.enabled") is True

    @property
    def length(self) -> int | None:
        """`max_total_sequence_length` in tokens."""
        return whole(self.get("max_total_sequence_length"))

    @property
    def divisor(self) -> int:
        """`make_sequence_length_divisible_by`."""
        return self.count("make_sequence_length_divisible_by")

    @property
    def model(self) -> str:
        """The model's name or path."""
        return str(self.get("model_name") or "")

    @property
    def tokenizer(self) -> str:
        """The tokenizer's name or path."""
        return str(self.get("tokenizer.name") or self.model)

    @property
    def required_divisor(self) -> int:
        """Number that the padded length must be a multiple of, by this side's parallel sizes."""
        if self.backend == "megatron":
            context = 2 * self.cp if self.cp > 1 else 1
            return context * (self.tp if self.tp > 1 and self.sequence_parallel else 1)
        context = 2 * self.cp if self.cp > 1 else 1
        return context * (self.tp if self.tp > 1 and self.sequence_parallel else 1)


@dataclass(frozen=True)
class Setup:
    """Use of a recipe's nodes and GPUs."""

    recipe: EffectiveRecipe
    nodes: int
    gpus_per_node: int
    colocated: bool
    generation_nodes: int | None
    generation_gpus_per_node: int | None

    @classmethod
    def of(cls, recipe: EffectiveRecipe) -> Setup:
        """Read the arithmetic of a recipe."""
        colocated = value_at(recipe, "policy.generation.colocated.enabled") is not False
        base = "policy.generation.colocated.resources"
        return cls(
            recipe,
            max(whole(value_at(recipe, "cluster.num_nodes")) or 1, 1),
            max(whole(value_at(recipe, "cluster.gpus_per_node")) or 1, 1),
            colocated,
            whole(value_at(recipe, f"{base}.num_nodes")),
            whole(value_at(recipe, f"{base}.gpus_per_node")),
        )

    @property
    def gpus(self) -> int:
        """All GPUs of the job."""
        return self.nodes * self.gpus_per_node

    @property
    def generation_gpus(self) -> int:
        """GPUs that generate; with colocation all of them."""
        if self.colocated:
            return self.gpus
        if self.nodes == 1:
            return max(self.generation_gpus_per_node or 0, 0)
        return max(self.generation_nodes or 0, 0) * self.gpus_per_node

    @property
    def train_gpus(self) -> int:
        """GPUs that train and score; 0 where the split of the nodes leaves none."""
        return self.gpus if self.colocated else max(self.gpus - self.generation_gpus, 0)

    @property
    def split_is_legal(self) -> bool:
        """Return whether the split into training and generation GPUs is one that NeMo-RL accepts."""
        if self.colocated:
            return True
        if self.nodes == 1:
            generation_gpus = self.generation_gpus_per_node or 0
            return 0 < generation_gpus < self.gpus_per_node and self.generation_nodes in (None, 1)
        count = self.generation_nodes or 0
        return 0 < count < self.nodes and self.generation_gpus_per_node == self.gpus_per_node

    @cached_property
    def policy(self) -> Side:
        """The student."""
        return Side("policy", self.recipe, self.train_gpus)

    @cached_property
    def teacher(self) -> Side:
        """The teacher."""
        return Side("teacher", self.recipe, self.train_gpus)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Student and teacher."""
        return self.policy, self.teacher

    @property
    def samples_per_step(self) -> int:
        """Samples of one step: prompts x generations per prompt."""
        prompts = whole(value_at(self.recipe, "distillation.num_prompts_per_step")) or 0
        return prompts * (whole(value_at(self.recipe, "distillation.num_generations_per_prompt")) or 1)

    @property
    def global_batch(self) -> int:
        """The student's `train_global_batch_size`; 0 if it is not set."""
        return whole(self.policy.get("train_global_batch_size")) or 0

    @property
    def vllm_width(self) -> int:
        """GPUs of one vLLM engine."""
        tensor = whole(self.policy.get("generation.vllm_cfg.tensor_parallel_size")) or 1
        pipeline = whole(self.policy.get("generation.vllm_cfg.pipeline_parallel_size")) or 1
        return max(tensor * pipeline, 1)

    @property
    def off_policy(self) -> bool:
        """Return whether a `distillation` section or a single `teacher` is missing: another algorithm."""
        return not isinstance(value_at(self.recipe, "teacher"), dict) or not isinstance(
            value_at(self.recipe, "distillation"), dict
        )
