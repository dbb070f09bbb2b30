"""What a submission to Slurm is made of: the run, its files, and one sbatch command for each link of a chain.

Nothing is written or submitted here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from launcher.checkout import Checkout
from launcher.clusters.slurm.client import conf
from launcher.clusters.slurm.text import slurm_time
from launcher.errors import InputError
from launcher.plan import LaunchPlan, new_token, passed_on
from launcher.rehearse import OWN_DIRECTORIES, check_venv, distillation, effective_yaml, steps_of
from launcher.runs import SECRETS, RecipeRef, RunSpec, RunStore, SlurmRequest, new_id
from launcher.scripts import script_files
from launcher.sites import Site
from launcher.transports.base import Transport
from recipes.inheritance import EffectiveRecipe
from recipes.planning.edits import hydra

SECRET_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY")
"""Taken from the environment of the program; others come with an env file."""
SMOKE_STEPS = 5
Kind = Literal["rehearsal", "smoke", "training"]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user chose."""

    kind: Kind
    nodes: int
    gpus_per_node: int
    request: SlurmRequest
    user: str
    profile: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    """Secrets; they reach the driver through a file that only the user can read."""
    sbatch_args: tuple[str, ...] = ()
    checkout: Checkout | None = None


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


@dataclass(frozen=True, slots=True)
class Cost:
    """What a submission costs at most."""

    node_hours: float
    gpu_hours: float
    core_hours: float | None = None
    """What many sites charge; None where the cores of a node are not known."""

    @staticmethod
    def of(choices: Choices, cores: int | None = None) -> Cost:
        """Return the cost when every job takes all of its time; `cores` are those of a node."""
        time_s = choices.request.time_s * choices.request.chain
        return cost_of(choices.nodes, choices.gpus_per_node, time_s, cores)


def cost_of(nodes: int, gpus_per_node: int, time_s: int, cores: int | None = None) -> Cost:
    """Return what nodes cost for some seconds."""
    hours = nodes * time_s / 3600
    core_hours = round(hours * cores, 3) if cores is not None else None
    return Cost(round(hours, 3), round(hours * gpus_per_node, 3), core_hours)


def prepare(
    transport: Transport,
    store: RunStore,
    environment: Mapping[str, str],
    site: Site,
    recipe: Path,
    overrides: Sequence[str],
    choices: Choices,
) -> Submission:
    """Lay out a submission.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: it is no recipe of a distillation, or there is no such profile.
        TransportError: there is no Python environment with Ray.
    """
    if choices.profile is not None and choices.profile not in site.profiles:
        known = ", ".join(site.profiles) or "none"
        raise InputError(f"no profile '{choices.profile}'", fix=f"Known profiles: {known}.")
    own = [*overrides, *_own_overrides(choices)]
    effective = distillation(recipe, own)
    spec = _spec(transport, effective, recipe, tuple(own), choices)
    directory = Path(store.root, spec.id)
    venv = _venv(transport, environment, choices)
    scripts = _scripts(site, choices)
    names = ["run.json", "recipe.yaml", "effective.yaml", "plan.json", *scripts]
    if choices.keys:
        names.append(SECRETS)
    job_environment = _environment(
        environment, site, choices, directory, venv, saves=_saves(effective, choices)
    )
    plans = tuple(
        _plan(spec, site, choices, directory, tuple(names), job_environment, link)
        for link in range(1, choices.request.chain + 1)
    )
    files = {
        "recipe.yaml": transport.read(str(recipe)),
        "effective.yaml": effective_yaml(effective, _directories(choices, directory)),
        "plan.json": plans[0].as_bytes(),
        **scripts,
    }
    if choices.keys:
        files[SECRETS] = _key_file(choices.keys)
    directories = _directories(choices, directory)
    overrides = (*own, *(f"++{key}={hydra(value)}" for key, value in directories.items()))
    return Submission(spec, files, plans, spec.max_steps, overrides)


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


def _own_overrides(choices: Choices) -> list[str]:
    """Nodes and GPUs are written once: what Slurm is asked for is what the recipe gets."""
    own = [
        f"++cluster.num_nodes={choices.nodes}",
        f"++cluster.gpus_per_node={choices.gpus_per_node}",
    ]
    if choices.kind == "smoke":
        own += [f"++distillation.max_num_steps={SMOKE_STEPS}", "++logger.wandb_enabled=false"]
    return own


def _saves(effective: EffectiveRecipe, choices: Choices) -> bool:
    """Return whether the driver is told when to save: in a chain, else where the recipe leaves it open."""
    if not effective.get("checkpointing.enabled", False) or choices.kind == "smoke":
        return False
    return choices.request.chain > 1 or effective.get("checkpointing.checkpoint_must_save_by") is None


