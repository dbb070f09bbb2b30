"""The editor's main states as text, with and without colours; `UPDATE_SNAPSHOTS=1` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.tui.editor_world import TP, Editor, EditorWorld, editing
from tests.tui.pilot import NARROW, WIDE

SNAPSHOTS = Path(__file__).parents[1] / "cases" / "editor"
STATES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("tree", ()),
    ("value", ("enter",)),
    ("failing", ("3", "enter")),
    ("checks", ("3",)),
    ("find", ("1", "slash", *"lr")),
    ("text", ("escape", "2")),
    ("text-mode", ("enter",)),
    ("diff", ("escape", "D")),
)
"""Keys that lead from each state to the next, in one session."""


async def settled(editor: Editor) -> str:
    """Return the screen once it stays as it is."""
    text = ""
    for _ in range(40):
        await editor.screen.pilot.pause(0.25)
        if editor.screen.text == text:
            return "\n".join(line.rstrip() for line in text.split("\n")) + "\n"
        text = editor.screen.text
    raise AssertionError(f"the screen does not settle:\n{text}")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("colours", [True, False], ids=["colours", "no-colours"])
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
async def test_each_state_says_the_same_with_and_without_colours(
    tmp_path: Path, monkeypatch: Any, size: tuple[int, int], *, colours: bool
) -> None:
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    world = EditorWorld.at(tmp_path / "world")
    here = Path.cwd()
    differing = []
    async with editing(world, monkeypatch, size) as editor:
        await editor.go_to(TP)
        for name, keys in STATES:
            await editor.screen.press(*keys)
            text = await settled(editor)
            path = SNAPSHOTS / f"{name}-{size[0]}x{size[1]}.txt"
            if os.environ.get("UPDATE_SNAPSHOTS") and colours:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            if text != path.read_text(encoding="utf-8"):
                differing.append(f"{path.name}:\n{text}")
    os.chdir(here)
    assert not differing, "\n".join(differing)
