"""A recipe of one's own over a legal parent, in a world where both models are known, and the editor on it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.checks.world import World
from tests.tui.pilot import NARROW, Screen, shown
from tui.app_settings import EditStart
from tui.screens.editor.recipe_editor import RecipeEditorScreen
from tui.widgets.entry_dialog import EntryDialog

MINE = """\
# A run of ours.
defaults: ./recipe.yaml

distillation:
  max_num_steps: 200   # twice the usual

policy:
  train_global_batch_size: 16
  dtensor_cfg: {tensor_parallel_size: 4}   # our nodes have four GPUs
  optimizer:
    kwargs:
      lr: 2.0e-5
      betas:
        - 0.9
        - 0.98
  # generation:
  #   temperature: 0.8
logger:
  log_dir: "logs/mine"
"""
TP = "policy.dtensor_cfg.tensor_parallel_size"


@dataclass(frozen=True)
class EditorWorld:
    """A directory with a recipe to edit."""

    root: Path

    @classmethod
    def at(cls, root: Path, text: str = MINE) -> EditorWorld:
        """Make one."""
        World.at(root)
        (root / "mine.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
        return cls(root)

    @property
    def recipe(self) -> Path:
        """The recipe."""
        return self.root / "mine.yaml"

    @property
    def text(self) -> str:
        """The recipe's text on disk."""
        return self.recipe.read_bytes().decode()

    @property
    def environment(self) -> Mapping[str, str]:
        """What differs from this process's environment."""
        return {
            "HOME": str(self.root.parent),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "NEMO_RL_ROOT": str(self.root),
            "HF_HUB_OFFLINE": "1",
            "TORCH_CUDA_ARCH_LIST": "8.0",
            "DISTILL_TUI_RUNS": str(self.root / "runs"),
        }

    def commit(self) -> None:
        """Put the recipe under git, so that its changes can be told."""
        for arguments in (("init", "-q"), ("add", "mine.yaml"), ("commit", "-qm", "before")):
            self.git(*arguments)

    def git(self, *arguments: str) -> str:
        """Run git here."""
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        return subprocess.run(
            ["git", *identity, *arguments], cwd=self.root, capture_output=True, text=True, check=True
        ).stdout

    def changed_lines(self) -> list[str]:
        """Return the removed and added lines of the recipe, as `git diff` has them."""
        diff = self.git("diff", "--unified=0", "mine.yaml").split("\n")
        return [line for line in diff if line[:1] in "+-" and line[:3] not in ("---", "+++")][:-1]


@dataclass
class Editor:
    """The editor on the screen."""

    screen: Screen

    @property
    def layout(self) -> RecipeEditorScreen:
        """The editor's screen, also while a dialog is above it."""
        (layout,) = (item for item in self.screen.app.screen_stack if isinstance(item, RecipeEditorScreen))
        return layout

    @property
    def text(self) -> str:
        """The text under edit."""
        view = self.layout.view
        assert view is not None
        return view.state.text

    async def settle(self) -> None:
        """Wait until what was typed is analysed."""
        await self.screen.until(
            lambda: (
                self.layout.analysis is not None
                and self.layout.view is not None
                and self.layout.analysis.state.text == self.layout.view.state.text
            ),
            "the analysis",
        )

    async def go_to(self, key: str) -> None:
        """Go to a key."""
        assert self.layout.go_to(key), key
        await self.screen.until(lambda: self.layout.tree_view.key == key, key)

    async def set(self, key: str, value: str) -> None:
        """Set a value, in place."""
        await self.go_to(key)
        await self.screen.press("enter")
        await self.answer(value)

    async def answer(self, text: str) -> None:
        """Type into the dialog, and take it."""
        await self.screen.until(lambda: isinstance(self.screen.app.screen, EntryDialog), "a dialog")
        await self.screen.type(text)
        await self.screen.press("enter")

    async def until_text(self, *parts: str) -> None:
        """Wait until the text has all parts."""
        await self.screen.until(lambda: all(part in self.text for part in parts), f"{parts}")
        await self.settle()


@asynccontextmanager
async def editing(
    world: EditorWorld, monkeypatch: Any, size: tuple[int, int] = NARROW, **settings: Any
) -> AsyncIterator[Editor]:
    """Open the recipe in the editor."""
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    os.chdir(world.root)
    start = EditStart(world.recipe)
    async with shown(world.root / "runs", size, **({"edit": start} | settings)) as screen:
        editor = Editor(screen)
        await screen.until(lambda: editor.layout.analysis is not None, "the recipe")
        yield editor


@contextmanager
def suspended(app: object) -> Iterator[None]:
    """Stand in for handing the terminal over: a test has none."""
    yield