def _directories(choices: Choices, directory: Path) -> dict[str, str]:
    """Return directories of the run's own: NeMo-RL resumes from whatever is in a checkpoint directory."""
    if choices.kind == "training":
        return {}
    return {key: str(directory / value) for key, value in OWN_DIRECTORIES.items()}


def _spec(
    transport: Transport,
    effective: EffectiveRecipe,
    recipe: Path,
    overrides: tuple[str, ...],
    choices: Choices,
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
        schema=1,
    )


def _venv(transport: Transport, environment: Mapping[str, str], choices: Choices) -> Path:
    import sys

    if choices.checkout is None:
        venv = Path(environment.get("RAY_BARE_VENV") or sys.prefix)
    else:
        venv = Path(environment.get("RAY_BARE_VENV") or Path(choices.checkout.path, ".venv"))
    check_venv(transport, venv)
    return venv


def _scripts(site: Site, choices: Choices) -> dict[str, bytes]:
    scripts = script_files()
    if choices.kind != "rehearsal":
        scripts = {name: data for name, data in scripts.items() if name.endswith(".sub")}
    lines = [
        "#!/bin/bash -l" if site.modules else "#!/bin/bash",
        "# The job: what comes before ray_bare.sub.",
    ]
    if site.modules:
        modules = shlex.join(site.modules)
        lines += ["module --force purge", f"module load {modules} || exit 3"]
    if choices.request.chain == 1:
        lines.append('exec bash "$RUN_DIR/ray_bare.sub"')
    else:
        lines += [
            "trap : TERM INT HUP",
            'bash "$RUN_DIR/ray_bare.sub" &',
            'while wait "$!"; code=$?; kill -0 "$!" 2>/dev/null; do :; done',
            'bash "$RUN_DIR/chain.sh" end "$code"',
            'exit "$code"',
        ]
    chain = Path(__file__).parent.parent.parent / "scripts" / "chain.sh"
    return {**scripts, "chain.sh": chain.read_bytes(), "job.sh": ("\n".join(lines) + "\n").encode()}


def _environment(
    environment: Mapping[str, str], site: Site, choices: Choices, directory: Path, venv: Path, *, saves: bool
) -> dict[str, str]:
    """Return the whole environment of the job; it holds no secret."""
    profile = site.profiles[choices.profile].environment if choices.profile is not None else {}
    root = choices.checkout.path if choices.checkout is not None else str(directory)
    return {
        **passed_on(environment),
        **conf(environment),
        **site.job_environment(),
        **profile,
        "BASE_LOG_DIR": str(directory / "logs"),
        "COMMAND": _command(choices, directory, venv, saves=saves),
        "GPUS_PER_NODE": str(choices.gpus_per_node),
        "NEMO_RL_ROOT": root,
        "RAY_BARE_VENV": str(venv),
        "RUN_DIR": str(directory),
    }


def _command(choices: Choices, directory: Path, venv: Path, *, saves: bool) -> str:
    script = str(directory / "rehearsal.py") if choices.checkout is None else choices.checkout.driver
    command = shlex.join(
        [str(venv / "bin" / "python"), script, "--config", str(directory / "effective.yaml")]
    )
    if saves:
        # Computed when the driver starts: only then is it known how much of the job's time is left.
        command += """ "checkpointing.checkpoint_must_save_by='$(bash "$RUN_DIR/chain.sh" save-by)'\""""
    if not choices.keys:
        return command
    return f". {shlex.quote(str(directory / SECRETS))} && exec {command}"


def _key_file(keys: Mapping[str, str]) -> bytes:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in keys.items()).encode()


def _plan(
    spec: RunSpec,
    site: Site,
    choices: Choices,
    directory: Path,
    files: tuple[str, ...],
    environment: Mapping[str, str],
    link: int,
) -> LaunchPlan:
    token = new_token()
    profile = site.profiles[choices.profile].sbatch_args if choices.profile is not None else ()
    output = str(directory / "logs" / "slurm-%j.out")
    argv = (
        "sbatch",
        "--parsable",
        *sbatch_options(choices, f"dt-{spec.id}", token),
        *(("--dependency=singleton",) if choices.request.chain > 1 else ()),
        f"--output={output}",
        f"--chdir={choices.checkout.path if choices.checkout is not None else directory}",
        *profile,
        *choices.sbatch_args,
        str(directory / "job.sh"),
    )
    return LaunchPlan(token, argv, str(directory), environment, files, output)


def sbatch_options(choices: Choices, name: str, token: str) -> list[str]:
    """Return what is asked of Slurm: all of it, or SBATCH_* and the script's lines would fill the gaps."""
    request = choices.request
    options: dict[str, Any] = {
        "job-name": name,
        "comment": f"distill-tui {token}",
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
