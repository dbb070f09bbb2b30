"""The wizard's choices in the recipe editor, and back: any key can be set there.

The editor works on a recipe of its own that inherits the wizard's and has its choices. What is changed in it
becomes the wizard's, as texts of fields or as overrides; the recipe's own file is not touched.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.compare import ABSENT
from recipes.remote_path import RemotePath, environment_at
from tui.background import call_on, in_background
from tui.screens.dialogs import error_dialog
from tui.screens.editor.recipe_editor import RecipeEditorScreen
from tui.screens.editor.session_messages import AnalysisReady
from tui.screens.editor.session_worker import OpenedFile
from tui.screens.wizard.model import DraftStatus, WizardState, default_text, field_with_key
from tui.screens.wizard.recipe_saving import offer_of
from tui.screens.wizard.state_changes import with_edits, without_override

if TYPE_CHECKING:
    from textual.screen import Screen

    from recipes.editing import EditSession
    from recipes.editing.outcomes import ChosenValues
    from recipes.errors import ExplainedError
    from recipes.inheritance import EffectiveRecipe
    from tui.screens.host import Host

_NAME = "choices.yaml"


@dataclass(frozen=True, slots=True)
class StateTakers:
    """What a wizard does with the states that edits lead to."""

    keep: Callable[[WizardState], None]
    """Called after each edit: the draft of the run has it, whatever happens next."""
    take: Callable[[WizardState], None]
    """Called when the editor is left."""


class ChoicesEditorScreen(RecipeEditorScreen):
    """Edits the choices of a wizard; leaving takes them back there."""

    def __init__(
        self,
        host: Host,
        file: OpenedFile,
        taken: Callable[[Path], None],
        keep: Callable[[EffectiveRecipe], None],
        *,
        find: bool,
    ) -> None:
        super().__init__(host, file)
        self._taken = taken
        self._keep = keep
        self._find = find

    def on_analysis_ready(self, event: AnalysisReady) -> None:
        """Keep what was edited; begin with the search for a key, where that was asked for."""
        # The parent's handler runs besides, and later: Textual calls those of all classes.
        if not event.preview and event.analysis.error is None:
            self._keep(event.analysis.recipe)
        if self._find:
            self._find = False
            self.call_later(self.action_find)

    def action_back(self) -> None:
        """Take the choices back to the wizard; text that is no YAML has to be corrected first."""
        if self.text_area is not None or self.analysis is None:
            super().action_back()
            return
        state = self.view.state if self.view is not None else None
        if state is not None and state.error is not None:
            self.message.say(f"line {state.error_line} is no YAML: correct it, or undo (u)", "fail")
            return
        self.worker.with_session_first(_saved, self._leave)

    def _leave(self, path: Path) -> None:
        if self not in self.app.screen_stack:
            return
        while self.app.screen is not self:  # a dialog that opened meanwhile
            self.app.pop_screen()
        self.app.pop_screen()
        self._taken(path)


def _saved(session: EditSession) -> Path:
    """Save; return the file. The editor stays where it cannot be saved."""
    if session.dirty:
        session.save()
    return session.path


def edit_choices(
    screen: Screen[None],
    host: Host,
    state: WizardState,
    status: DraftStatus,
    takers: StateTakers,
    *,
    find: bool,
) -> None:
    """Open the choices in the editor; the takers get the state that its edits lead to."""

    def failed(error: ExplainedError) -> None:
        def show() -> None:
            screen.app.push_screen(error_dialog(error))

        call_on(screen, show)

    def prepare() -> None:
        chosen = offer_of(state, status).chosen
        path = _choices_file(chosen)
        environment = dict(environment_at(path))
        if status.checkout is not None:
            environment["NEMO_RL_ROOT"] = status.checkout.path
        file = OpenedFile(path, (), environment)
        call_on(screen, lambda: push(file, chosen.edited))

    def push(file: OpenedFile, before: EffectiveRecipe) -> None:
        def back(path: Path) -> None:
            in_background(lambda: read_back(path, before), "choices", failed)

        def keep(recipe: EffectiveRecipe) -> None:
            from recipes.editing.outcomes import ChosenValues

            takers.keep(_with_edits_of_editor(state, ChosenValues.of(before, recipe), status))

        screen.app.push_screen(ChoicesEditorScreen(host, file, back, keep, find=find))

    def read_back(path: Path, before: EffectiveRecipe) -> None:
        from launcher.storage.choice_files import remove_directory
        from recipes.editing.outcomes import ChosenValues
        from recipes.inheritance import Resolver

        try:
            chosen = ChosenValues.of(before, Resolver().resolve(path, ()))
        finally:
            if not isinstance(path, RemotePath):
                remove_directory(path.parent)
        after = _with_edits_of_editor(state, chosen, status)
        if after != state:
            call_on(screen, lambda: takers.take(after))

    in_background(prepare, "choices", failed)


def _choices_file(chosen: ChosenValues) -> Path:
    """Return a new file with the choices; on a host it is one in memory, of which nothing is written there.

    Raises:
        SaveError: there is no room for it.
    """
    from launcher.storage.choice_files import choices_name, make_directory
    from recipes.editing.outcomes import child_text
    from recipes.files import SaveError
    from recipes.overlaid_files import overlaid

    base = chosen.base.path
    if isinstance(base, RemotePath):
        path = overlaid(base, choices_name(), "")
        return overlaid(base, path.name, child_text(chosen, path))
    try:
        file = make_directory(os.environ) / _NAME
        file.write_text(child_text(chosen, file), encoding="utf-8")
    except OSError as error:
        raise SaveError(
            f"the editor has nowhere to keep the choices: {error.strerror}",
            fix="Make room in the state directory, or set XDG_STATE_HOME to another one.",
        ) from error
    return file


def _with_edits_of_editor(state: WizardState, chosen: ChosenValues, status: DraftStatus) -> WizardState:
    """Return the state with the editor's edits; a value that is the recipe's own again is no choice."""
    base = status.base_recipe
    for item, edit in zip(chosen.differences, chosen.edits(), strict=True):
        as_in_base = base is not None and (
            not base.has(item.key)
            if item.b is ABSENT
            else base.has(item.key) and base.get(item.key) == item.b
        )
        name = field_with_key(item.key, status)
        if as_in_base:
            state = without_override(state.without_text(name) if name else state, item.key)
        else:
            state = with_edits(state, [edit], status)
    own = replace(
        state, texts={name: state.texts[name] for name in ("kind", "recipe") if name in state.texts}
    )
    texts = {
        name: text
        for name, text in state.texts.items()
        if name in own.texts or text != default_text(name, own, status)
    }
    return replace(state, texts=texts)
