"""A rehearsal on this machine: the whole path with stand-in models, from recipe to a finished run."""

from __future__ import annotations

import getpass
import secrets
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from launcher.clusters.local import JOB_ID_VARIABLE, LocalCluster
from launcher.errors import InputError, TransportError
from launcher.plan import LaunchPlan, passed_on
from launcher.runs import RecipeRef, Run, RunSpec, RunStore, new_id
from launcher.scripts import script_files
from launcher.transports.base import Transport
from recipes.errors import FilePosition
from recipes.inheritance import EffectiveRecipe, resolve
from recipes.library import DIRECTORY

DEMO_RECIPE = DIRECTORY / "rehearsal.yaml"
# A rehearsal never touches the directories of the real run: it would be resumed from there.
OWN_DIRECTORIES = {
    "logger.log_dir": "output/logs",
    "checkpointing.checkpoint_dir": "output/checkpoints",
}
PORT_VARIABLES = ("RAY_PORT", "RAY_DASHBOARD_PORT")
LAUNCHER_VARIABLES = (*PORT_VARIABLES, "RAY_TMPDIR", "RAY_BARE_OBJECT_STORE_MEMORY")


@dataclass(frozen=True, slots=True)
class RehearsalPlan:
    """A rehearsal that is ready to start; nothing is written yet."""

    spec: RunSpec
    files: Mapping[str, bytes]
    plan: LaunchPlan


def start(
    transport: Transport,
    store: RunStore,
    environment: Mapping[str, str],
    *,
    recipe: Path = DEMO_RECIPE,
    overrides: Sequence[str] = (),
) -> Run:
    """Check everything, make the run's directory, start the launcher; returns the run.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: it asks for what this machine has not.
        TransportError: Ray is not installed, a port is taken, or the runs root cannot be written.
    """
    rehearsal = prepare(transport, store, environment, recipe=recipe, overrides=overrides)
    run = store.create(rehearsal.spec, rehearsal.files)
    return LocalCluster(transport).submit(run, rehearsal.plan)


def prepare(
    transport: Transport,
    store: RunStore,
    environment: Mapping[str, str],
    *,
    recipe: Path,
    overrides: Sequence[str] = (),
) -> RehearsalPlan:
    """Check the recipe and the machine, and lay out the run; writes nothing."""
    effective = distillation(recipe, overrides)
    gpus = count_gpus(transport)
    _check_size(effective, recipe, gpus)
    venv = Path(environment.get("RAY_BARE_VENV") or sys.prefix)
    check_venv(transport, venv)
    _check_ports(environment)
    spec = _spec(transport, effective, recipe, overrides)
    directory = Path(store.root, spec.id)
    job_id = f"local-{secrets.token_hex(3)}"
    scripts = script_files()
    plan = LaunchPlan(
        job_id=job_id,
        argv=("bash", str(directory / "ray_bare.sub")),
        cwd=str(directory),
        environment=_environment(environment, directory, job_id, venv),
        files=("run.json", "recipe.yaml", "effective.yaml", "plan.json", *scripts),
        output=str(directory / "logs" / f"slurm-{job_id}.out"),
    )
    files = {
        "recipe.yaml": transport.read(str(recipe)),
        "effective.yaml": effective_yaml(effective),
        "plan.json": plan.as_bytes(),
        **scripts,
    }
    return RehearsalPlan(spec, files, plan)


def distillation(recipe: Path, overrides: Sequence[str]) -> EffectiveRecipe:
    """Return the effective recipe of a distillation.

    Raises:
        RecipeError: it cannot be read.
        InputError: it is one of something else.
    """
    effective = resolve(recipe, overrides)
    if not isinstance(effective.get("distillation"), dict):
        raise InputError(
            "this is no recipe of an on-policy distillation (it has no `distillation:` section)",
            where=recipe,
            fix="Give a recipe for NeMo-RL's run_distillation.py.",
        )
    return effective


def own_directories(kind: str, directory: str | Path) -> dict[str, str]:
    """Return directories of the run's own: NeMo-RL resumes from whatever is in a checkpoint directory."""
    if kind == "training":
        return {}
    return {key: str(Path(directory, value)) for key, value in OWN_DIRECTORIES.items()}


def steps_of(effective: EffectiveRecipe) -> int | None:
    """Return how many steps a recipe asks for at most."""
    steps = effective.get("distillation.max_num_steps")
    return steps if isinstance(steps, int) else None


