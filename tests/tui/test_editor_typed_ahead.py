"""Keys that come faster than the editor answers: each is for the screen as the keys before it leave it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recipes.editing import Placement
from tests.tui.editor_world import EditorWorld, editing
from tests.tui.pilot import NARROW
from tui.screens.editor import recipe_editor  # noqa: F401 - imports on the loop would block it
from tui.screens.editor.key_holds import CHOOSING_KEYS, LIST_KEYS, KeyHolds
from tui.screens.editor.session_worker import OpenedFile, SessionWorker


@pytest.fixture
def world(tmp_path: Path) -> Iterator[EditorWorld]:
    here = Path.cwd()
    yield EditorWorld.at(tmp_path / "world")
    os.chdir(here)


def keys_of(text: str) -> list[str]:
    names = {" ": "space", ".": "full_stop", ":": "colon", "#": "number_sign", "/": "slash", "-": "minus"}
    return [names.get(letter, letter) for letter in text]


def test_keys_wait_for_what_they_were_meant_for() -> None:
    holds = KeyHolds()
    assert not holds.holds("d", in_dialog=False)
    edit = holds.hold()
    search = holds.hold(CHOOSING_KEYS)
    assert holds.holds("d", in_dialog=False)
    holds.release(edit)
    assert not holds.holds("x", in_dialog=True)
    assert holds.holds("enter", in_dialog=True)
    assert not holds.holds("enter", in_dialog=False)
    holds.release(search)
    values = holds.hold(LIST_KEYS)
    assert not holds.holds("enter", in_dialog=True)
    assert holds.holds("down", in_dialog=True)
    holds.release(values)
    holds.release(values)
    assert not holds.holds("down", in_dialog=True)


def test_an_analysis_is_given_up_only_for_another_text(world: EditorWorld) -> None:
    """Looks at the file come every two seconds: a recipe that takes longer was never shown."""
    worker = SessionWorker(None, OpenedFile(world.recipe), Placement())  # type: ignore[arg-type]
    worker.with_session(lambda session: session.disk_change(), lambda change: None)
    worker.ask(lambda analyser, analysis: analyser.details(analysis, "policy"), lambda details: None)
    assert not worker._is_superseded()
    worker.preview("policy.x", "1")
    assert worker._is_superseded()


@pytest.mark.slow
async def test_a_whole_session_typed_at_once(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch, NARROW) as editor:
        await editor.screen.press(
            "slash", *keys_of("max_num_steps"), "enter",
            "enter", *keys_of("300"), "enter",
            "c", *"aewq", "enter",
            "number_sign", "number_sign",
            "slash", *keys_of("kwargs.lr"), "enter", "number_sign", "u",
            "slash", *keys_of("betas.1"), "enter", "enter", *keys_of("0.99"), "enter", "d", "u",
            "w",
        )  # fmt: skip
        await editor.screen.see("saved mine.yaml: 2 lines changed")
    assert "  max_num_steps: 300   # twice the usualaewq\n" in world.text
    assert "        - 0.99\n" in world.text
    assert "      lr: 2.0e-5\n" in world.text
