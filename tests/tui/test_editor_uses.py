"""Longer uses of the editor: overrides, anchors, the text mode's fix, coming back, two editors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tui.editor_world import MINE, TP, Editor, EditorWorld, editing
from tests.tui.pilot import NARROW, shown
from tui.app_settings import EditStart
from tui.screens.editor import choose_recipe, recipe_editor  # noqa: F401 - imports on the loop would block it

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path) -> Iterator[EditorWorld]:
    here = Path.cwd()
    yield EditorWorld.at(tmp_path / "world")
    os.chdir(here)


async def test_a_recipe_is_edited_as_a_run_with_overrides_sees_it(
    world: EditorWorld, monkeypatch: Any
) -> None:
    overrides = ("policy.train_micro_batch_size=2", "++policy.ours.deep=[1,2]", "~logger.log_dir")
    async with editing(world, monkeypatch, edit=EditStart(world.recipe, overrides)) as editor:
        await editor.go_to("policy.train_micro_batch_size")
        await editor.screen.see("▲", "an override of the command line")
        assert editor.layout.analysis is not None
        assert editor.layout.analysis.recipe.get("policy.ours.deep") == [1, 2]
        assert editor.layout.analysis.outline.row("logger.log_dir") is None
        await editor.set("distillation.max_num_steps", "300")
        await editor.until_text("max_num_steps: 300")
        assert editor.layout.analysis.recipe.get("policy.train_micro_batch_size") == 2
        await editor.screen.press("w")
        await editor.screen.see("saved mine.yaml: 1 line changed")
    assert world.text == MINE.replace("200", "300")


async def test_a_section_that_is_an_alias_is_copied_where_that_is_chosen(
    tmp_path: Path, monkeypatch: Any
) -> None:
    text = MINE + "common: &C {size: 1}   # ours\nuse: *C\n"
    world = EditorWorld.at(tmp_path / "w", text)
    here = Path.cwd()
    async with editing(world, monkeypatch) as editor:
        await editor.set("use.size", "2")
        await editor.screen.see("Not set", "would change what it stands for", "write a copy of the section")
        assert editor.text == text
        await editor.screen.press("y")
        await editor.until_text("size: 2")
        await editor.screen.press("u")
        await editor.screen.until(lambda: editor.text == text, "the first text")
    os.chdir(here)


async def test_the_text_mode_fixes_a_check_with_its_own_key(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await editor.go_to(TP)
        await screen.press("t", "end")
        await screen.press(*["left"] * len("}   # our nodes have four GPUs"), "backspace", "3")
        await screen.see("F7 fixes it", "F7 fix")
        assert "· f fixes it" not in screen.text
        await screen.press("f7")
        await screen.see("✓ no failure predicted")
        area = editor.layout.text_area
        assert area is not None
        assert area.text == editor.text
        assert "tensor_parallel_size: 3" not in editor.text
        assert editor.text.replace("{tensor_parallel_size: 2}", "{tensor_parallel_size: 4}") == MINE


async def test_edits_are_offered_when_the_editor_is_opened_again_in_the_same_app(
    world: EditorWorld, monkeypatch: Any
) -> None:
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    os.chdir(world.root)
    async with shown(world.root / "runs", NARROW) as screen:
        for again in (False, True):
            await screen.see("No runs yet.")
            await screen.press("e")
            await screen.see("Edit a recipe", "mine.yaml")
            await screen.type("mine.yaml")
            await screen.press("enter")
            if not again:
                await screen.see("on 1 × 4 GPUs")
                editor = Editor(screen)
                await editor.set("distillation.max_num_steps", "300")
                await editor.until_text("max_num_steps: 300")
                await screen.press("b")
        await screen.see("Unsaved edits", "continue with them")
        await screen.press("g")
        await screen.see("modified, 1 line")
    assert world.text == MINE


async def test_a_key_is_commented_out_and_in_while_its_parent_has_it(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as editor:
        await editor.go_to("distillation.max_num_steps")
        await editor.screen.press("number_sign")
        await editor.until_text("  # max_num_steps: 200   # twice the usual")
        row = editor.layout.row
        assert row is not None
        assert (row.key, row.state) == ("distillation.max_num_steps", "inherited")
        await editor.screen.press("number_sign")
        await editor.screen.until(lambda: editor.text == MINE, "the key again")


async def test_of_several_commented_lines_with_a_key_one_is_chosen(
    world: EditorWorld, monkeypatch: Any
) -> None:
    text = MINE.replace("  max_num_steps: 200", "  # max_num_steps: 9\n  max_num_steps: 200")
    world.recipe.write_text(text)
    async with editing(world, monkeypatch) as editor:
        await editor.go_to("distillation.max_num_steps")
        await editor.screen.press("number_sign")
        await editor.until_text("  # max_num_steps: 200   # twice the usual")
        await editor.screen.press("number_sign")
        await editor.screen.see(
            "Take back in", "max_num_steps is commented out on several lines", ": 9", ": 200"
        )
        await editor.screen.press("2")
        await editor.screen.until(lambda: editor.text == text, "the second line again")


async def test_adding_asks_for_a_value_and_goes_to_the_new_key(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch) as editor:
        await editor.go_to("distillation")
        await editor.screen.press("a")
        await editor.answer("ours")
        await editor.answer("")
        await editor.screen.see("no value was typed: distillation.ours was not added")
        assert editor.text == MINE
        await editor.screen.press("a")
        await editor.answer("ours")
        await editor.answer("{a: [1, two]}  # why")
        await editor.until_text("  ours:  # why\n    a:\n")
        await editor.screen.until(lambda: editor.layout.tree_view.key == "distillation.ours", "the new key")
        await editor.go_to("policy.optimizer.kwargs.betas")
        await editor.screen.press("a")
        await editor.answer("0.999")
        await editor.until_text("        - 0.98\n        - 0.999\n")


async def test_two_editors_of_a_file_are_told_of_each_other_and_lose_nothing(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as first, editing(world, monkeypatch) as second:
        for editor in (first, second):
            editor.layout._files.look()
            await editor.screen.see("also open:")
        await first.set("distillation.max_num_steps", "300")
        await first.until_text("max_num_steps: 300")
        await second.set("logger.log_dir", "logs/second")
        await second.until_text("logs/second")
        await first.screen.press("w")
        await first.screen.see("saved mine.yaml: 1 line changed")
        await second.screen.press("w")
        await second.screen.see("Changed on disk", "reload", "keep mine", "see both")
        await second.screen.press("D")
        await second.screen.see("- on disk, + yours", "-  max_num_steps: 300", "+  max_num_steps: 200")
        await second.screen.press("b")
        await second.screen.see("Changed on disk", "keep mine")
        assert world.text == MINE.replace("200", "300")
        await second.screen.press("r")
        await second.screen.until(lambda: second.text == world.text, "the text of the first")
        await second.screen.press("u")
        await second.until_text("logs/second", "max_num_steps: 200")
        await second.screen.press("ctrl+r")
        await second.set("logger.log_dir", "logs/second")
        await second.screen.press("w")
        await second.screen.see("saved mine.yaml: 1 line changed")
        first.layout._files.look()
        await first.screen.until(lambda: "logs/second" in first.text, "what the second one saved")
    assert world.text == MINE.replace("200", "300").replace("logs/mine", "logs/second")
