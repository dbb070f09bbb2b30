"""Fields that concern the job: where it runs, for how long, with what."""

from __future__ import annotations

from launcher.fields.request_field import Field

JOB_FIELDS: tuple[Field, ...] = (
    Field(
        "partition", "Partition", "The group of nodes that the job runs on.",
        "choice", flag="--partition", metavar="P",
        default="your shell's, else Slurm's; with --smoke the site's for tests",
        step="cluster", sbatch="partition", scheduler=True,
    ),
    Field(
        "account", "Account", "The account that is charged. F2 lists those that may use the partition.",
        "text", flag="--account", metavar="A", default="your shell's, else your default one",
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
        "choice", flag="--rehearse, --smoke", step="models",
        choices=(
            ("training", "the full run"),
            ("smoke", "the real models, 5 steps, in directories of its own"),
            ("rehearsal", "stand-in models: proves the way in minutes"),
        ),
    ),
    Field(
        "recipe", "Recipe",
        "A NeMo-RL recipe: a path, or the name of a packaged one. It changes only where you save into it.",
        "path", flag="FILE", step="models",
    ),
    Field(
        "checkout", "NeMo-RL checkout",
        "The clone of NeMo-RL that the job runs in, with its .venv; it is remembered.",
        "path", flag="--checkout", metavar="DIR", default="$NEMO_RL_ROOT, or the last one", step="models",
    ),
    Field(
        "driver", "Driver", "The script of the checkout that runs the recipe, relative to it.",
        "path", flag="--driver", metavar="SCRIPT", default="the one that the recipe is for", optional=True,
    ),
    Field(
        "nodes", "Nodes", "The nodes of each job, each with all its GPUs.",
        "whole", flag="--nodes", metavar="N", default="the recipe's; with --smoke the fewest that suffice",
        step="job",
    ),
    Field(
        "gpus_per_node", "GPUs per node", "The GPUs of each node that the job gets.",
        "whole", flag="--gpus-per-node", metavar="N", default="those that the partition's nodes have",
        unit="GPUs", optional=True, step="job",
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
        "choice", flag="--launcher", default="ray_bare", optional=True, step="job", scheduler=True,
        choices=(
            ("ray_bare", "the packaged launcher, without containers"),
            ("ray.sub", "NeMo-RL's own, in a container that Slurm's Pyxis plugin starts"),
        ),
    ),
    Field(
        "container", "Container", "The image for ray.sub.",
        "text", flag="--container", metavar="IMAGE", default="your site.toml's", optional=True,
        step="job", scheduler=True,
    ),
    Field(
        "mounts", "Mounts", "For ray.sub: what the container sees besides the checkout and the run.",
        "text", flag="--mounts", metavar="SRC:DST,…", repeatable=True, optional=True,
        step="job", scheduler=True,
    ),
    Field(
        "skip_checks", "Skipped checks", "Submit although this check fails: C34, or C66:KEY for one finding.",
        "text", flag="--skip-check", metavar="ID", repeatable=True, optional=True,
    ),
)  # fmt: skip
