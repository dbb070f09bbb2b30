"""What a user may want to know before a submission: what does not reach the job, what it will not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from launcher.clusters.slurm.containers import doubts, mounts_of, unseen
from launcher.clusters.slurm.job_options import JobOptions
from launcher.clusters.slurm.partitions import Partition
from launcher.clusters.slurm.submission import Submission
from launcher.sites import Site
from recipes.inheritance import EffectiveRecipe

_DATA_VARIABLES = ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE", "NEMO_RL_VENV_DIR", "UV_CACHE_DIR")
"""What points to files in a user's shell, and does not reach the job by itself."""
_PATH_KEYS = (
    "checkpointing.checkpoint_dir",
    "logger.log_dir",
    "policy.model_name",
    "policy.tokenizer.name",
    "teacher.model_name",
    "teacher.tokenizer.name",
)
"""Where recipes name files; relative ones count from the checkout, which a container sees."""


def hints(
    site: Site,
    environment: Mapping[str, str],
    submission: Submission,
    choices: JobOptions,
    partition: Partition | None,
    recipe: EffectiveRecipe | None,
) -> tuple[str, ...]:
    """Return what to tell of a submission; `environment` is this program's, `recipe` with all overrides."""
    notes = []
    if site.stores_environments:
        notes.append(f"{site.name} keeps the environment of jobs; keys are not in it")
    if choices.kind == "rehearsal" or recipe is None:
        return tuple(notes)
    notes += _lost(environment, {**submission.plans[0].environment, **choices.keys})
    if choices.kind == "training":
        notes += _big_files(site, environment, recipe, submission)
    if choices.launcher == "ray.sub":
        notes += doubts(partition, choices.gpus_per_node)
        notes += _not_mounted(site, recipe, submission, choices)
    return tuple(notes)


def _lost(environment: Mapping[str, str], job: Mapping[str, str]) -> Iterator[str]:
    lost = [name for name in _DATA_VARIABLES if environment.get(name) and name not in job]
    if lost:
        names = ", ".join(lost)
        yield f"{names} of your shell does not reach the job: put it into a profile or --env-file"


def _big_files(
    site: Site, environment: Mapping[str, str], recipe: EffectiveRecipe, submission: Submission
) -> Iterator[str]:
    """Compare where checkpoints go with where the site wants big files."""
    named = recipe.get("checkpointing.checkpoint_dir")
    if not site.scratch or not isinstance(named, str) or not recipe.get("checkpointing.enabled", False):
        return
    target = Path(submission.spec.checkout or "", named)
    scratch = Template(site.scratch).safe_substitute(environment)
    if "$" in scratch:
        if target.is_relative_to(environment.get("HOME") or "/nowhere"):
            yield f"checkpoints go below your home directory ({target}); big files belong into {site.scratch}"
    elif not target.is_relative_to(scratch):
        yield f"checkpoints go to {target}; on {site.name} big files belong below {scratch}"


def _not_mounted(
    site: Site, recipe: EffectiveRecipe, submission: Submission, choices: JobOptions
) -> Iterator[str]:
    directory = Path(submission.plans[0].argv[-1]).parent
    mounts = mounts_of(choices, site, submission.spec.checkout or "", directory)
    values = (recipe.get(key) for key in _PATH_KEYS)
    for path in unseen((value for value in values if isinstance(value, str)), mounts):
        yield f"{path} is in no mount: the container does not see it (--mounts)"
