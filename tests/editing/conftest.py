"""Recipes for the editor: a small chain, and NeMo-RL's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DISTILL_TUI_TEST_DATA") or ROOT.parent / "shared")

BASE = """\
# the base recipe

distillation:
  num_prompts_per_step: 64  # prompts of one step
  max_num_steps: 100
policy: &POLICY
  model_name: student
  # learning rate of the student
  optimizer:
    kwargs:
      lr: 2.0e-5
      betas: [0.9, 0.999]
  max_total_sequence_length: 4096
  generation:
    max_new_tokens: ${policy.max_total_sequence_length}
teacher:
  <<: *POLICY
  model_name: teacher
stages:
  - name: warm
    steps: 10
  - name: main
    steps: 90
"""
CHILD = """\
defaults: base.yaml
# shorter runs
distillation:
  max_num_steps: 20  # enough
  # val_period: 5
policy:
  model_name: mine
"""


@pytest.fixture
def child(tmp_path: Path) -> Path:
    """A recipe on top of a base."""
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "child.yaml"
    path.write_text(CHILD)
    return path


@pytest.fixture(scope="session")
def corpus() -> list[Path]:
    """All stock recipes of NeMo-RL."""
    folder = DATA / "corpus" / "nemo-rl"
    if not folder.is_dir():
        pytest.skip(f"no test data in {folder} (set DISTILL_TUI_TEST_DATA)")
    return sorted(folder.rglob("*.yaml"))


@pytest.fixture(autouse=True, scope="session")
def recipe_environment() -> Iterator[None]:
    """What some stock recipes read from the environment."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HOME", "/somewhere/hf")
    patch.setenv("PERSISTENT_CACHE", "/somewhere/cache")
    yield
    patch.undo()
