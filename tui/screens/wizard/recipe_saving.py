"""What becomes of the choices: used once as overrides, saved into the recipe, or saved as a new recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.fields import field as field_of
from launcher.text import clean
from recipes.errors import ExplainedError, RecipeError
from recipes.files import is_writable
from recipes.library import DIRECTORY
from recipes.remote_path import on_machine_of
from tui.background import call_on, in_background
from tui.formatting import plural
from tui.screens.dialogs import error_dialog
from tui.screens.wizard.draft_request import recipe_overrides
from tui.screens.wizard.model import DraftStatus, WizardState, count_of
from tui.screens.wizard.recipe_paths import PACKAGED
from tui.widgets.choice_list import ListChoice
from tui.widgets.entry_dialog import EntryDialog, EntryRequest

if TYPE_CHECKING:
    from textual.screen import Screen

    from recipes.editing.outcomes import ChosenValues, RecipeText

_ONCE, _INTO, _ELSEWHERE = "once", "into", "elsewhere"
_CLUSTER = {"nodes": "cluster.num_nodes", "gpus_per_node": "cluster.gpus_per_node"}
"""Keys of a recipe that a job's size overrides, by field."""


@dataclass(frozen=True, slots=True)
class SaveOffer:
    """The ways to save the choices of a state."""

    chosen: ChosenValues
    paths: tuple[tuple[Path, str], ...]
    """Free paths for a new recipe, each with the name of its directory."""
    refused: str
    """Why nothing can be saved into the recipe's own file; empty where it can."""
    header: str
    """Comment at the top of a new recipe."""
    as_child: ChosenValues
    """The choices with the size of the job, typed or not: a new recipe is named after it."""


def all_overrides(state: WizardState, status: DraftStatus, *, with_size: bool = False) -> tuple[str, ...]:
    """Return the overrides of a state with the size of the job where it was typed, else on request."""
    sizes = [
        f"++{key}={count}"
        for name, key in _CLUSTER.items()
        if (with_size or name in state.texts) and (count := count_of(name, state, status))
    ]
    return (*state.overrides, *recipe_overrides(state, status), *sizes)


def offer_of(state: WizardState, status: DraftStatus) -> SaveOffer:
    """Look up how a state's choices can be saved. Reads files.

    Raises:
        RecipeError: the recipe cannot be resolved.
    """
    from recipes.editing.outcomes import ChosenValues, child_name, child_places, free_path
    from recipes.inheritance import Resolver

    assert status.path is not None
    resolver = Resolver()
    base = resolver.resolve(status.path, ())
    edited = resolver.resolve(status.path, all_overrides(state, status))
    name = child_name(edited, count_of("nodes", state, status), count_of("gpus_per_node", state, status))
    checkout = on_machine_of(status.path, status.checkout.path) if status.checkout is not None else None
    is_packaged = status.path.parent == DIRECTORY or status.recipe_source == PACKAGED
    paths = tuple(
        (free_path(item.directory, name), item.title)
        for item in child_places(status.path, checkout)
        if not (is_packaged and item.directory == status.path.parent)
    )
    refused = ""
    if is_packaged:
        refused = "it comes with the program"
    elif not is_writable(status.path):
        refused = "the file is read-only"
    models = " from ".join(str(edited.get(f"{side}.model_name") or "?") for side in ("policy", "teacher"))
    sized = resolver.resolve(status.path, all_overrides(state, status, with_size=True))
    return SaveOffer(
        ChosenValues.of(base, edited), paths, refused, f"{models}.", ChosenValues.of(base, sized)
    )


def state_after_saving(state: WizardState, path: Path) -> WizardState:
    """Return the state that goes on with a saved recipe, which has all that was chosen of it."""
    kept = {
        name: text
        for name, text in state.texts.items()
        if not field_of(name).of_recipe and name not in _CLUSTER
    }
    return replace(state, texts={**kept, "recipe": str(path)}, overrides=(), both=frozenset())


def _typed_path(offer: SaveOffer, text: str) -> Path:
    """Return a typed path on the machine of the recipe."""
    return on_machine_of(offer.chosen.base.path, text).expanduser().absolute()


