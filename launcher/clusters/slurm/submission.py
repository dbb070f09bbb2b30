"""What a submission to Slurm is made of: the run, its files, and one sbatch command for each link of a chain.

Nothing is written or submitted here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from launcher.clusters.slurm.batch import Batch, bare, key_file
from launcher.clusters.slurm.containers import contained
from launcher.clusters.slurm.job_options import Cost, JobOptions, Kind
from launcher.clusters.slurm.parse import slurm_time
from launcher.errors import InputError
from launcher.plan import LaunchPlan, new_token
from launcher.runs import SECRETS, RecipeRef, RunSpec, RunStore, new_id
from launcher.sites import Site
from launcher.submit.rehearsal import distillation, effective_yaml, own_directories, steps_of
from launcher.transports.base import Transport
from recipes.inheritance import EffectiveRecipe
from recipes.planning.edits import hydra

__all__ = ["Cost", "JobOptions", "Kind", "Submission", "prepare", "read_env_file", "sbatch_options"]
SMOKE_STEPS = 5
SINGLETON = "--dependency=singleton"
"""Jobs of one name follow one another."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission that is ready; nothing is written yet."""

    spec: RunSpec
    files: Mapping[str, bytes]
    plans: tuple[LaunchPlan, ...]
    """One a link."""
    max_steps: int | None
    overrides: tuple[str, ...] = ()
    """All that goes over the recipe: the user's, the job's size, and directories of the run's own."""


def prepare(
    transport: Transport,
    store: RunStore,
    environment: Mapping[str, str],
    site: Site,
    recipe: Path,
    overrides: Sequence[str],
    choices: JobOptions,
) -> Submission:
    """Lay out a submission.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: it is no recipe of a distillation, there is no such profile, or no such container.
        TransportError: there is no Python environment with Ray.
    """
    if choices.profile is not None and choices.profile not in site.profiles:
        known = ", ".join(site.profiles) or "none"
        raise InputError(f"no profile '{choices.profile}'", fix=f"Known profiles: {known}.")
    own = (*overrides, *_own_overrides(choices.kind, choices.nodes, choices.gpus_per_node))
    effective = distillation(recipe, own)
    spec = _spec(transport, effective, recipe, own, choices)
    directory = Path(store.root, spec.id)
    directories = own_directories(choices.kind, directory)
    launch = contained if choices.launcher == "ray.sub" else bare
    batch = launch(transport, environment, site, choices, directory, saves=_saves(effective, choices))
    files = {
        "recipe.yaml": transport.read(str(recipe)),
        "effective.yaml": effective_yaml(effective, directories),
        **({SECRETS: key_file(choices.keys)} if choices.keys else {}),
        **batch.files,
    }
    names = ("run.json", "plan.json", *files)
    plans = tuple(_plan(spec, site, choices, directory, names, batch) for _ in range(choices.request.chain))
    return Submission(
        spec,
        {**files, "plan.json": plans[0].as_bytes()},
        plans,
        spec.max_steps,
        (*own, *(f"++{key}={hydra(value)}" for key, value in directories.items())),
    )


def read_env_file(text: str, where: Path) -> dict[str, str]:
    """Read a file of `NAME=value` lines, as `.env` files are written.

    Raises:
        InputError: a line is none.
    """
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = re.fullmatch(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", bare)
        if match is None:
            raise InputError(
                f"line {number} is not NAME=value", where=where
            )  # without the line: it may be a key
        name, value = match.groups()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name] = value
    return found


def _own_overrides(kind: Kind, nodes: int, gpus_per_node: int) -> tuple[str, ...]:
    """Nodes and GPUs are written once: what Slurm is asked for is what the recipe gets."""
    own = (f"++cluster.num_nodes={nodes}", f"++cluster.gpus_per_node={gpus_per_node}")
    if kind == "smoke":
        return (*own, f"++distillation.max_num_steps={SMOKE_STEPS}", "++logger.wandb_enabled=false")
    return own


def as_given(spec: RunSpec) -> tuple[str, ...]:
    """Return a run's overrides without those that its submission added."""
    own = {_key(item) for item in _own_overrides(spec.kind, spec.nodes, spec.gpus_per_node)}
    return tuple(item for item in spec.recipe.overrides if _key(item) not in own)


def _key(override: str) -> str:
    return override.partition("=")[0]


def _saves(effective: EffectiveRecipe, choices: JobOptions) -> bool:
    """Return whether the driver is told when to save: in a chain, else where the recipe leaves it open."""
    if not effective.get("checkpointing.enabled", False) or choices.kind == "smoke":
        return False
    return choices.request.chain > 1 or effective.get("checkpointing.checkpoint_must_save_by") is None


def _spec(
    transport: Transport,
    effective: EffectiveRecipe,
    recipe: Path,
    overrides: tuple[str, ...],
    choices: JobOptions,
) -> RunSpec:
    now = datetime.now(UTC)
    return RunSpec(
        id=new_id(recipe.stem, now),
        name=recipe.stem,
        kind=choices.kind,
        created=now,
        user=choices.user,
        host=transport.host,
        recipe=RecipeRef(source=str(recipe.absolute()), overrides=overrides),
        cluster="slurm",
        nodes=choices.nodes,
        gpus_per_node=choices.gpus_per_node,
        max_steps=steps_of(effective),
        slurm=choices.request,
        checkout=choices.checkout.path if choices.checkout is not None else None,
        launcher=choices.launcher,
        schema=1,
    )


def _plan(
    spec: RunSpec, site: Site, choices: JobOptions, directory: Path, files: tuple[str, ...], batch: Batch
) -> LaunchPlan:
    token = new_token()
    output = str(directory / "logs" / "slurm-%j.out")
    argv = (
        "sbatch",
        "--parsable",
        *sbatch_options(choices, f"dt-{spec.id}", token),
        *((SINGLETON,) if choices.request.chain > 1 else ()),
        f"--output={output}",
        f"--chdir={choices.checkout.path if choices.checkout is not None else directory}",
        *choices.profile_of(site).sbatch_args,
        *choices.sbatch_args,
        str(directory / "job.sh"),
    )
    return LaunchPlan(token, argv, batch.cwd, batch.environment, files, output)


def comment_of(token: str) -> str:
    """Return the comment by which a job is found again."""
    return f"distill-tui {token}"


def sbatch_options(choices: JobOptions, name: str, token: str) -> list[str]:
    """Return what is asked of Slurm: all of it, or SBATCH_* and the script's lines would fill the gaps."""
    request = choices.request
    options: dict[str, Any] = {
        "job-name": name,
        "comment": comment_of(token),
        "partition": request.partition,
        "account": request.account,
        "qos": request.qos,
        "reservation": request.reservation,
        "nodes": choices.nodes,
        "ntasks-per-node": 1,
        "gres": f"gpu:{choices.gpus_per_node}" if choices.gpus_per_node else None,
        "mem": 0,
        "time": slurm_time(request.time_s),
        "open-mode": "append",
        "export": "ALL",
    }
    given = [f"--{key}={value}" for key, value in options.items() if value is not None]
    return [*given, "--exclusive", "--requeue" if request.chain == 1 else "--no-requeue"]
