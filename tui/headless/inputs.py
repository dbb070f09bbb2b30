"""What predictions are made for: a recipe's file, the checkout, and the size of the job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recipes.chain import read_bytes
from recipes.checks import Checker, ClusterRequest, Inputs
from recipes.errors import RecipeError
from recipes.remote_path import environment_at, on_machine_of
from recipes.schema.algorithms import holding_checkout
from tui.headless.hosts import path_of

if TYPE_CHECKING:
    import argparse


def recipe_path(file: str, host: str | None = None) -> Path:
    """Return a recipe's path, here or on a host.

    Raises:
        RecipeError: there is no such file, or it is no regular file.
        InputError: the host's name or its configuration is invalid.
        TransportError: the host does not answer.
    """
    path = path_of(file, host)
    try:
        read_bytes(path)
    except RecipeError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            what, fix = "no such recipe", "Give the path of a YAML file."
            raise RecipeError(what, where=file, fix=fix) from error
        raise
    return path


def inputs_of(options: argparse.Namespace, path: Path) -> Inputs:
    """Return the inputs of checks and estimates that the options of `check` or `memory` describe.

    Raises:
        RecipeError: the checkout does not exist.
    """
    request = ClusterRequest(
        nodes=options.nodes,
        gpus_per_node=options.gpus_per_node,
        gpu_memory_gib=options.gpu_memory,
        time_s=options.time,
        offline=getattr(options, "offline", False),
    )
    checkout = _checkout(options.checkout, path)
    root = on_machine_of(path, "").absolute()
    return Inputs.of(environment=environment_at(path), checkout=checkout, request=request, root=root)


def checker_for(checkout: str | None, path: Path) -> Checker:
    """Return a checker for a recipe at its own size.

    Raises:
        RecipeError: the checkout does not exist.
    """
    directory = _checkout(checkout, path)
    root = on_machine_of(path, "").absolute()
    return Checker(Inputs.of(environment=environment_at(path), checkout=directory, root=root))


def _checkout(given: str | None, path: Path) -> Path | None:
    """Return the checkout: the given one, else $NEMO_RL_ROOT, else the one that contains the recipe."""
    named = given or environment_at(path).get("NEMO_RL_ROOT")
    if not named:
        return holding_checkout(path)
    directory = on_machine_of(path, named).expanduser().absolute()
    if not directory.is_dir():
        source = "--checkout" if given else "NEMO_RL_ROOT"
        raise RecipeError("no such NeMo-RL checkout", where=str(directory), fix=f"Correct {source}.")
    return directory
