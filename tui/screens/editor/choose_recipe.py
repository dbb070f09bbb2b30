"""The question which recipe to edit: those at hand are listed, any path can be typed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App

from recipes.errors import ExplainedError, RecipeError
from recipes.files import is_file
from recipes.remote_path import on_machine_of
from tui.background import call_on, in_background, post
from tui.opening import ActionFailed
from tui.screens.wizard.recipe_paths import PACKAGED, RecipeChoice, recipe_choices, recipe_file
from tui.widgets.choice_list import ListChoice
from tui.widgets.entry_dialog import EntryDialog, EntryRequest

if TYPE_CHECKING:
    from launcher.runs import Run
    from tui.screens.host import Host
    from tui.work_machine import WorkMachine

_UNSAVED = "unsaved edits"


def ask_recipe(host: Host, app: App[None], run_directory: str = "", machine: str = "") -> None:
    """Ask for a recipe of a machine and open it; that of a run is offered first."""
    title = f"Edit a recipe on {machine}" if machine else "Edit a recipe"
    dialog = EntryDialog(
        EntryRequest(title, hint="path of a recipe; the list has those at hand", filtered=True)
    )
    on = host.machine(machine)

    def answered(typed: str | None) -> None:
        if typed:
            _open(host, app, lambda: recipe_file(typed, on.path("")))

    def gather() -> None:
        rows = [*_of_run(run_directory, on), *_drafts(machine), *_at_hand(on)]
        distinct = {row.path: row for row in reversed(rows) if row.source != PACKAGED}
        choices = [ListChoice(row.text, row.source) for row in reversed(distinct.values())]
        call_on(app, lambda: dialog.set_choices(choices))

    app.push_screen(dialog, answered)
    in_background(gather, "recipes", lambda error: call_on(app, lambda: _say(dialog, error)))


def edit_recipe_of(host: Host, app: App[None], run: Run, machine: str = "") -> None:
    """Open the recipe of a run of a machine."""
    _open(host, app, lambda: recipe_of_run(run, host.machine(machine).path("")))


def edit_recipe_at(
    host: Host,
    app: App[None],
    file: str,
    machine: str,
    *,
    overrides: tuple[str, ...] = (),
    draft: str = "",
) -> None:
    """Open a recipe of a host by its path there; `draft`: file of unsaved edits to go on with."""

    def path_there() -> Path:
        path = host.machine(machine).path(file).expanduser().absolute()
        if not is_file(path):
            raise RecipeError("there is no such file", where=f"{machine}:{path}", fix="Give a path there.")
        return path

    _open(host, app, path_there, overrides=overrides, draft=draft)


def _open(
    host: Host,
    app: App[None],
    path_of: Callable[[], Path],
    *,
    overrides: tuple[str, ...] = (),
    draft: str = "",
) -> None:
    """Open a recipe whose path is looked up on a thread: a file system may hang."""

    def look_up() -> None:
        path = path_of().absolute()
        call_on(app, lambda: host.edit_recipe(path, overrides=overrides, draft=draft))

    in_background(look_up, "recipe", lambda error: post(app, ActionFailed(error)))


def recipe_of_run(run: Run, here: Path = Path()) -> Path:
    """Return the file that a run's recipe came from, else the run's copy; on `here`'s machine."""
    source = on_machine_of(here, run.spec.recipe.source).expanduser()
    return source if is_file(source) else on_machine_of(here, run.directory) / "recipe.yaml"


def _of_run(directory: str, machine: WorkMachine) -> list[RecipeChoice]:
    if not directory:
        return []
    from launcher.runs import load

    path = recipe_of_run(load(machine.transport(), directory), machine.path(""))
    return [RecipeChoice(str(path), path, "of the selected run")]


def _say(dialog: EntryDialog, error: ExplainedError) -> None:
    dialog.say(error.what, "warn")


def _at_hand(machine: WorkMachine) -> tuple[RecipeChoice, ...]:
    here = machine.path("").absolute()
    checkout = _checkout(here, machine.environment())
    return recipe_choices((), checkout, here=here)


def _drafts(machine: str) -> list[RecipeChoice]:
    from launcher.storage.drafts import DraftStore

    drafts = DraftStore.of(os.environ).orphans(None)
    return [
        RecipeChoice(str(draft.path), Path(draft.path), _UNSAVED)
        for draft in drafts
        if draft.machine == machine
    ]


def _checkout(here: Path, environment: Mapping[str, str]) -> Path | None:
    from tui.screens.editor.session_worker import checkout_for

    return checkout_for(here / "recipe.yaml", environment)
