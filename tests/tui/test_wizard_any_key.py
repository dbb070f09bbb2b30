"""Any key from the wizard by the recipe editor, and back; each edit is in the run's draft at once."""

# ruff: noqa: F811 - the fixture `node`
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from launcher.storage.editors import drafts_root
from launcher.storage.wizard_drafts import RunDrafts
from tests.tui.fakeslurm import LoginNode
from tests.tui.pilot import Screen
from tests.tui.test_wizard import node, page, to_step, wizard  # noqa: F401 - a fixture
from tui.screens.wizard.choices_editor import ChoicesEditorScreen
from tui.screens.wizard.model import WizardState
from tui.screens.wizard.screen import WizardScreen


def kept() -> WizardState:
    """Return the state that would be offered after a kill now."""
    directory = RunDrafts.of()._store.directory
    files = sorted(directory.iterdir()) if directory.exists() else []
    if not files:
        return WizardState()
    return WizardState.from_json(json.loads(files[-1].read_text().partition("\n")[2])["state"])


async def set_key(screen: Screen, name: str, value: str) -> None:
    """Find a key in the editor, and set it."""
    await screen.type(name)
    await screen.press("enter")
    await screen.press("enter", "ctrl+u")
    await screen.type(value)
    await screen.press("enter")


@pytest.mark.long
async def test_a_key_without_a_field_becomes_an_override_and_one_with_a_field_its_text(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(node.root / "state"))
    async with wizard(node) as screen:
        await to_step(screen, "models")
        await screen.press("down")
        await screen.see("F7 any key", "ctrl+c quit")  # a path: `/` and `q` are text there
        await to_step(screen, "batches")
        await screen.see("/ any key", "ctrl+c quit")  # numbers have no `/`
        await screen.press("f7")
        await screen.until(lambda: isinstance(screen.app.screen_stack[1], WizardScreen), "the wizard")
        await screen.until(
            lambda: any(isinstance(item, ChoicesEditorScreen) for item in screen.app.screen_stack), "editor"
        )
        await screen.until(lambda: not isinstance(screen.app.screen, ChoicesEditorScreen), "the search")
        await set_key(screen, "grad_norm", "0.5")
        await screen.until(lambda: "max_grad_norm=0.5" in " ".join(kept().overrides), "kept", limit_s=20)
        (directory,) = drafts_root().glob("choices-*")
        await screen.press("slash")
        await screen.until(lambda: not isinstance(screen.app.screen, ChoicesEditorScreen), "the search")
        await set_key(screen, "distillation.max_num_steps", "7")
        await screen.until(lambda: kept().texts.get("steps") == "7", "kept", limit_s=20)
        assert "steps" not in page_below(screen).wizard_state.texts  # taken when the editor is left
        await screen.press("b")
        await screen.until(lambda: isinstance(screen.app.screen, WizardScreen), "back")
        await screen.until(lambda: page(screen).wizard_state.texts.get("steps") == "7", "taken")
        assert "max_grad_norm=0.5" in " ".join(page(screen).wizard_state.overrides)
        await screen.until(lambda: not directory.exists(), "removed")


@pytest.mark.long
async def test_the_editor_opens_though_the_recipe_was_not_read_when_it_was_asked_for(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(node.root / "state"))
    async with wizard(node) as screen:
        await to_step(screen, "batches")
        await screen.until(lambda: page(screen).status.path is not None, "read")
        wizard_page, status = page(screen), page(screen).status
        wizard_page.status = replace(status, path=None)
        wizard_page._edit_choices(find=True)
        await screen.see("opens as soon as the recipe is read")
        wizard_page.status = status
        wizard_page.status_changed(status)
        await screen.until(
            lambda: any(isinstance(item, ChoicesEditorScreen) for item in screen.app.screen_stack), "editor"
        )


def page_below(screen: Screen) -> WizardScreen:
    """Return the wizard below the editor."""
    return next(item for item in screen.app.screen_stack if isinstance(item, WizardScreen))
