"""The question which recipe to edit: those at hand are listed, any path can be typed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App

from recipes.errors import ExplainedError
from recipes.files import is_file
from tui.background import call_on, in_background, post
from tui.opening import ActionFailed
from tui.screens.wizard.recipe_paths import PACKAGED, RecipeChoice, recipe_choices, recipe_file
from tui.widgets.choice_list import ListChoice
from tui.widgets.entry_dialog import EntryDialog, EntryRequest

if TYPE_CHECKING:
    from launcher.runs import Run
    from tui.screens.host import Host

_UNSAVED = "unsaved edits"


def ask_recipe(host: Host, app: App[None], run_directory: str = "") -> None:
    """Ask for a recipe and open it; that of a run is offered first."""
    dialog = EntryDialog(
        EntryRequest("Edit a recipe", hint="path of a recipe; the list has those at hand", filtered=True)
    )

    def answered(typed: str | None) -> None:
        if typed:
            _open(host, app, lambda: recipe_file(typed))

    def gather() -> None:
        rows = [*_of_run(run_directory), *_drafts(), *recipe_choices((), _checkout())]
        distinct = {row.path: row for row in reversed(rows) if row.source != PACKAGED}
        choices = [ListChoice(row.text, row.source) for row in reversed(distinct.values())]
        call_on(app, lambda: dialog.set_choices(choices))

    app.push_screen(dialog, answered)
    in_background(gather, "recipes", lambda error: call_on(app, lambda: _say(dialog, error)))


def edit_recipe_of(host: Host, app: App[None], run: Run) -> None:
    """Open the recipe of a run."""
    _open(host, app, lambda: recipe_of_run(run))


def _open(host: Host, app: App[None], path_of: Callable[[], Path]) -> None:
    """Open a recipe whose path is looked up on a thread: a file system may hang."""

    def look_up() -> None:
        path = path_of().absolute()
        call_on(app, lambda: host.edit_recipe(path))

    in_background(look_up, "recipe", lambda error: post(app, ActionFailed(error)))


def recipe_of_run(run: Run) -> Path:
    """Return the file that a run's recipe came from, or the run's copy where that is gone."""
    source = Path(run.spec.recipe.source).expanduser()
    return source if is_file(source) else Path(run.directory) / "recipe.yaml"


def _of_run(directory: str) -> list[RecipeChoice]:
    if not directory:
        return []
    from launcher.runs import user_store
    from tui.opening import local

    path = recipe_of_run(user_store(local(), Path(directory).parent).find(directory))
    return [RecipeChoice(str(path), path, "of the selected run")]


def _say(dialog: EntryDialog, error: ExplainedError) -> None:
    dialog.say(error.what, "warn")


def _drafts() -> list[RecipeChoice]:
    from launcher.storage.drafts import DraftStore

    drafts = DraftStore.of(os.environ).orphans(None)
    return [RecipeChoice(str(draft.path), Path(draft.path), _UNSAVED) for draft in drafts]


def _checkout() -> Path | None:
    from tui.screens.editor.session_worker import checkout_for

    return checkout_for(Path.cwd() / "recipe.yaml", os.environ)
