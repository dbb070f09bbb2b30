"""Escape sequences in a recipe, its parent and their names: no place of the editor passes one on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import InputError
from tests.tui.editor_world import MINE, Editor, EditorWorld, editing, suspended
from tests.tui.pilot import NARROW, WIDE
from tests.tui.test_hostile import EVIL, painted
from tui.app_settings import EditStart
from tui.screens.editor import choose_recipe, recipe_editor  # noqa: F401 - imports on the loop would block it
from tui.screens.editor.external_editor import editor_command

ESCAPED = EVIL.encode("unicode_escape").decode().replace('"', "")
"""The sequences as YAML has them in double quotes."""
RAW = "\u202e\u2066\u200b\u061c"
"""What YAML allows as it is, also in a comment."""
NAME = f"m\x1b]0;evil\x07\x9b31m{RAW}.yaml"
TEXT = (
    MINE.replace("logs/mine", ESCAPED)
    .replace("# twice the usual", f"# twice{RAW} the usual")
    .replace("./recipe.yaml", f'"{ESCAPED.split()[0]}/../parent.yaml"')
    + f'"k{ESCAPED}": 1   # {RAW}remark\nk{RAW}2: x{RAW}y\nlist{RAW}: [a{RAW}, "{ESCAPED}"]\n'
)
BACK = "back"
"""Leaves a dialog, a difference or the text mode; does nothing where none is open."""
STEPS: tuple[tuple[str, ...], ...] = (
    (), ("end",), ("enter",), (BACK,), ("c",), (BACK,), ("a", "k"), (BACK,), ("2",), ("end",), ("3",),
    ("1", "slash", "k"), ("down",), (BACK,), ("p", "x", "enter"), ("home", "down"), ("c",), ("z", "enter"),
    ("end",), ("up", "up", "up", "enter"), ("z", "enter"), ("D",), ("tab",), (BACK,),
    ("number_sign",), ("u",),
    ("m",), (BACK,), ("F",), (BACK,), ("f1",), (BACK,), ("2", "t"), ("f5",), (BACK,), (BACK,),
)  # fmt: skip
"""Keys that lead through the panes, the fields and dialogs, and the differences."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[EditorWorld]:
    here = Path.cwd()
    world = EditorWorld.at(tmp_path / f"w{RAW}\x1b]0;evil\x07", TEXT)
    parent = (world.root / "recipe.yaml").read_text()
    (world.root / "parent.yaml").write_text(f'{parent}\n# {RAW}above\n"p{ESCAPED}": "{ESCAPED}"  # {RAW}\n')
    world.recipe.write_text(TEXT.replace(f'"{ESCAPED.split()[0]}/../parent.yaml"', "./parent.yaml"))
    world.recipe.rename(world.root / NAME)
    yield world
    os.chdir(here)


async def walk(editor: Editor, steps: tuple[tuple[str, ...], ...]) -> str:
    """Go through the steps; returns all that was painted, checked to be text alone."""
    texts = []
    for keys in steps:
        over = editor.screen.app.screen is not editor.layout or editor.layout.text_area is not None
        await editor.screen.press(*(key if key != BACK else "escape" for key in keys if key != BACK or over))
        shown = ""
        for _ in range(20):  # until nothing changes any more: differences are made on a thread
            await editor.screen.pilot.pause(0.15)
            if shown == (shown := painted(editor.screen)):
                break
        texts.append(shown)
    return "\n".join(texts)


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("size", [NARROW, pytest.param(WIDE, marks=pytest.mark.slow)])
async def test_no_place_of_the_editor_passes_a_control_character_on(
    world: EditorWorld, monkeypatch: Any, size: tuple[int, int]
) -> None:
    with pytest.raises(InputError) as missing:
        editor_command({"VISUAL": f"none{RAW}\x1b]0;evil\x07"}, "x.yaml", 1)

    def without_editor(*arguments: object) -> str:
        raise missing.value

    monkeypatch.setattr("textual.app.App.suspend", suspended)
    monkeypatch.setattr("tui.screens.editor.file_commands.edit_copy", without_editor)
    async with editing(world, monkeypatch, size, edit=EditStart(world.root / NAME)) as editor:
        text = await walk(editor, STEPS)
        await editor.screen.press("E")
        await editor.screen.see("set VISUAL to", limit_s=30)
        text += await walk(editor, ((), ("escape",)))
        for place in ("set here of", "Add a key", "Remark on", "Find", "what would be saved", "text mode",
                      "invalid place", "modified", "Help", "set VISUAL to"):  # fmt: skip
            assert place in text, place
        (world.root / NAME).write_text("other: 1\n")
        await editor.screen.press("1", "w")
        await editor.screen.see("Changed on disk")
        painted(editor.screen)
        await editor.screen.press("D")
        await editor.screen.see("- on disk, + yours")
        painted(editor.screen)


@pytest.mark.long
async def test_nor_does_a_text_that_is_no_yaml(tmp_path: Path, monkeypatch: Any) -> None:
    """YAML allows no escape, so that such a file is shown as text, with its error."""
    monkeypatch.chdir(tmp_path)
    world = EditorWorld.at(tmp_path / "world", f"a: 1  # {EVIL}\nb\x1b]52;c;UFdORUQ=\x07: [{EVIL}\n")
    async with editing(world, monkeypatch) as editor:
        await editor.screen.see("not YAML")
        text = await walk(editor, ((), ("1",), ("3",), ("2", "t"), (BACK,), ("D",), (BACK,)))
        assert "text mode would change this file's line breaks" in text
