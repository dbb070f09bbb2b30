"""The fields of a submit request, each declared once: title, help, recipe key, flag, sbatch option.

The wizard's form, the flags of `submit`, their help and the documentation are made from this table
(`python -m launcher.fields` prints it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "whole", "time", "choice", "path"]
"""Kind of the value: any text, a whole number >= 1, a time limit, one of several, a path."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request."""

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
    """Option of `submit` for it."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values and their meaning, where they are always the same."""
    optional: bool = False
    """Whether it may be left empty."""
    step: str = ""
    """Page of the wizard that asks for it; empty for what only the command line has."""
    sbatch: str = ""
    """Long option of sbatch, without dashes, that takes the value unchanged."""
    metavar: str = ""
    """Placeholder of its value in the help of `submit`."""
    default: str = ""
    """Description of its default, for the help of `submit`."""
    repeatable: bool = False
    """Whether its flag may be given several times."""
    scheduler: bool = False
    """Whether only a cluster with a scheduler has it."""

    def key_with(self, backend: str | None) -> str:
        """Return its recipe key with a backend."""
        return self.megatron if self.megatron and backend == "megatron" else self.key


def _tensor(side: str, title: str, role: str) -> Field:
    return Field(
        f"{side}_tp",
        f"{title} TP",
        f"Tensor parallel size: the GPUs that share each layer of the {role}. Must divide its heads.",
        "whole",
        key=f"{side}.dtensor_cfg.tensor_parallel_size",
        megatron=f"{side}.megatron_cfg.tensor_model_parallel_size",
        unit="GPUs",
        step="sizes",
    )


def _context(side: str, title: str, role: str) -> Field:
    return Field(
        f"{side}_cp",
        f"{title} CP",
        f"Context parallel size: the GPUs that share each sequence of the {role}.",
        "whole",
        key=f"{side}.dtensor_cfg.context_parallel_size",
        megatron=f"{side}.megatron_cfg.context_parallel_size",
        unit="GPUs",
        step="sizes",
    )


