"""What predictions are made for: a recipe's file, the checkout, and the size of the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.chain import read_bytes
from recipes.checks import Checker, ClusterRequest, Inputs
from recipes.errors import RecipeError
from recipes.schema.algorithms import holding_checkout

if TYPE_CHECKING:
    import argparse


def recipe_path(file: str) -> Path:
    """Return a recipe's path.

    Raises:
        RecipeError: there is no such file, or it is no regular file.
    """
    path = Path(file)
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
    return Inputs.of(environment=os.environ, checkout=_checkout(options.checkout, path), request=request)


def checker_for(checkout: str | None, path: Path) -> Checker:
    """Return a checker for a recipe at its own size.

    Raises:
        RecipeError: the checkout does not exist.
    """
    return Checker(Inputs.of(environment=os.environ, checkout=_checkout(checkout, path)))


def _checkout(given: str | None, path: Path) -> Path | None:
    """Return the checkout: the given one, else $NEMO_RL_ROOT, else the one that contains the recipe."""
    named = given or os.environ.get("NEMO_RL_ROOT")
    if not named:
        return holding_checkout(path)
    directory = Path(named).expanduser().absolute()
    if not directory.is_dir():
        source = "--checkout" if given else "NEMO_RL_ROOT"
        raise RecipeError("no such NeMo-RL checkout", where=str(directory), fix=f"Correct {source}.")
    return directory
