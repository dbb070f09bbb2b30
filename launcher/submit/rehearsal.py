"""A rehearsal on this machine: the whole path with stand-in models, from recipe to a finished run."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.checkout import check_venv
from launcher.clusters.local import PORT_VARIABLES, LocalCluster
from launcher.effective import distillation
from launcher.errors import InputError, TransportError
from launcher.request import JobOptions, SubmitRequest
from launcher.runs import Run, RunStore
from launcher.sites import site_here
from launcher.submit.submission import Submission, lay_out
from launcher.transports.base import Transport, user_of
from recipes.errors import FilePosition
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.library import DIRECTORY

DEMO_RECIPE = DIRECTORY / "rehearsal.yaml"


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
        InputError: it requests more than this machine has.
        TransportError: Ray is not installed, a port is taken, or the runs root cannot be written.
    """
    rehearsal = prepare(transport, store, environment, recipe=recipe, overrides=overrides)
    run = store.create(rehearsal.spec, rehearsal.files)
    return LocalCluster(transport, environment).submit(run, rehearsal.plans[0])


def prepare(
    transport: Transport,
    store: RunStore,
    environment: Mapping[str, str],
    *,
    recipe: Path,
    overrides: Sequence[str] = (),
) -> Submission:
    """Check the recipe and the machine, and lay out the run; writes nothing.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: it requests more than this machine has, or a port number is invalid.
        TransportError: Ray is not installed, or a port is taken.
    """
    resolver = Resolver()
    effective = distillation(recipe, overrides, resolver)
    _check_size(effective, recipe, count_gpus(transport))
    check_venv(transport, Path(environment.get("RAY_BARE_VENV") or sys.prefix))
    _check_ports(environment)
    options = JobOptions(
        SubmitRequest(recipe, nodes=1, time=0, overrides=tuple(overrides), kind="rehearsal"),
        nodes=1,
        gpus_per_node=effective.get("cluster.gpus_per_node", 1),
        user=user_of(transport, environment),
    )
    name = "demo" if recipe == DEMO_RECIPE else ""
    cluster = LocalCluster(transport, environment)
    return lay_out(cluster, store, site_here(transport, environment), options, resolver, name=name)


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
                f"{key} must be a whole number >= 1, not {value!r}", where=_at(effective, recipe, key)
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
