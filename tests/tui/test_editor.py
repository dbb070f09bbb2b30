"""The recipe editor, driven by keys: what is changed is what was meant, and nothing typed is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import InputError
from recipes.attributes import Attributes
from tests.tui.editor_world import MINE, TP, EditorWorld, editing, suspended
from tests.tui.pilot import NARROW, WIDE, shown
from tests.tui.replay import running
from tests.tui.test_hostile import EVIL, painted
from tui.screens.editor import choose_recipe, recipe_editor  # noqa: F401 - imports on the loop would block it
from tui.screens.editor.external_editor import edit_copy, editor_command


@pytest.fixture
def world(tmp_path: Path) -> Iterator[EditorWorld]:
    here = Path.cwd()
    yield EditorWorld.at(tmp_path / "world")
    os.chdir(here)


@pytest.mark.slow
async def test_every_kind_of_edit_changes_only_its_lines(world: EditorWorld, monkeypatch: Any) -> None:
    world.commit()
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await editor.set("distillation.max_num_steps", "300")
        await editor.until_text("max_num_steps: 300   # twice the usual")
        await screen.press("a")
        await editor.answer("our_seed")
        await editor.answer("7")
        await editor.until_text("our_seed: 7")
        await editor.go_to("policy.train_global_batch_size")
        await screen.press("d")
        await screen.until(lambda: "train_global_batch_size" not in editor.text, "the key is gone")
        await editor.settle()
        await editor.go_to("policy.optimizer.kwargs.lr")
        await screen.press("c")
        await editor.answer("as in the paper")
        await editor.until_text("lr: 2.0e-5  # as in the paper")
        await editor.go_to("policy.dtensor_cfg")
        await screen.press("number_sign")
        await editor.until_text("# dtensor_cfg")
        await editor.set("policy.optimizer.kwargs.betas.1", "0.99")
        await editor.until_text("- 0.99")
        await screen.press("w")
        await screen.see("saved mine.yaml")
    assert world.changed_lines() == [
        "-  max_num_steps: 200   # twice the usual",
        "+  max_num_steps: 300   # twice the usual",
        "+  our_seed: 7",
        "-  train_global_batch_size: 16",
        "-  dtensor_cfg: {tensor_parallel_size: 4}   # our nodes have four GPUs",
        "+  # dtensor_cfg: {tensor_parallel_size: 4}   # our nodes have four GPUs",
        "-      lr: 2.0e-5",
        "+      lr: 2.0e-5  # as in the paper",
        "-        - 0.98",
        "+        - 0.99",
    ]


@pytest.mark.slow
async def test_undo_restores_the_bytes_and_redo_the_edit(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch) as editor:
        await editor.set(TP, "2")
        await editor.until_text("tensor_parallel_size: 2}   # our")
        changed = editor.text
        await editor.screen.press("u")
        await editor.screen.until(lambda: editor.text == MINE, "the first text")
        await editor.screen.press("ctrl+r")
        await editor.screen.until(lambda: editor.text == changed, "the edit again")


@pytest.mark.long
async def test_a_value_that_would_fail_is_told_while_it_is_typed_and_fixed_with_one_key(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await editor.go_to(TP)
        await screen.press("enter")
        await screen.see("present value")  # the legal sizes are listed
        await screen.type("3")
        await screen.see("✗ would now fail: C35")
        await screen.press("enter")
        await screen.see("checks would fail")
        assert "tensor_parallel_size: 3" in editor.text
        await screen.press("f")
        await screen.see("✓ no failure predicted")
        assert "tensor_parallel_size: 3" not in editor.text
        assert editor.text.replace("{tensor_parallel_size: 2}", "{tensor_parallel_size: 4}") == MINE


@pytest.mark.slow
async def test_a_recipe_that_does_not_fit_is_told_and_made_to_fit(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await screen.press("p")
        await editor.answer("1 x 4 x 5")
        await screen.see("▶", "not fit")
        await screen.press("m")
        await screen.see("What would fit", "then ")
        await screen.press("enter")
        await screen.see("applied:")
        await editor.settle()
        assert editor.text != MINE


@pytest.mark.slow
async def test_find_offers_keys_that_are_not_set(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await screen.press("slash")
        await screen.type("betas")
        await screen.see("policy.optimizer.kwargs.betas")
        await screen.press("enter")
        await screen.until(
            lambda: editor.layout.tree_view.key.startswith("policy.optimizer.kwargs.betas"), "it"
        )
        await screen.press("slash")
        await screen.type("no such thing")
        await screen.see("! no key, value or comment has this text")
        await screen.press("escape")


async def test_text_mode_tells_the_error_at_its_line_and_keeps_the_tree(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await editor.go_to("distillation.max_num_steps")
        rows = len(editor.layout.tree_view._rows)
        await screen.press("t", "home", "[", "x")
        await screen.see("✗ not YAML, line 7", "begins at line 5")
        assert len(editor.layout.tree_view._rows) == rows
        await screen.press("backspace", "backspace")
        await screen.until(lambda: editor.text == MINE, "the text as before")
        await screen.press("escape")
        await screen.see("━ 2 file ━")
        assert editor.layout.text_area is None


@pytest.mark.slow
async def test_typing_is_undone_in_the_text_mode(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch) as editor:
        await editor.screen.press("t", "home", "x")
        await editor.screen.until(lambda: editor.text != MINE, "the typed letter")
        await editor.screen.press("f3")
        await editor.screen.until(lambda: editor.text == MINE, "the text as before")
        area = editor.layout.text_area
        assert area is not None
        assert area.text == MINE


@pytest.mark.long
async def test_unsaved_edits_are_offered_when_the_file_is_opened_again(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as editor:
        await editor.set("distillation.max_num_steps", "300")
        await editor.until_text("max_num_steps: 300")
        changed = editor.text
        await editor.screen.press("b")
    assert world.text == MINE
    (draft,) = (world.root / "state" / "distill-tui" / "drafts").glob("*.draft.json")
    assert draft.stat().st_mode & 0o777 == 0o600
    # The process that kept it must be gone for the draft to be offered: this one is not.
    header, _, body = draft.read_bytes().partition(b"\n")
    draft.write_bytes(header.replace(b'"pid":%d' % os.getpid(), b'"pid":4194303') + b"\n" + body)
    async with editing(world, monkeypatch) as editor:
        await editor.screen.see("Unsaved edits", "continue with them")
        await editor.screen.press("g")
        await editor.screen.until(lambda: editor.text == changed, "the unsaved edits")


@pytest.mark.slow
async def test_a_file_changed_on_disk_is_told_and_either_text_can_be_kept(
    world: EditorWorld, monkeypatch: Any
) -> None:
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await editor.set("distillation.max_num_steps", "300")
        await editor.until_text("max_num_steps: 300")
        theirs = MINE.replace("logs/mine", "logs/theirs")
        world.recipe.write_text(theirs)
        await screen.press("w")
        await screen.see("Changed on disk", "keep mine")
        await screen.press("r")
        await screen.until(lambda: editor.text == theirs, "the file's text")
        await screen.press("u")
        await editor.until_text("max_num_steps: 300", "logs/mine")
        world.recipe.write_text(MINE)
        await screen.press("w")
        await screen.see("Changed on disk")
        await screen.press("k")
        await screen.see("keeping yours")
        await screen.press("w")
        await screen.see("saved mine.yaml")
    assert "max_num_steps: 300" in world.text


@pytest.mark.slow
async def test_a_file_whose_owner_would_change_is_saved_after_a_question(
    world: EditorWorld, monkeypatch: Any
) -> None:
    real = Attributes.of

    def of(file: Path | int) -> Attributes:
        own = real(file)
        return replace(own, uid=own.uid + 4711) if file == world.recipe else own

    monkeypatch.setattr(Attributes, "of", of)
    async with editing(world, monkeypatch) as editor:
        screen = editor.screen
        await editor.set("distillation.max_num_steps", "300")
        await editor.until_text("max_num_steps: 300")
        await screen.press("w")
        await screen.see("would change besides its text: owner", "save all the same")
        await screen.press("n")
        assert world.text == MINE
        await screen.press("w")
        await screen.see("would change besides its text: owner", "save all the same")
        await screen.press("y")
        await screen.see("saved mine.yaml")
    assert "max_num_steps: 300" in world.text


@pytest.mark.slow
async def test_the_text_of_the_user_s_own_editor_is_taken_as_one_step(
    world: EditorWorld, monkeypatch: Any
) -> None:
    asked: list[tuple[str, int]] = []

    def edited(text: str, name: str, line: int, environ: Mapping[str, str]) -> str:
        asked.append((name, line))
        return text.replace("200", "400")

    monkeypatch.setattr("textual.app.App.suspend", suspended)
    monkeypatch.setattr("tui.screens.editor.file_commands.edit_copy", edited)
    async with editing(world, monkeypatch) as editor:
        await editor.go_to("distillation.max_num_steps")
        await editor.screen.press("E")
        await editor.until_text("max_num_steps: 400   # twice")
        await editor.screen.see("taken from the editor")
        await editor.screen.press("u")
        await editor.screen.until(lambda: editor.text == MINE, "the text as before")
    assert asked == [("mine.yaml", 5)]
    assert world.text == MINE


def test_a_copy_is_edited_in_the_user_s_editor_at_the_line(tmp_path: Path) -> None:
    script = tmp_path / "vim"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path / "asked"}\nsed -i s/200/400/ "$2"\n')
    script.chmod(0o755)
    environ = {"VISUAL": str(script), "PATH": "/usr/bin:/bin"}
    assert edit_copy(MINE, "mine.yaml", 5, environ) == MINE.replace("200", "400")
    assert (tmp_path / "asked").read_text().startswith("+5 ")
    script.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(InputError, match="exit code 3"):
        edit_copy(MINE, "mine.yaml", 5, environ)


@pytest.mark.parametrize(
    ("variable", "arguments"),
    [
        ("vi -n", ["vi", "-n", "+7", "f.yaml"]),
        ("sh", ["sh", "f.yaml"]),
    ],
)
def test_the_line_is_given_as_an_editor_takes_it(variable: str, arguments: list[str]) -> None:
    program = variable.partition(" ")[0]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    assert editor_command({"EDITOR": variable}, "f.yaml", 7) == arguments


@pytest.mark.parametrize("text", ["no-such-editor", "'"])
def test_an_editor_that_cannot_run_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"EDITOR|not installed"):
        editor_command({"EDITOR": text}, "f.yaml", 7)


@pytest.mark.slow
async def test_a_parent_s_value_is_opened_there(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch) as editor:
        await editor.go_to("distillation.val_period")
        await editor.screen.see("inherited from recipe.yaml:")
        await editor.screen.press("o")
        await editor.screen.see("recipe  recipe.yaml")
        top = editor.screen.app.screen
        assert isinstance(top, recipe_editor.RecipeEditorScreen)
        await editor.screen.until(lambda: top.tree_view.key == "distillation.val_period", "the key there")


@pytest.mark.slow
async def test_tree_and_text_are_in_step(world: EditorWorld, monkeypatch: Any) -> None:
    async with editing(world, monkeypatch, WIDE) as editor:
        await editor.go_to("logger.log_dir")
        await editor.screen.until(lambda: editor.layout.text_view.line == 19, "its line")
        await editor.screen.press("2", "up", "up", "up", "up")
        await editor.screen.until(
            lambda: editor.layout.tree_view.key == "policy.optimizer.kwargs.betas.1", "the key of the line"
        )


@pytest.mark.long
@pytest.mark.parametrize("size", [NARROW, pytest.param(WIDE, marks=pytest.mark.slow)])
async def test_nothing_of_a_file_is_obeyed_by_the_terminal(
    tmp_path: Path, monkeypatch: Any, size: tuple[int, int]
) -> None:
    quoted = EVIL.encode("unicode_escape").decode().replace('"', "")
    text = MINE.replace("logs/mine", quoted) + f'"k{quoted}": 1   # \u202eremark\u2066\n'
    world = EditorWorld.at(tmp_path / "w\u202e\x1b]0;evil\x07", text)
    here = Path.cwd()
    async with editing(world, monkeypatch, size) as editor:
        for keys in (
            ("3",),
            ("1", "end"),
            ("2", "end"),
            ("t",),
            ("escape", "D"),
            ("b", "1", "slash", "k"),
            ("escape", "p"),
        ):
            await editor.screen.press(*keys)
            await editor.screen.pilot.pause(0.1)
            painted(editor.screen)
    os.chdir(here)


@pytest.mark.slow
async def test_the_list_of_runs_offers_recipes_to_edit(world: EditorWorld, monkeypatch: Any) -> None:
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    os.chdir(world.root)
    async with shown(world.root / "runs") as screen:
        await screen.see("No runs yet.")
        await screen.press("e")
        await screen.see("Edit a recipe", "mine.yaml", "recipe.yaml")
        await screen.type("mine.yaml")
        await screen.press("enter")
        await screen.see("recipe  mine.yaml", "on 1 × 4 GPUs")
        await screen.press("b")
        await screen.see("No runs yet.")


@pytest.mark.slow
async def test_a_run_s_recipe_is_edited_from_its_monitor(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    running(tmp_path)
    async with shown(tmp_path) as screen:
        await screen.see("demo")
        await screen.press("enter")
        await screen.see("1 timeline", "Ray head up")
        await screen.press("f6")
        await screen.until(
            lambda: isinstance(screen.app.screen, recipe_editor.RecipeEditorScreen), "the editor"
        )
        editor = screen.app.screen
        assert isinstance(editor, recipe_editor.RecipeEditorScreen)
        assert editor.file.path.name.endswith(".yaml")
