"""Facts of models are kept while something is typed, and read again after some seconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.models.facts import ModelFacts, UnknownModel
from recipes.models.hub import Hub
from tui.screens.wizard.model_cache import KEPT_S, KeptModels

CONFIG = {
    "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
    "intermediate_size": 128, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
}  # fmt: skip


def test_a_model_that_comes_later_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    models = KeptModels(Hub(tmp_path / "hub"), tmp_path)
    assert isinstance(models.find("mine/student"), UnknownModel)
    (tmp_path / "mine" / "student").mkdir(parents=True)
    (tmp_path / "mine" / "student" / "config.json").write_text(json.dumps(CONFIG))
    clock[0] += KEPT_S / 2
    assert isinstance(models.find("mine/student"), UnknownModel)
    clock[0] += KEPT_S
    facts = models.find("mine/student")
    assert isinstance(facts, ModelFacts)
    assert facts.layers == 2
