"""The question which recipe to edit: those at hand are listed, any path can be typed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from textual.screen import Screen

from recipes.errors import ExplainedError
from tui.background import call_on, in_background
from tui.screens.wizard.recipe_paths import RecipeChoice, recipe_choices, recipe_file
from tui.widgets.choice_list import Choice
from tui.widgets.entry_dialog import Entry, EntryDialog

if TYPE_CHECKING:
    from tui.screens.host import Host

_UNSAVED = "unsaved edits"


def ask_recipe(host: Host, screen: Screen[object], first: Path | None = None) -> None:
    """Ask for a recipe and open it; `first` is offered before the others."""
    text = str(first) if first is not None else ""
    dialog = EntryDialog(
        Entry("Edit a recipe", text, "path of a recipe; the list has those at hand", filtered=True)
    )

    def answered(typed: str | None) -> None:
        if typed:
            host.edit_recipe(recipe_file(typed))

    def gather() -> None:
        rows = [*_drafts(), *recipe_choices((first,) if first is not None else (), _checkout())]
        choices = [Choice(row.text, row.source) for row in rows]
        call_on(screen, lambda: dialog.set_choices(choices) if dialog.is_mounted else None)

    screen.app.push_screen(dialog, answered)
    in_background(gather, "recipes", lambda error: call_on(screen, lambda: _say(dialog, error)))


def _say(dialog: EntryDialog, error: ExplainedError) -> None:
    if dialog.is_mounted:
        dialog.say(error.what, "warn")


def _drafts() -> list[RecipeChoice]:
    from launcher.storage.drafts import DraftStore

    drafts = DraftStore.of(os.environ).orphans(None)
    return [RecipeChoice(str(draft.path), Path(draft.path), _UNSAVED) for draft in drafts]


def _checkout() -> Path | None:
    from tui.screens.editor.session_worker import checkout_for

    return checkout_for(Path.cwd() / "recipe.yaml", os.environ)
