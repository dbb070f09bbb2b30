"""The wizard in a real terminal: what a killed one leaves, and a recipe written by keys alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command import Command
from tests.e2e.test_terminal import Terminal
from tests.tui.fakeslurm import LoginNode
from tests.tui.terminal import Terminal as Pty
from tests.tui.terminal import opened

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
TYPED = "ZYXWVUTQRG"  # no escape sequence that is written ends with one of them
DOWN = b"\x1b[B"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginNode:
    node = LoginNode.at(tmp_path / "node")
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(node.root / "state"))
    monkeypatch.chdir(node.checkout)
    return node


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened_terminal = Terminal(tmp_path / "tmux")
    yield opened_terminal
    opened_terminal.kill()


def press_and_see(terminal: Pty, letter: str) -> None:
    """Press a key, and wait until its letter is painted."""
    before = len(terminal.written)
    terminal.press(letter.encode())
    terminal.until(lambda: letter.encode() in terminal.written[before:], letter)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("moment", range(20))
def test_a_kill_at_any_moment_loses_at_most_the_last_key(node: LoginNode, moment: int) -> None:
    with opened("new", str(node.recipe), environment=dict(os.environ)) as terminal:
        terminal.see("booster", "distill", limit_s=60)
        terminal.press(DOWN * 2)
        count = 1 + moment % len(TYPED)
        for letter in TYPED[:count]:
            press_and_see(terminal, letter)
        time.sleep(0.013 * (moment % 7))
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait()
    drafts = list((node.root / "state").rglob("*.draft.json"))
    assert len(drafts) == 1 or count == 1
    if count > 1:
        held = json.loads(drafts[0].read_text().partition("\n")[2])
        texts = json.loads(held["state"])["texts"]
        assert texts["recipe"] == str(node.recipe)
        assert texts["qos"] in (TYPED[:count], TYPED[: count - 1])
        assert drafts[0].stat().st_mode & 0o777 == 0o600


@needs_tmux
@pytest.mark.slow
def test_a_killed_wizard_is_offered_and_its_recipe_saved_by_keys(
    node: LoginNode, terminal: Terminal, tmp_path: Path
) -> None:
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ):
        subprocess.run(["git", *arguments], cwd=node.checkout, check=True)
    terminal.open(Command(node.runs), "new", "recipe.yaml", columns=80, rows=24)
    terminal.wait_for("1 Cluster", "distill")
    terminal.press("NPage", "NPage", "NPage")
    terminal.wait_for("4 Batches and lengths")
    terminal.press("-l", "32")
    terminal.wait_for("● Prompts per step")
    time.sleep(0.3)
    terminal.kill()
    again = Terminal(tmp_path / "tmux2")
    try:
        again.open(Command(node.runs), columns=80, rows=24)
        again.wait_for("No runs yet")
        again.press("n")
        again.wait_for("There is a draft of a run.", "recipe.yaml")
        again.press("g")
        again.wait_for("4 Batches and lengths", "● Prompts per step")
        again.press("/")
        again.wait_for("Find")
        again.press("-l", "topk_logits_k")
        again.wait_for("▸  distillation.topk_logits_k")
        again.press("Enter")
        again.wait_for("─ distillation.topk_logits_k ")
        again.press("Enter")
        again.press("-l", "48")
        again.press("Enter")
        again.wait_for("modified, 1 line")
        again.press("b")
        again.wait_for("4 Batches and lengths")
        again.press("NPage", "NPage", "NPage")
        again.wait_for("review", "no failure predicted")
        again.press("D")
        again.wait_for("+ distillation.topk_logits_k: 48", "+ distillation.num_prompts_per_step: 32")
        again.press("b")
        again.wait_for("no failure predicted")
        again.press("w")
        again.wait_for("Your choices", "use once")
        again.press("Down")
        again.press("Enter")
        again.wait_for("what is saved in recipe.yaml", "+  num_prompts_per_step: 32", "+  topk_logits_k: 48")
        again.press("w")
        again.wait_for("saved into")
    finally:
        again.kill()
    diff = subprocess.run(
        ["git", "diff", "-U0"], cwd=node.checkout, check=True, capture_output=True, text=True
    ).stdout
    changed = [line for line in diff.splitlines() if line[:1] in "+-" and line[1:2] == " "]
    assert sorted(line for line in changed if line[0] == "+") == [
        "+  num_prompts_per_step: 32",
        "+  topk_logits_k: 48",
    ]
    assert len(changed) == 4