def count_gpus(transport: Transport) -> int:
    """Return how many GPUs nvidia-smi lists; 0 without it."""
    try:
        listed = transport.run(["nvidia-smi", "-L"], timeout_s=20)
    except TransportError:
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines()) if listed.code == 0 else 0


def _check_size(effective: EffectiveRecipe, recipe: Path, gpus: int) -> None:
    nodes, per_node = effective.get("cluster.num_nodes", 1), effective.get("cluster.gpus_per_node", 1)
    for key, value in (("cluster.num_nodes", nodes), ("cluster.gpus_per_node", per_node)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(
                f"{key} must be a whole number from 1 on, not {value!r}", where=_at(effective, recipe, key)
            )
    units = max(gpus, 1)
    if nodes * per_node > units:
        has = f"{gpus} GPU{'s' * (gpus != 1)}" if gpus else "no GPU and counts as one"
        raise InputError(
            f"the recipe asks for {nodes} x {per_node} = {nodes * per_node} GPUs, this machine has {has}",
            where=_at(effective, recipe, "cluster.gpus_per_node"),
            fix=f"Add `cluster.num_nodes=1 cluster.gpus_per_node={units}` to the command.",
        )


def _at(effective: EffectiveRecipe, recipe: Path, key: str) -> FilePosition:
    origin = effective.origin(key)
    return FilePosition(origin.file, origin.line) if origin is not None else FilePosition(str(recipe))


def check_venv(transport: Transport, venv: Path) -> None:
    """Check that Ray can be started from a Python environment.

    Raises:
        TransportError: it cannot.
    """
    for program in ("python", "ray"):
        if transport.stat(str(venv / "bin" / program)) is None:
            raise TransportError(
                f"there is no bin/{program} in the Python environment",
                where=venv,
                fix="Install `ray[default]` into it, or name another one with RAY_BARE_VENV.",
            )


def _check_ports(environment: Mapping[str, str]) -> None:
    for name in PORT_VARIABLES:
        value = environment.get(name)
        if not value:
            continue
        if not value.isdecimal() or not 0 < int(value) < 65536:
            raise InputError(
                f"{name}={value} is not a port number", fix=f"Unset {name} to let one be chosen."
            )
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", int(value)))
            except OSError as error:
                raise TransportError(
                    f"port {value} ({name}) cannot be used here: {error.strerror}",
                    fix=f"Give another {name}, or unset it to let one be chosen.",
                ) from error


def _spec(
    transport: Transport, effective: EffectiveRecipe, recipe: Path, overrides: Sequence[str]
) -> RunSpec:
    now = datetime.now(UTC)
    name = "demo" if recipe == DEMO_RECIPE else recipe.stem
    return RunSpec(
        id=new_id(name, now),
        name=name,
        kind="rehearsal",
        created=now,
        user=getpass.getuser(),
        host=transport.host,
        recipe=RecipeRef(source=str(recipe.absolute()), overrides=tuple(overrides)),
        cluster="local",
        nodes=1,
        gpus_per_node=effective.get("cluster.gpus_per_node", 1),
        max_steps=steps_of(effective),
        schema=1,
    )


def effective_yaml(effective: EffectiveRecipe, own_directories: Mapping[str, str] = OWN_DIRECTORIES) -> bytes:
    """Return the values of a recipe as one file, with directories of the run's own."""
    import yaml

    values: dict[str, Any] = dict(effective.values)
    for key, value in own_directories.items():
        section, _, leaf = key.partition(".")
        inner = values.get(section)
        values[section] = {**(inner if isinstance(inner, dict) else {}), leaf: value}
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True).encode()


def _environment(environment: Mapping[str, str], directory: Path, job_id: str, venv: Path) -> dict[str, str]:
    command = shlex.join([str(venv / "bin" / "python"), "rehearsal.py", "--config", "effective.yaml"])
    chosen = {name: environment[name] for name in LAUNCHER_VARIABLES if environment.get(name)}
    return {
        **passed_on(environment),
        **chosen,
        "BASE_LOG_DIR": str(directory / "logs"),
        "COMMAND": command,
        "NEMO_RL_ROOT": str(directory),
        "RAY_BARE_VENV": str(venv),
        # Nine processes fewer, and a start some seconds quicker; nothing here asks the dashboard.
        "RAY_BARE_DASHBOARD": "0",
        JOB_ID_VARIABLE: job_id,
    }