FIELDS: tuple[Field, ...] = (
    Field(
        "partition", "Partition", "The group of nodes that the job runs on.",
        "choice", flag="--partition", metavar="P", default="Slurm's; with --smoke the site's for tests",
        step="cluster", sbatch="partition", scheduler=True,
    ),
    Field(
        "account", "Account", "The account that is charged. F2 lists those that may use the partition.",
        "text", flag="--account", metavar="A", default="your default account",
        step="cluster", sbatch="account", scheduler=True, optional=True,
    ),
    Field(
        "qos", "QoS", "Quality of service; empty: the account's default.",
        "text", flag="--qos", metavar="Q", step="cluster", sbatch="qos", scheduler=True, optional=True,
    ),
    Field(
        "reservation", "Reservation", "Name of a reservation, if you were given one.",
        "text", flag="--reservation", metavar="R",
        step="cluster", sbatch="reservation", scheduler=True, optional=True,
    ),
    Field(
        "profile", "Profile", "A profile of your site.toml: partition, time, variables … under one name.",
        "choice", flag="--profile", metavar="NAME", step="cluster", optional=True,
    ),
    Field(
        "modules", "Modules",
        "Modules that the job loads: names, or `loaded` for those of your shell; remembered for the site.",
        "text", flag="--modules", metavar="NAMES", default="the profile's, the site's, or as given before",
        step="cluster", optional=True, scheduler=True,
    ),
    Field(
        "kind", "Kind",
        "A rehearsal proves the way in minutes, a smoke run the recipe in 5 steps; both keep own files.",
        "choice", flag="--rehearse, --smoke", step="recipe",
        choices=(
            ("training", "the full run"),
            ("smoke", "the real models, 5 steps, in directories of its own"),
            ("rehearsal", "stand-in models: proves the way in minutes"),
        ),
    ),
    Field(
        "recipe", "Recipe",
        "A NeMo-RL recipe (a path, or the name of a packaged one); it is read, never changed.",
        "path", flag="FILE", step="recipe",
    ),
    Field(
        "checkout", "NeMo-RL checkout",
        "The clone of NeMo-RL that the job runs in, with its .venv; it is remembered.",
        "path", flag="--checkout", metavar="DIR", default="$NEMO_RL_ROOT, or the last one", step="recipe",
    ),
    Field(
        "driver", "Driver", "The script of the checkout that runs the recipe, relative to it.",
        "path", flag="--driver", metavar="SCRIPT", default="the one that the recipe is for", optional=True,
    ),
    Field(
        "student", "Student", "The model that learns: Hugging Face id or directory. F2 lists known ones.",
        "text", key="policy.model_name", step="recipe",
    ),
    Field(
        "teacher", "Teacher", "The model that is learnt from; it must have the student's vocabulary.",
        "text", key="teacher.model_name", step="recipe",
    ),
    Field(
        "nodes", "Nodes", "The nodes of each job, each with all its GPUs.",
        "whole", flag="--nodes", metavar="N", default="the recipe's; with --smoke the fewest that suffice",
        step="job",
    ),
    Field(
        "gpus_per_node", "GPUs per node", "The GPUs of each node that the job gets.",
        "whole", flag="--gpus-per-node", metavar="N", default="those that the partition's nodes have",
        unit="GPUs", optional=True,
    ),
    Field(
        "gpu_memory", "GPU memory",
        "Memory of one GPU; asked where the site does not know it, then remembered.",
        "whole", flag="--gpu-memory", metavar="GIB", default="the site's, or as given before", unit="GiB",
        step="job", optional=True,
    ),
    Field(
        "time", "Time limit", "Time limit of each job: MM, HH:MM:SS, D-HH:MM:SS, 30m or 2h30.",
        "time", flag="--time", metavar="T", default="the profile's", step="job", scheduler=True,
    ),
    Field(
        "chain", "Chain", "The most jobs that follow one another; each resumes from the last checkpoint.",
        "whole", flag="--chain", metavar="N", default="1", unit="jobs", step="job", scheduler=True,
    ),
    Field(
        "env_file", "Env file", "A file of NAME=value lines with keys for the driver.",
        "path", flag="--env-file", metavar="FILE", step="job", optional=True,
    ),
    Field(
        "env", "Variables", "Pass this variable of the shell to the job, or set it; secrets by name only.",
        "text", flag="--env", metavar="NAME[=VALUE]", step="job", repeatable=True, optional=True,
    ),
    Field(
        "no_env", "Left out", "Do not pass this variable of the shell to the job.",
        "text", flag="--no-env", metavar="NAME", step="job", repeatable=True, optional=True,
    ),
    Field(
        "sbatch_args", "sbatch arguments", "One more argument for sbatch.",
        "text", flag="--sbatch-arg", metavar="ARG",
        step="job", repeatable=True, scheduler=True, optional=True,
    ),
    Field(
        "launcher", "Launcher", "What starts Ray in the job.",
        "choice", flag="--launcher", default="ray_bare", optional=True,
        choices=(
            ("ray_bare", "the packaged launcher, without containers"),
            ("ray.sub", "NeMo-RL's own, in a container that Slurm's Pyxis plugin starts"),
        ),
    ),
    Field(
        "container", "Container", "The image for ray.sub.",
        "text", flag="--container", metavar="IMAGE", default="your site.toml's", optional=True,
    ),
    Field(
        "mounts", "Mounts", "For ray.sub: what the container sees besides the checkout and the run.",
        "text", flag="--mounts", metavar="SRC:DST,…", repeatable=True, optional=True,
    ),
    Field(
        "skip_checks", "Skipped checks", "Submit although this check fails: C34, or C66:KEY for one finding.",
        "text", flag="--skip-check", metavar="ID", repeatable=True, optional=True,
    ),
    _tensor("policy", "Student", "student"),
    _context("policy", "Student", "student"),
    _tensor("teacher", "Teacher", "teacher"),
    _context("teacher", "Teacher", "teacher"),
    Field(
        "vllm_tp", "Generation TP", "Tensor parallel size of each vLLM engine, which generates the answers.",
        "whole", key="policy.generation.vllm_cfg.tensor_parallel_size", unit="GPUs", step="sizes",
    ),
    Field(
        "prompts", "Prompts per step", "Prompts of one step; times generations per prompt it gives samples.",
        "whole", key="distillation.num_prompts_per_step", step="sizes",
    ),
    Field(
        "global_batch", "Global batch", "Samples of one optimizer update; divides the samples of a step.",
        "whole", key="policy.train_global_batch_size", unit="samples", step="sizes",
    ),
    Field(
        "micro_batch", "Micro batch", "Samples a rank processes at once; more need more memory.",
        "whole", key="policy.train_micro_batch_size", unit="samples", step="sizes",
    ),
    Field(
        "length", "Sequence length", "Longest prompt with its answer; long ones need memory and time.",
        "whole", key="policy.max_total_sequence_length", unit="tokens", step="sizes",
    ),
    Field(
        "steps", "Steps", "The run is complete after this many steps.",
        "whole", key="distillation.max_num_steps", step="sizes",
    ),
)  # fmt: skip

_BY_NAME = {field.name: field for field in FIELDS}


def field(name: str) -> Field:
    """Return a field by its name.

    Raises:
        KeyError: there is no such field.
    """
    return _BY_NAME[name]


def table() -> str:
    """Return the fields as a Markdown table, for the documentation."""
    rows = ["| Field | Page | `submit` | Recipe key | |", "|---|---|---|---|---|"]
    for item in FIELDS:
        keys = " or ".join(f"`{key}`" for key in (item.key, item.megatron) if key)
        flag = f"`{item.flag}`" if item.flag else "override" if item.key else ""
        rows.append(f"| {item.title} | {item.step} | {flag} | {keys} | {item.help} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
