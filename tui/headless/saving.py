"""`--save-child` and `--save-into`: the choices of a command become a recipe, or lines of one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError
from recipes.editing.outcomes import ChosenValues, RecipeText, child, child_name, free_path, into_file
from recipes.inheritance import Resolver
from recipes.library import DIRECTORY
from recipes.remote_path import on_machine_of
from tui.headless.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from launcher.request import SubmitRequest


def with_saved_choices(
    request: SubmitRequest, *, save_child: str | None, save_into: bool, dry_run: bool
) -> SubmitRequest:
    """Return the request whose recipe has its choices; as it was for `dry_run`, which prints the diff.

    Raises:
        InputError: there is nothing to save, or the recipe is a packaged one.
        RecipeError: the recipe cannot be read or saved.
    """
    if save_child is None and not save_into:
        return request
    sizes = {"cluster.num_nodes": request.nodes, "cluster.gpus_per_node": request.gpus_per_node}
    overrides = (*request.overrides, *(f"++{key}={count}" for key, count in sizes.items() if count))
    chosen = chosen_values(request.recipe, overrides)
    if chosen.empty:
        raise InputError("nothing to save: the recipe has these values already", where=request.recipe)
    recipe_text = (
        child_of(chosen, on_machine_of(request.recipe, save_child))
        if save_child is not None
        else _into(chosen)
    )
    if dry_run:
        for line in recipe_text.diff.splitlines():
            say(line)
        return request
    recipe_text.write()
    say(f"wrote {recipe_text.path} (from {request.recipe})")
    return replace(request, recipe=recipe_text.path, overrides=())


def chosen_values(recipe: Path, overrides: Sequence[str]) -> ChosenValues:
    """Return what overrides change of a recipe.

    Raises:
        RecipeError: the recipe cannot be read.
    """
    resolver = Resolver()
    return ChosenValues.of(resolver.resolve(recipe), resolver.resolve(recipe, overrides))


def child_of(chosen: ChosenValues, target: Path) -> RecipeText:
    """Return a recipe on top of another; in a directory it gets a name as NeMo-RL's own have it.

    Raises:
        RecipeError: the file exists, or the choices cannot be expressed so.
    """
    path = free_path(target, child_name(chosen.edited)) if target.is_dir() else target
    models = " from ".join(str(chosen.edited.get(f"{side}.model_name")) for side in ("policy", "teacher"))
    return child(chosen, path, header=f"{models}.")


def _into(chosen: ChosenValues) -> RecipeText:
    if chosen.base.path.parent == DIRECTORY:
        raise InputError(
            "a packaged recipe cannot be changed", where=chosen.base.path, fix="Use --save-child FILE."
        )
    return into_file(chosen)
