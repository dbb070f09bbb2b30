"""Opening of a recipe: its tree is shown at once, and its checks follow."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recipes.editing import Analysis, EditState, Outline, Placement, RecipeAnalyser
from tests.tui.editor_world import Editor, EditorWorld
from tests.tui.pilot import NARROW, shown
from tui.app_settings import EditStart
from tui.screens.editor import recipe_editor  # noqa: F401 - imports on the loop would block it
from tui.widgets.entry_dialog import EntryDialog

LIMIT_S = 60.0
"""Longest wait for a loaded machine."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EditorWorld]:
    here = Path.cwd()
    world = EditorWorld.at(tmp_path / "world")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    os.chdir(world.root)
    yield world
    os.chdir(here)


class SlowChecks:
    """Checks that wait to be let go: before the checkout's schema is read, and behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.schema, self.rules = threading.Event(), threading.Event()
        update = RecipeAnalyser.update

        def waiting(
            analyser: RecipeAnalyser,
            state: EditState,
            placement: Placement | None = None,
            *,
            outlined: Callable[[Outline], None] | None = None,
            **rest: Any,
        ) -> Analysis:
            def outlined_then_wait(outline: Outline) -> None:
                assert outlined is not None
                outlined(outline)
                self.rules.wait(LIMIT_S)

            self.schema.wait(LIMIT_S)
            after = outlined_then_wait if outlined is not None else None
            return update(analyser, state, placement, outlined=after, **rest)

        monkeypatch.setattr(RecipeAnalyser, "update", waiting)


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_the_tree_is_there_before_the_checks_and_keys_go_through_it(
    world: EditorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = SlowChecks(monkeypatch)
    async with shown(world.root / "runs", NARROW, edit=EditStart(world.recipe)) as screen:
        editor = Editor(screen)
        await screen.see("set here of", "max_num_steps", "200", "checking …", limit_s=LIMIT_S)
        assert editor.layout.analysis is None
        tree = editor.layout.tree_view
        await screen.press("down")
        await screen.pilot.pause(0.1)
        assert tree.cursor == 0  # rows may come to it: the key waits
        checks.schema.set()
        await screen.until(lambda: tree.cursor == 1, "the next key", LIMIT_S)
        await screen.press("down", "2", "1", "enter")
        await screen.until(lambda: tree.cursor == 2, "the key after it", LIMIT_S)
        assert not isinstance(screen.app.screen, EntryDialog)
        key = tree.key
        checks.rules.set()
        await screen.until(lambda: isinstance(screen.app.screen, EntryDialog), "the field", LIMIT_S)
        assert tree.key == key
        await screen.press("escape")
        await screen.see("on 1 × 4 GPUs", limit_s=LIMIT_S)
        assert "checking …" not in screen.text
