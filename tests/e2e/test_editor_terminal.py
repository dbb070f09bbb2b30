"""The recipe editor in a real terminal of 80x24, with the keyboard alone; and what a killed one leaves."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Command
from tests.e2e.test_terminal import Terminal
from tests.tui.editor_world import MINE, EditorWorld
from tests.tui.terminal import opened

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
CLEAR = "C-u"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EditorWorld:
    world = EditorWorld.at(tmp_path / "world")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.root)
    return world


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened_terminal = Terminal(tmp_path / "tmux")
    yield opened_terminal
    opened_terminal.kill()


def edit(terminal: Terminal, world: EditorWorld) -> None:
    """Open the recipe in the editor."""
    terminal.open(Command(world.root / "runs"), "recipe", "edit", "mine.yaml", columns=80, rows=24)
    terminal.wait_for("1 recipe", "on 1 × 4 GPUs")


def find(terminal: Terminal, key: str) -> None:
    """Go to a key by typing it into the search."""
    terminal.press("/")
    terminal.wait_for("Find")
    terminal.press("-l", key)
    terminal.wait_for(f"▸  {key}")
    terminal.press("Enter")
    terminal.wait_for(f"─ {key} ")


@needs_tmux
@pytest.mark.slow
def test_a_foreign_recipe_is_edited_by_keys_and_git_sees_only_what_was_meant(
    world: EditorWorld, terminal: Terminal
) -> None:
    world.commit()
    edit(terminal, world)
    find(terminal, "distillation.max_num_steps")
    terminal.press("Enter")
    terminal.press("-l", "300")
    terminal.press("Enter")
    terminal.wait_for("modified, 1 line")
    terminal.press("a")
    terminal.wait_for("Add a key")
    terminal.press("-l", "our_seed")
    terminal.press("Enter")
    terminal.wait_for("Add distillation.our_seed")
    terminal.press("-l", "7")
    terminal.press("Enter")
    terminal.wait_for("modified, 2 lines")
    find(terminal, "policy.train_global_batch_size")
    terminal.press("d")
    terminal.wait_for("removed policy.train_global_batch_size")
    find(terminal, "policy.optimizer.kwargs.lr")
    terminal.press("c")
    terminal.wait_for("Remark on")
    terminal.press("-l", "as in the paper")
    terminal.press("Enter")
    terminal.wait_for("remark on policy.optimizer.kwargs.lr")
    find(terminal, "policy.dtensor_cfg")
    terminal.press("-l", "#")
    terminal.wait_for("commented policy.dtensor_cfg out")
    find(terminal, "policy.optimizer.kwargs.betas.1")
    terminal.press("Enter")
    terminal.press("-l", "0.99")
    terminal.press("Enter")
    terminal.wait_for("betas.1: 0.99")
    terminal.press("w")
    terminal.wait_for("saved mine.yaml")
    terminal.press("q")
    terminal.wait_for("END 0")
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


@needs_tmux
@pytest.mark.slow
def test_a_recipe_that_does_not_fit_and_an_illegal_size_are_repaired_by_keys(
    world: EditorWorld, terminal: Terminal
) -> None:
    edit(terminal, world)
    find(terminal, "policy.dtensor_cfg.tensor_parallel_size")
    terminal.press("Enter")
    terminal.press("-l", "3")
    terminal.wait_for("would now fail: C35")
    terminal.press("Enter")
    terminal.wait_for("checks would fail", "f fixes it")
    terminal.press("f")
    terminal.wait_for("no failure predicted")
    terminal.press("p")
    terminal.wait_for("Place")
    terminal.press(CLEAR)
    terminal.press("-l", "1 x 4 x 5")
    terminal.press("Enter")
    terminal.wait_for("▶", "not fit")
    terminal.press("m")
    terminal.wait_for("What would fit", "GiB")
    terminal.press("Enter")
    terminal.wait_until(lambda text: "applied:" in text and "▶" not in text)
    assert world.text == MINE  # nothing is written before it is saved


@needs_tmux
@pytest.mark.slow
def test_the_text_goes_to_the_user_s_editor_and_back(
    world: EditorWorld, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "vim"
    script.write_text('#!/bin/sh\nprintf "editing %s\\n" "$1"; read answer; sed -i s/200/400/ "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    edit(terminal, world)
    find(terminal, "distillation.max_num_steps")
    terminal.press("E")
    terminal.wait_for("editing +5")
    terminal.press("Enter")
    terminal.wait_for("taken from the editor", "max_num_steps", "400")
    terminal.press("w")
    terminal.wait_for("saved mine.yaml: 1 line")
    assert world.text == MINE.replace("200", "400")


@needs_tmux
@pytest.mark.slow
def test_edits_of_a_killed_terminal_are_offered(
    world: EditorWorld, terminal: Terminal, tmp_path: Path
) -> None:
    edit(terminal, world)
    find(terminal, "distillation.max_num_steps")
    terminal.press("Enter")
    terminal.press("-l", "345")
    terminal.press("Enter")
    terminal.wait_for("modified, 1 line")
    time.sleep(0.3)
    terminal.kill()
    again = Terminal(tmp_path / "tmux2")
    try:
        again.open(Command(world.root / "runs"), "recipe", "edit", "mine.yaml", columns=80, rows=24)
        again.wait_for("Unsaved edits", "continue with them")
        again.press("g")
        again.wait_for("345", "modified, 1 line")
    finally:
        again.kill()
    assert world.text == MINE


@needs_tmux
@pytest.mark.slow
def test_keys_that_come_all_at_once_do_what_they_do_one_by_one(
    world: EditorWorld, terminal: Terminal
) -> None:
    """Everything is sent while the recipe is still being read, as a macro or a slow link would."""
    terminal.open(Command(world.root / "runs"), "recipe", "edit", "mine.yaml", columns=80, rows=24)
    terminal.wait_for("1 recipe")
    terminal.press("-l", "/max_num_steps")
    terminal.press("Enter", "Enter", "3", "0", "0", "Enter", "c")
    terminal.press("-l", ", dq#w")
    terminal.press("Enter", "/")
    terminal.press("-l", "betas.1")
    terminal.press("Enter", "Enter")
    terminal.press("-l", "0.99")
    terminal.press("Enter", "w")
    terminal.wait_for("saved mine.yaml: 2 lines changed")
    after = MINE.replace("200   # twice the usual", "300   # twice the usual, dq#w")
    assert world.text == after.replace("0.98", "0.99")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("moment", range(20))
def test_a_kill_at_any_moment_loses_at_most_the_last_key(world: EditorWorld, moment: int) -> None:
    """Letters are typed into the text mode; the process is killed at a moment, without warning."""
    environment = {**world.environment, "TERM": "xterm-256color"}
    typed = "zyxwvutsrq"  # no letter follows another as in the text
    with opened("recipe", "edit", "mine.yaml", environment=environment) as terminal:
        terminal.see("on 1 × 4 GPUs", limit_s=60)
        terminal.press(b"t")
        terminal.see("text mode")
        count = 1 + moment % len(typed)
        for number, letter in enumerate(typed[:count], 1):
            terminal.press(letter.encode())
            terminal.see(typed[:number])
        time.sleep(0.013 * (moment % 7))
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait()
    assert world.text == MINE
    drafts = list((world.root / "state").rglob("*.draft.json"))
    if count > 1:
        (draft,) = drafts
        text = draft.read_bytes().partition(b"\n")[2].decode()
        kept = next(length for length in range(len(typed), -1, -1) if typed[:length] in text)
        assert kept >= count - 1
        assert text.replace(typed[:kept], "", 1) == MINE