class RecipeSaving:
    """The questions of one wizard about saving; `saved` gets the next state and a message."""

    def __init__(self, screen: Screen[None], saved: Callable[[WizardState, str], None]) -> None:
        self._screen = screen
        self._saved = saved

    def ask(self, state: WizardState, status: DraftStatus) -> None:
        """Ask what becomes of the choices."""

        def look() -> None:
            offer = offer_of(state, status)
            call_on(self._screen, lambda: self._choose(state, offer))

        in_background(look, "outcomes", self._failed)

    def _failed(self, error: ExplainedError) -> None:
        def show() -> None:
            self._screen.app.push_screen(error_dialog(error))

        call_on(self._screen, show)

    def _choose(self, state: WizardState, offer: SaveOffer) -> None:
        base = offer.chosen.base.path
        if offer.chosen.empty:
            self._saved(state, clean(f"nothing to save: no value differs from {base.name}"))
            return
        changed = plural(len(offer.chosen.differences), "value")
        once = f"{base.name} stays as it is; {changed} of this run are overrides, which the run records"
        choices = [ListChoice("use once, as overrides", changed, "", _ONCE, once)]
        detail = f"only the lines of {changed} in {base}; comments stay, and the difference is shown first"
        choices += [
            ListChoice(f"new recipe {path.name}", title, "", str(path), f"{path}: inherits {base.name}")
            for path, title in offer.paths
        ]
        choices.append(ListChoice("new recipe elsewhere …", "", "", _ELSEWHERE, "any path can be typed"))
        if not offer.refused:
            choices.insert(1, ListChoice(f"save into {base.name}", changed, "", _INTO, detail))

        def answered(answer: str | None) -> None:
            if answer == _INTO:
                self._prepare(state, lambda: _into(offer))
            elif answer == _ELSEWHERE:
                self._ask_path(state, offer, str(offer.paths[0][0] if offer.paths else base.parent))
            elif answer not in (None, _ONCE):
                self._ask_path(state, offer, str(answer))

        refused = f"nothing can be saved into {base.name}: {offer.refused}" if offer.refused else ""
        self._screen.app.push_screen(
            EntryDialog(EntryRequest("Your choices", "", refused, tuple(choices), choose=True)), answered
        )

    def _ask_path(self, state: WizardState, offer: SaveOffer, path: str) -> None:
        def answered(typed: str | None) -> None:
            if typed and typed.strip():
                text = typed.strip()
                self._prepare(state, lambda: _child(offer, _typed_path(offer, text)))

        hint = "path of the new recipe; nothing that exists is overwritten"
        self._screen.app.push_screen(
            EntryDialog(EntryRequest("New recipe", path, hint, select=False)), answered
        )

    def _prepare(self, state: WizardState, make: Callable[[], RecipeText]) -> None:
        """Make the text on a thread, show its difference, and write it where that is confirmed."""

        def prepare() -> None:
            text = make()
            call_on(self._screen, lambda: self._confirm(state, text))

        in_background(prepare, "outcome", self._failed)

    def _confirm(self, state: WizardState, text: RecipeText) -> None:
        from tui.screens.editor.diff_screen import DiffScreen

        def answered(answer: str | None) -> None:
            if answer == "save":
                in_background(write, "save recipe", self._failed)

        def write() -> None:
            text.write()
            call_on(self._screen, lambda: self._saved(state_after_saving(state, text.path), _done(text)))

        self._screen.app.push_screen(
            DiffScreen("Diff", {f"what is saved in {text.path.name}": text.diff}), answered
        )


def _into(offer: SaveOffer) -> RecipeText:
    from recipes.editing.outcomes import into_file

    return into_file(offer.chosen)


def _child(offer: SaveOffer, target: Path) -> RecipeText:
    from recipes.editing.outcomes import child

    if not target.parent.is_dir():
        raise RecipeError(f"no such directory: {target.parent}", fix="Make it, or give another path.")
    return child(offer.as_child, target, header=offer.header)


def _done(text: RecipeText) -> str:
    return clean(f"saved {text.path}" if text.opened is None else f"saved into {text.path}")
