"""The fields that the wizard asks for, each once: its words, its recipe key, its option of `submit`.

Forms, order, help and documentation are made from this table (`python -m recipes.fields` prints it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "whole", "time", "choice", "path"]
"""What is typed: any text, a whole number from 1 on, a time as Slurm writes it, one of some, a path."""


@dataclass(frozen=True, slots=True)
class Field:
    """One thing the wizard asks."""

    name: str
    title: str
    help: str
    kind: Kind
    key: str = ""
    """Recipe key that it sets; empty for what concerns the job alone."""
    megatron: str = ""
    """Its key where the side's backend is Megatron."""
    unit: str = ""
    flag: str = ""
    """Option of `submit` that says the same."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values and what they mean, where they are always the same."""
    optional: bool = False
    """Whether it may be left empty."""

    def key_with(self, backend: str | None) -> str:
        """Return its recipe key with a backend."""
        return self.megatron if self.megatron and backend == "megatron" else self.key


def _tensor(side: str, title: str, more: str) -> Field:
    return Field(
        f"{side}_tp",
        f"{title} TP",
        f"Tensor parallel size: over how many GPUs each layer of the {more} is cut. Must divide its heads.",
        "whole",
        key=f"{side}.dtensor_cfg.tensor_parallel_size",
        megatron=f"{side}.megatron_cfg.tensor_model_parallel_size",
        unit="GPUs",
    )


def _context(side: str, title: str, more: str) -> Field:
    return Field(
        f"{side}_cp",
        f"{title} CP",
        f"Context parallel size: over how many GPUs a sequence of the {more} is cut.",
        "whole",
        key=f"{side}.dtensor_cfg.context_parallel_size",
        megatron=f"{side}.megatron_cfg.context_parallel_size",
        unit="GPUs",
    )


FIELDS: tuple[Field, ...] = (
    Field(
        "partition", "Partition", "Where the job runs: nodes that Slurm keeps together under one name.",
        "choice", flag="--partition",
    ),
    Field(
        "account", "Account", "What is charged. F2 lists the accounts that may use the partition.",
        "text", flag="--account", optional=True,
    ),
    Field(
        "qos", "QoS", "Quality of service; empty leaves it to the account's default.",
        "text", flag="--qos", optional=True,
    ),
    Field(
        "reservation", "Reservation", "Name of a reservation, where you were given one.",
        "text", flag="--reservation", optional=True,
    ),
    Field(
        "profile", "Profile", "A profile of your site.toml: variables and sbatch options under one name.",
        "choice", flag="--profile", optional=True,
    ),
    Field(
        "kind", "Kind",
        "A rehearsal proves the way in minutes, a smoke run the recipe in 5 steps; both keep own files.",
        "choice", flag="--rehearse, --smoke",
        choices=(
            ("training", "the real thing, to its end"),
            ("smoke", "the real thing, 5 steps"),
            ("rehearsal", "stand-in models"),
        ),
    ),
    Field(
        "recipe", "Recipe", "A NeMo-RL recipe; it is read, never changed. F2 lists starting and recent ones.",
        "path", flag="FILE",
    ),
    Field(
        "checkout", "NeMo-RL checkout",
        "The clone of NeMo-RL that the job runs in, with its .venv; it is remembered.",
        "path", flag="--checkout",
    ),
    Field(
        "student", "Student", "The model that learns: Hugging Face id or directory. F2 lists known ones.",
        "text", key="policy.model_name",
    ),
    Field(
        "teacher", "Teacher", "The model that is learnt from; it must have the student's vocabulary.",
        "text", key="teacher.model_name",
    ),
    Field("nodes", "Nodes", "How many nodes each job gets, each with all its GPUs.", "whole", flag="--nodes"),
    Field(
        "time", "Time limit", "Of each job: MM, HH:MM:SS or D-HH:MM:SS. A shorter one may start sooner.",
        "time", flag="--time",
    ),
    Field(
        "chain", "Chain", "At most so many jobs, one after another; each resumes from the last checkpoint.",
        "whole", unit="jobs", flag="--chain",
    ),
    _tensor("policy", "Student", "student"),
    _context("policy", "Student", "student"),
    _tensor("teacher", "Teacher", "teacher"),
    _context("teacher", "Teacher", "teacher"),
    Field(
        "vllm_tp", "Generation TP", "Tensor parallel size of each vLLM engine, which writes the answers.",
        "whole", key="policy.generation.vllm_cfg.tensor_parallel_size", unit="GPUs",
    ),
    Field(
        "prompts", "Prompts per step", "Prompts of one step; times generations per prompt it gives samples.",
        "whole", key="distillation.num_prompts_per_step",
    ),
    Field(
        "global_batch", "Global batch", "Samples of one optimiser update; divides the samples of a step.",
        "whole", key="policy.train_global_batch_size", unit="samples",
    ),
    Field(
        "micro_batch", "Micro batch", "Samples a rank takes at once; more need more memory.",
        "whole", key="policy.train_micro_batch_size", unit="samples",
    ),
    Field(
        "length", "Sequence length", "Longest prompt with its answer; long ones need memory and time.",
        "whole", key="policy.max_total_sequence_length", unit="tokens",
    ),
    Field(
        "steps", "Steps", "After so many steps the run is complete.",
        "whole", key="distillation.max_num_steps",
    ),
)  # fmt: skip

_BY_NAME = {field.name: field for field in FIELDS}


def field(name: str) -> Field:
    """Return a field by its name."""
    return _BY_NAME[name]


def table() -> str:
    """Return the fields as a Markdown table, for the documentation."""
    rows = ["| Field | `submit` | Recipe key | |", "|---|---|---|---|"]
    for item in FIELDS:
        keys = " or ".join(f"`{key}`" for key in (item.key, item.megatron) if key)
        flag = f"`{item.flag}`" if item.flag else "override" if item.key else ""
        rows.append(f"| {item.title} | {flag} | {keys} | {item.help} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
